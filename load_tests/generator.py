"""A load of whole matches: each command waits for the prompt that the last one led to.

Two players (two tokens) sit in every match and answer each prompt by its default. Both watch all
of their matches on one Play stream each; the answers go over the same streams (`play`) or as calls
of SubmitAnswer (`unary`). A match that ends is followed by a new one. The messages are used as they
are on the wire, without the client library: the generator shall cost little.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal

import grpc

from diceledger.match.v1 import match_pb2, match_pb2_grpc

Mode = Literal["unary", "play"]
Metadata = tuple[tuple[str, str], ...]
PLAYERS = ("load-1", "load-2")


@dataclass
class Tally:
    """What was acknowledged while it counted; seconds from submission to reply."""

    counting: bool = False
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    matches_ended: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def acknowledged(self, sent_at: float) -> None:
        """Count one command."""
        if self.counting:
            self.latencies.append(time.perf_counter() - sent_at)

    def refusal(self, text: str) -> None:
        """Count a command that was not accepted: there should be none."""
        self.refused[text] = self.refused.get(text, 0) + 1

    @property
    def rate(self) -> float:
        """Acknowledged commands per second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the commands was acknowledged."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else 0.0


class _Player:
    """One token's stream: watches, and answers in the way of the mode."""

    def __init__(self, load: "Load", subject: str, metadata: Metadata) -> None:
        self.load = load
        self.subject = subject
        self.metadata = metadata
        self.outbox: asyncio.Queue[match_pb2.PlayRequest | None] = asyncio.Queue()
        self.sent_at: dict[str, float] = {}
        self.answered: set[tuple[str, str]] = set()
        self.calls: set[asyncio.Task[None]] = set()

    async def _requests(self) -> AsyncIterator[match_pb2.PlayRequest]:
        while (request := await self.outbox.get()) is not None:
            yield request

    def watch(self, match_id: str) -> None:
        watch = match_pb2.WatchMatchRequest(match_id=match_id, from_sequence=1)
        self.outbox.put_nowait(match_pb2.PlayRequest(watch=watch))

    async def run(self) -> None:
        stream = self.load.stub.Play(self._requests(), metadata=self.metadata)
        async for response in stream:
            kind = response.WhichOneof("response")
            if kind == "update":
                for prompt in response.update.prompts:
                    self._answer(response.update.match_id, prompt)
            elif kind == "reply":
                self._replied(response.reply)
            elif response.watch_ended.status.code == 0:
                self.load.ended(self, response.watch_ended.match_id)
            else:
                self.load.tally.refusal(response.watch_ended.status.message)

    def _answer(self, match_id: str, prompt: match_pb2.Prompt) -> None:
        if (match_id, prompt.prompt_id) in self.answered:
            return
        self.answered.add((match_id, prompt.prompt_id))
        request = match_pb2.SubmitAnswerRequest(
            request_id=f"{self.subject}.{next(self.load.numbers)}",
            match_id=match_id,
            prompt_id=prompt.prompt_id,
            answer=prompt.default_answer,
        )
        if self.load.mode == "play":
            self.sent_at[request.request_id] = time.perf_counter()
            self.outbox.put_nowait(match_pb2.PlayRequest(submit=request))
        else:
            call = asyncio.create_task(self._call(request))
            self.calls.add(call)
            call.add_done_callback(self.calls.discard)

    async def _call(self, request: match_pb2.SubmitAnswerRequest) -> None:
        sent_at = time.perf_counter()
        try:
            await self.load.stub.SubmitAnswer(request, metadata=self.metadata)
        except grpc.aio.AioRpcError as error:
            self.load.tally.refusal(f"{error.code().name}: {error.details()}")
        else:
            self.load.tally.acknowledged(sent_at)

    def _replied(self, reply: match_pb2.PlayReply) -> None:
        sent_at = self.sent_at.pop(reply.request_id)
        if reply.HasField("receipt"):
            self.load.tally.acknowledged(sent_at)
        else:
            self.load.tally.refusal(reply.error.message)


class Load:
    """Keeps `matches` matches running on the service at `address`."""

    def __init__(
        self, address: str, token: Callable[[str], str], *, matches: int, mode: Mode
    ) -> None:
        self.mode = mode
        self.tally = Tally()
        self.numbers = itertools.count(1)
        self._address = address
        self._matches = matches
        self._metadata = {
            subject: (("authorization", f"Bearer {token(subject)}"),) for subject in PLAYERS
        }
        self._openers: set[asyncio.Task[None]] = set()
        # Keeps the request ids of several runs against one service apart.
        self._run = f"{time.time_ns():x}"
        self.stub: match_pb2_grpc.MatchServiceAsyncStub

    async def measure(self, warm_up_s: float, seconds: float) -> Tally:
        """Run the load; count for `seconds` after `warm_up_s`."""
        async with grpc.aio.insecure_channel(self._address) as channel:
            self.stub = match_pb2_grpc.MatchServiceStub(channel)
            self._players = [_Player(self, s, m) for s, m in self._metadata.items()]
            streams = [asyncio.create_task(player.run()) for player in self._players]
            for _ in range(self._matches):
                await self._open()
            await asyncio.sleep(warm_up_s)
            self.tally.counting, start = True, time.perf_counter()
            done, _ = await asyncio.wait(streams, timeout=seconds)
            self.tally.counting, self.tally.seconds = False, time.perf_counter() - start
            for task in [*streams, *self._openers, *(c for p in self._players for c in p.calls)]:
                task.cancel()
            for stream in done:
                stream.result()
        return self.tally

    def ended(self, player: _Player, match_id: str) -> None:
        """A watch reached its match's end: the first player sees to the next match."""
        if player is self._players[0]:
            self.tally.matches_ended += self.tally.counting
            opener = asyncio.create_task(self._open())
            self._openers.add(opener)
            opener.add_done_callback(self._openers.discard)

    async def _open(self) -> None:
        host = self._metadata[PLAYERS[0]]
        number = f"{self._run}.{next(self.numbers)}"
        created = await self.stub.CreateMatch(
            match_pb2.CreateMatchRequest(
                request_id=f"create.{number}", game="king_of_tokyo", seats=len(PLAYERS)
            ),
            metadata=host,
        )
        match_id = created.match_id
        for metadata in self._metadata.values():
            await self.stub.JoinMatch(
                match_pb2.JoinMatchRequest(
                    request_id=f"join.{number}", match_id=match_id, entropy=b"load" * 8
                ),
                metadata=metadata,
            )
        await self.stub.StartMatch(
            match_pb2.StartMatchRequest(request_id=f"start.{number}", match_id=match_id),
            metadata=host,
        )
        for player in self._players:
            player.watch(match_id)
