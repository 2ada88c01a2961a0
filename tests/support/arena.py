"""Many matches between bots through the API, with everything kept that a checker needs.

Six bots, each one caller with one Play stream, sit in all matches; half of them prefer the first
address, half the last, so that every process gets its share.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from engine import Answer, MatchState, Option, Prompt, Seat
from services.client import (
    ApiError,
    Bot,
    Client,
    Command,
    PlayStream,
    Record,
    RetryPolicy,
    connect,
    new_request_id,
    take_part,
)
from services.client.bots import BotKind, make_bot
from tests.support.history import Sent

BOTS = 6
GAME = "king_of_tokyo"
HOST = "host"


@dataclass(frozen=True, slots=True)
class Seated:
    """One of the six: its caller, its one stream."""

    subject: str
    client: Client
    stream: PlayStream


@dataclass(slots=True)
class Played:
    """A finished match: who sat where, and what each of them saw."""

    match_id: str
    subjects: list[str]
    records: list[Record] = field(default_factory=list)

    @property
    def actions(self) -> list[Command]:
        """What the seats did whoever was asked."""
        commands = [command for record in self.records for command in record.commands]
        return [command for command in commands if not command.prompt_id]


class Counting:
    """A bot that counts what it does, so that a test can act in the middle of a match."""

    def __init__(self, bot: Bot, arena: "Arena") -> None:
        self._bot = bot
        self._arena = arena

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        self._arena.count_answer()
        return self._bot.answer(prompt, state)

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        action = self._bot.act(seat, actions, state)
        if action is not None:
            self._arena.count_action()
        return action


class Arena:
    """An async context manager: the six bots connected, matches on demand."""

    def __init__(
        self,
        addresses: Sequence[str],
        token: Callable[..., str],
        *,
        replay_address: str = "",
        kind: BotKind = "greedy",
        patience_s: float = 90.0,
    ) -> None:
        self.addresses = tuple(addresses)
        self.answers = 0
        self.actions = 0
        # Reasons of failures after which the client tried again.
        self.failures: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self._token = token
        self._replay_address = replay_address
        self._kind = kind
        self._policy = RetryPolicy(total_s=patience_s, attempt_s=5.0, on_failure=self._on_failure)
        self._stack = AsyncExitStack()
        self._progress = asyncio.Event()
        self._six: list[Seated] = []
        self.host: Client
        self.arbiter: Client

    async def __aenter__(self) -> Self:
        for number in range(1, BOTS + 1):
            client = await self._client(f"bot-{number}", rotate=number % len(self.addresses))
            stream = await self._stack.enter_async_context(client.play())
            self._six.append(Seated(f"bot-{number}", client, stream))
        self.host = await self._client(HOST)
        self.arbiter = await self._client("arbiter", "arbiter")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _client(self, subject: str, *roles: str, rotate: int = 0) -> Client:
        client = connect(
            [*self.addresses[rotate:], *self.addresses[:rotate]],
            self._token(subject, *(roles or ("player",))),
            policy=self._policy,
            replay_addresses=self._replay_address,
        )
        return await self._stack.enter_async_context(client)

    def _on_failure(self, error: ApiError) -> None:
        self.failures[f"{error.code.name} {error.reason}"] += 1

    def count_answer(self) -> None:
        """A bot is about to answer."""
        self.answers += 1
        self._progress.set()

    def count_action(self) -> None:
        """A bot is about to act, whoever is asked."""
        self.actions += 1
        self._progress.set()

    async def reached(
        self, answers: int, playing: "asyncio.Task[list[Played]]", *, actions: int = 0
    ) -> bool:
        """Wait until so many more answers were given, and actions taken; False when the matches
        ended before.
        """
        wanted, wanted_actions = self.answers + answers, self.actions + actions
        playing.add_done_callback(lambda _: self._progress.set())

        def is_reached() -> bool:
            return self.answers >= wanted and self.actions >= wanted_actions

        while not is_reached() and not playing.done():
            self._progress.clear()
            await self._progress.wait()
        return is_reached()

    async def play(
        self,
        matches: int,
        *,
        hashes: bool = False,
        bot_of: Callable[[str], Bot] | None = None,
    ) -> list[Played]:
        """Play so many matches at the same time, with 2, 3 … 6, 2, 3 … bots; `bot_of` makes one
        from a seed (default: of the arena's kind).
        """
        make = bot_of or partial(make_bot, self._kind, GAME)
        tasks = [
            asyncio.create_task(self._play_one(2 + number % 5, str(number), make, hashes))
            for number in range(matches)
        ]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _play_one(
        self, seats: int, seed: str, make: Callable[[str], Bot], hashes: bool
    ) -> Played:
        players = self._six[:seats]
        match_id = await self.open(seats)
        played = Played(match_id, [player.subject for player in players])
        bots = [Counting(make(f"{seed}/{n}"), self) for n in range(seats)]
        played.records = list(
            await asyncio.gather(
                *(
                    take_part(player.stream, match_id, seat, bot, hashes=hashes)
                    for seat, (player, bot) in enumerate(zip(players, bots, strict=True), 1)
                )
            )
        )
        for subject, record in zip(played.subjects, played.records, strict=True):
            self._remember(subject, record)
        return played

    async def open(self, seats: int, *, start: bool = True) -> str:
        """A match with the first bots in its seats."""
        request_id, issued = new_request_id(), time.monotonic()
        created = await self.host.create(GAME, seats, request_id=request_id)
        match_id = created.match_id
        self._note(HOST, match_id, request_id, issued, created.receipt.sequence)
        for player in self._six[:seats]:
            request_id, issued = new_request_id(), time.monotonic()
            joined = await player.client.join(match_id, name=player.subject, request_id=request_id)
            self._note(player.subject, match_id, request_id, issued, joined.receipt.sequence)
        if start:
            await self.reveal(match_id, seats)
            request_id, issued = new_request_id(), time.monotonic()
            receipt = await self.host.start(match_id, request_id=request_id)
            self._note(HOST, match_id, request_id, issued, receipt.sequence)
        return match_id

    async def reveal(self, match_id: str, seats: int) -> None:
        """Have the first bots reveal what they bring to the dice."""
        for player in self._six[:seats]:
            issued = time.monotonic()
            receipt = await player.client.reveal(match_id)
            request_id = f"reveal.{match_id}"
            self._note(player.subject, match_id, request_id, issued, receipt.sequence)

    def player(self, seat: int) -> Seated:
        """Who sits in a seat of every match of the arena."""
        return self._six[seat - 1]

    def _note(
        self, actor: str, match_id: str, request_id: str, issued: float, sequence: int
    ) -> None:
        self.sent.append(Sent(actor, match_id, request_id, issued, time.monotonic(), sequence))

    def _remember(self, subject: str, record: Record) -> None:
        for command in record.commands:
            self.sent.append(
                Sent(
                    subject,
                    record.match_id,
                    command.request_id,
                    command.issued_s,
                    command.ended_s,
                    None if command.receipt is None else command.receipt.sequence,
                    command.refusal,
                )
            )
