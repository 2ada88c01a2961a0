"""Whole matches through the API: seat some bots, start, and answer until the match is over."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine import Answer, MatchState, Prompt, Seat, state_hash
from services.client.bots import Bot
from services.client.client import Client
from services.client.play import PlayStream
from services.client.receipts import Receipt
from services.client.requests import new_request_id
from services.client.updates import MatchUpdate
from services.common.errors import ApiError

# The prompt was closed by something else (time was over, a simultaneous answer settled it,
# somebody's action withdrew it), or what was offered is not offered any more: the next update says
# how the match goes on.
_OVERTAKEN = frozenset({"PROMPT_CLOSED", "ACTION_NOT_OFFERED", "MATCH_FINISHED"})


@dataclass(frozen=True, slots=True)
class Player:
    """Somebody who plays through the API: a client (one token, so one person) and its bot."""

    client: Client
    bot: Bot
    name: str = ""
    # The seat's own randomness; None: fresh from the system. b"": none.
    entropy: bytes | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """One answer or action that a player sent, and how it ended; times of the monotonic clock,
    seconds.
    """

    request_id: str
    # Empty for an action.
    prompt_id: str
    issued_s: float
    ended_s: float
    # What the server acknowledged; None: it was refused, or its outcome is unknown.
    receipt: Receipt | None
    refusal: str = ""


@dataclass(slots=True)
class Record:
    """What one player saw and did: for checks that compare it with the log."""

    match_id: str
    seat: int
    commands: list[Command] = field(default_factory=list)
    # Hash of the player's own fold after each commit, by sequence.
    state_hashes: dict[int, bytes] = field(default_factory=dict)
    commit_hashes: dict[int, bytes] = field(default_factory=dict)
    state: MatchState | None = None


Spectator = Callable[[MatchUpdate], Awaitable[None] | None]


async def open_match(
    host: Client,
    players: Sequence[Player],
    game: str,
    *,
    preset: str = "",
    options: Mapping[str, str] | None = None,
    request_id: str | None = None,
) -> str:
    """Create a match, seat the players in order, have them reveal what they bring to the dice,
    start it; return its id.
    """
    created = await host.create(
        game, len(players), preset=preset, options=options, request_id=request_id
    )
    for seat, player in enumerate(players, 1):
        await player.client.join(
            created.match_id, name=player.name, seat=seat, entropy=player.entropy
        )
    await reveal_all(created.match_id, players)
    await host.start(created.match_id)
    return created.match_id


async def reveal_all(match_id: str, players: Iterable[Player]) -> None:
    """Reveal what the players brought to the dice, once all are seated."""
    for player in players:
        if player.entropy != b"":
            await player.client.reveal(match_id)


async def take_part(
    stream: PlayStream,
    match_id: str,
    seat: Seat | int,
    bot: Bot,
    *,
    hashes: bool = False,
) -> Record:
    """Watch a match over `stream`, answer every prompt of the seat, and act when the bot wants to,
    until the match is over.

    With `hashes`, the record keeps the hash of the player's own state after each commit.
    """
    record = Record(match_id, int(seat))
    answered: set[str] = set()
    async for update in stream.watch(match_id, fold=True):
        assert update.state is not None, "the watch was asked to fold"
        record.state = update.state
        record.commit_hashes[update.sequence] = update.hash
        if hashes:
            record.state_hashes[update.sequence] = state_hash(update.state)
        action = _action(bot, record.seat, update)
        if action is not None:
            command = await _take(stream, match_id, action)
            record.commands.append(command)
            if command.receipt is not None:
                # What is asked now comes with the update of the action.
                continue
        for question in update.questions:
            prompt = question.prompt
            if prompt.seat != seat or prompt.id in answered:
                continue
            answered.add(prompt.id)
            command = await _send(stream, match_id, prompt, bot.answer(prompt, update.state))
            record.commands.append(command)
    return record


def _action(bot: Bot, seat: int, update: MatchUpdate) -> str | None:
    """What the bot does now of what its seat may do at any time."""
    if not update.actions:
        return None
    assert update.state is not None, "the watch was asked to fold"
    offered = tuple(action.option for action in update.actions)
    return bot.act(Seat(seat), offered, update.state)


async def _take(stream: PlayStream, match_id: str, action: str) -> Command:
    request_id = new_request_id()
    return await _sent(request_id, "", stream.take_action(match_id, action, request_id=request_id))


async def _send(stream: PlayStream, match_id: str, prompt: Prompt, answer: Answer) -> Command:
    request_id = new_request_id()
    return await _sent(
        request_id,
        prompt.id,
        stream.submit(match_id, prompt.id, answer, request_id=request_id),
    )


async def _sent(request_id: str, prompt_id: str, reply: Awaitable[Receipt]) -> Command:
    issued = time.monotonic()
    receipt, refusal = None, ""
    try:
        receipt = await reply
    except ApiError as error:
        if error.reason not in _OVERTAKEN:
            raise
        refusal = error.reason
    return Command(request_id, prompt_id, issued, time.monotonic(), receipt, refusal)


async def play_match(
    host: Client,
    players: Sequence[Player],
    game: str,
    *,
    preset: str = "",
    options: Mapping[str, str] | None = None,
    hashes: bool = False,
) -> list[Record]:
    """Open and play one whole match; return what each player saw, in seat order."""
    match_id = await open_match(host, players, game, preset=preset, options=options)
    return await play_on(match_id, players, hashes=hashes)


async def play_on(
    match_id: str,
    players: Sequence[Player],
    *,
    hashes: bool = False,
    spectator: Client | None = None,
    spectate: Spectator | None = None,
) -> list[Record]:
    """Play a started match to its end, each player over a stream of its own.

    Players sit in order from seat 1. `spectate` is called with each update as `spectator` gets
    it. The first failure ends the others and is raised.
    """

    async def play(seat: int, player: Player) -> Record:
        async with player.client.play() as stream:
            return await take_part(stream, match_id, seat, player.bot, hashes=hashes)

    async def watch(client: Client, show: Spectator) -> None:
        async for update in client.watch(match_id):
            shown = show(update)
            if shown is not None:
                await shown

    playing = [asyncio.create_task(play(seat, each)) for seat, each in enumerate(players, 1)]
    watching: list[asyncio.Task[None]] = []
    if spectator is not None and spectate is not None:
        watching.append(asyncio.create_task(watch(spectator, spectate)))
    try:
        records = await asyncio.gather(*playing)
        await asyncio.gather(*watching)
    finally:
        for task in (*playing, *watching):
            task.cancel()
        await asyncio.gather(*playing, *watching, return_exceptions=True)
    return list(records)
