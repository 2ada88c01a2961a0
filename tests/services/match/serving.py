"""Match processes on real logs behind the real edge, and players who talk to them."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import grpc.aio
from redis.asyncio import Redis

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from engine import Answer
from services.common.admission import Admitted
from services.common.auth import Verifier, make_token, secret_token_key
from services.common.commits import Cause, Kind, ParsedCommit, parse_commit
from services.common.errors import ApiError, parse_error
from services.common.keys import KeyRing
from services.common.log import AppendUnknown, Log, LogUnavailable, OwnershipListener, Record
from services.common.metrics import Metrics
from services.common.prompts_wire import answer_to_wire
from services.common.server import GrpcServer
from services.common.settings import Address, Settings
from services.common.tail import PartitionTail
from services.common.verify import Placed
from services.match.limits import Limits
from services.match.node import MatchNode
from services.match.service import SERVICE_NAME

KEY = secret_token_key(b"a secret for tests, 32 bytes and more")
KEYS = KeyRing("k1", {"k1": bytes(range(32))})
GAME = "test_high_roll"
# Quick enough for tests, generous enough for a busy machine.
LIMITS = Limits(takeover_grace_s=0.2, takeover_wait_s=5.0, release_wait_s=2.0, reclaim_s=0.3)


class Shares:
    """Ownership as the test says: `give` and `take` partitions; hints are what was given."""

    def __init__(self, partitions: Iterable[int] = (), hints: dict[int, str] | None = None) -> None:
        self._first = frozenset(partitions)
        self._owned: frozenset[int] = frozenset()
        self._listener: OwnershipListener | None = None
        # Shared by the processes of a test.
        self.hints: dict[int, str] = hints if hints is not None else {}

    @property
    def owned(self) -> frozenset[int]:
        return self._owned

    async def start(self, listener: OwnershipListener) -> None:
        self._listener = listener
        await self.give(self._first)

    async def close(self) -> None:
        await self.take(self._owned)

    async def give(self, partitions: Iterable[int]) -> None:
        assert self._listener is not None
        self._owned |= frozenset(partitions)
        await self._listener.assigned(frozenset(partitions))

    async def take(self, partitions: Iterable[int]) -> None:
        assert self._listener is not None
        gone = frozenset(partitions)
        self._owned -= gone
        await self._listener.revoked(gone)

    async def owner_hint(self, partition: int, *, refresh: bool = False) -> str | None:
        return self.hints.get(partition)


@dataclass
class FaultyLog:
    """A log whose next appends of facts go wrong as the test says, in the order given.

    lose: written, and nobody is told. unknown: not written, and nobody knows. refuse: not written.
    late: unknown at first, written a little later. hold: written when the test sets `release`.
    """

    inner: Log
    faults: list[str] = field(default_factory=list)
    # Faults of claims, separately.
    claim_faults: list[str] = field(default_factory=list)
    late_s: float = 0.2
    release: asyncio.Event = field(default_factory=asyncio.Event)
    # Readers see nothing new while this is not set.
    readable: asyncio.Event = field(default_factory=asyncio.Event)
    appended: int = 0
    held: int = 0

    def __post_init__(self) -> None:
        self.readable.set()

    @property
    def partitions(self) -> int:
        return self.inner.partitions

    @property
    def log_id(self) -> str:
        return self.inner.log_id

    async def start(self) -> None:
        await self.inner.start()

    async def close(self) -> None:
        await self.inner.close()

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        faults = self.faults if key else self.claim_faults
        fault = faults.pop(0) if faults else ""
        self.appended += bool(key)
        match fault:
            case "lose":
                await self.inner.append(partition, key, value)
                raise AppendUnknown("the answer was lost")
            case "unknown":
                raise AppendUnknown("no answer")
            case "refuse":
                raise LogUnavailable("not now")
            case "late":
                asyncio.get_running_loop().create_task(self._later(partition, key, value))
                raise AppendUnknown("no answer yet")
            case "twice":
                await self.inner.append(partition, key, value)
            case "hold":
                self.held += 1
                await self.release.wait()
        return await self.inner.append(partition, key, value)

    async def _later(self, partition: int, key: bytes, value: bytes) -> None:
        await asyncio.sleep(self.late_s)
        await self.inner.append(partition, key, value)

    async def tail(self, partition: int, from_offset: int) -> AsyncGenerator[Record, None]:
        records = self.inner.tail(partition, from_offset)
        async with contextlib.aclosing(records):
            async for record in records:
                await self.readable.wait()
                yield record

    def read(
        self, partition: int, from_offset: int, to_offset: int
    ) -> AsyncGenerator[Record, None]:
        return self.inner.read(partition, from_offset, to_offset)

    async def end_offset(self, partition: int) -> int:
        return await self.inner.end_offset(partition)


@dataclass
class Process:
    """One running match process."""

    node: MatchNode
    server: GrpcServer
    metrics: Metrics
    ownership: Any
    channel: grpc.aio.Channel

    @property
    def address(self) -> str:
        return str(self.server.address)

    def player(self, subject: str, **claims: Any) -> "Player":
        """Somebody who calls this process."""
        return Player(self.channel, subject, claims)


@contextlib.asynccontextmanager
async def process(
    log: Log,
    *,
    ownership: Any = None,
    redis: "Redis | None" = None,
    limits: Limits = LIMITS,
    keys: KeyRing = KEYS,
) -> AsyncIterator[Process]:
    """A match process for the length of the block; it owns everything unless told otherwise."""
    metrics = Metrics("match")
    server = GrpcServer(
        Address("127.0.0.1", 0),
        services=[SERVICE_NAME],
        metrics=metrics,
        verifier=Verifier([KEY]),
    )
    address = str(server.bind())
    if ownership is None:
        ownership = Shares(range(log.partitions))
    for partition in getattr(ownership, "_first", ()):
        ownership.hints[partition] = address
    nowhere = redis or Redis(host="127.0.0.1", port=1)
    node = MatchNode(
        settings=Settings(node="test"),
        log=log,
        ownership=ownership,
        redis=nowhere,
        keys=keys,
        metrics=metrics,
        limits=limits,
        address=address,
    )
    node.register(server.server)
    await server.start()
    await node.start()
    options = [("grpc.max_send_message_length", -1)]
    channel = grpc.aio.insecure_channel(address, options=options)
    try:
        yield Process(node, server, metrics, ownership, channel)
    finally:
        await node.close()
        await channel.close()
        await server.close(0)
        if redis is None:
            await nowhere.aclose()


_numbers = count(1)


class Player:
    """One caller; methods raise ApiError, nothing is retried."""

    def __init__(
        self, channel: grpc.aio.Channel, subject: str, claims: Mapping[str, Any] | None = None
    ) -> None:
        self.subject = subject
        self.stub: Any = match_pb2_grpc.MatchServiceStub(channel)
        token = make_token(KEY, subject, **(claims or {}))
        self.metadata: tuple[tuple[str, str], ...] = (("authorization", f"Bearer {token}"),)

    async def call(self, method: str, request: Any, **options: Any) -> Any:
        try:
            return await getattr(self.stub, method)(request, metadata=self.metadata, **options)
        except grpc.aio.AioRpcError as error:
            raise parse_error(error) from error

    async def create(self, seats: int = 2, **fields: Any) -> Any:
        fields = {"request_id": new_id(), "game": GAME, "seats": seats, **fields}
        return await self.call("CreateMatch", match_pb2.CreateMatchRequest(**fields))

    async def join(self, match_id: str, **fields: Any) -> Any:
        fields = {"request_id": new_id(), "match_id": match_id, **fields}
        return await self.call("JoinMatch", match_pb2.JoinMatchRequest(**fields))

    async def start(self, match_id: str, **fields: Any) -> Any:
        fields = {"request_id": new_id(), "match_id": match_id, **fields}
        return await self.call("StartMatch", match_pb2.StartMatchRequest(**fields))

    async def answer(self, match_id: str, prompt_id: str, *picks: str, **fields: Any) -> Any:
        request = answering(match_id, prompt_id, *picks, **fields)
        return await self.call("SubmitAnswer", request)

    def watch(self, match_id: str, from_sequence: int = 0) -> Any:
        request = match_pb2.WatchMatchRequest(match_id=match_id, from_sequence=from_sequence)
        return self.stub.WatchMatch(request, metadata=self.metadata)

    async def updates(
        self, match_id: str, from_sequence: int = 0, *, until: int = 0
    ) -> list[match_pb2.Update]:
        """What a watch gives up to the sequence `until`, or to its end."""
        seen = []
        call = self.watch(match_id, from_sequence)
        try:
            async for response in call:
                seen.append(response.update)
                if response.update.sequence == until:
                    break
        except grpc.aio.AioRpcError as error:
            raise parse_error(error) from error
        finally:
            call.cancel()
        return seen

    async def prompts(self, match_id: str, sequence: int = 1) -> list[match_pb2.Prompt]:
        """The caller's open prompts as of now."""
        call = self.watch(match_id, sequence)
        try:
            async for response in call:
                if response.update.live:
                    return list(response.update.prompts)
        finally:
            call.cancel()
        return []


def answering(
    match_id: str, prompt_id: str, *picks: str, **fields: Any
) -> match_pb2.SubmitAnswerRequest:
    """The request that picks these options."""
    fields = {"request_id": new_id(), "answer": answer_to_wire(Answer(picks=picks)), **fields}
    return match_pb2.SubmitAnswerRequest(match_id=match_id, prompt_id=prompt_id, **fields)


def new_id() -> str:
    """A request id of its own."""
    return f"r{next(_numbers)}"


@dataclass
class Begun:
    """A match that has begun, its players in seat order; the first is its host."""

    match_id: str
    players: list[Player]
    sequence: int


async def begin(where: Process, names: Iterable[str] = ("ann", "bob"), **fields: Any) -> Begun:
    """Open a match, seat everybody, start it."""
    players = [where.player(name) for name in names]
    created = await players[0].create(len(players), **fields)
    for player in players:
        await player.join(created.match_id)
    started = await players[0].start(created.match_id)
    return Begun(created.match_id, players, started.receipt.sequence)


async def play_out(
    match: Begun,
    choose: Callable[[match_pb2.Prompt], str] | None = None,
    *,
    patient: bool = False,
) -> int:
    """Answer all prompts to the end of the match; the last sequence.

    `patient`: what may be sent again is sent again, with the same request id.
    """
    pick = choose or (lambda prompt: prompt.options[0].option)
    ends = await asyncio.gather(*(_play(match, p, pick, patient) for p in match.players))
    return max(ends)


async def _play(
    match: Begun, player: Player, pick: Callable[[match_pb2.Prompt], str], patient: bool
) -> int:
    sequence = 0
    while True:
        try:
            async for response in player.watch(match.match_id, sequence + 1):
                update = response.update
                assert update.sequence == sequence + 1
                sequence = update.sequence
                for prompt in update.prompts:
                    request = answering(match.match_id, prompt.prompt_id, pick(prompt))
                    await _answer(player, request, patient)
            return sequence
        except grpc.aio.AioRpcError as error:
            if not (patient and parse_error(error).retryable):
                raise
            await asyncio.sleep(0.02)


async def _answer(player: Player, request: match_pb2.SubmitAnswerRequest, patient: bool) -> None:
    while True:
        try:
            await player.call("SubmitAnswer", request)
        except ApiError as error:
            if error.reason in ("PROMPT_CLOSED", "MATCH_FINISHED"):
                return
            if not (patient and error.retryable):
                raise
            await asyncio.sleep(0.02)
        else:
            return


async def records(log: Log, partition: int) -> list[Record]:
    """Everything that lies in the partition."""
    end = await log.end_offset(partition)
    return [record async for record in log.read(partition, 0, end)]


async def admitted(log: Log) -> dict[str, list[ParsedCommit]]:
    """Every match's commits that count, by match id, as any reader decides."""
    found: dict[str, list[ParsedCommit]] = {}
    for partition in range(log.partitions):
        end = await log.end_offset(partition)
        if not end:
            continue
        entries = PartitionTail(log, partition).__aiter__()
        async with contextlib.aclosing(entries):
            async for entry in entries:
                commit = entry.commit
                counts = isinstance(entry.verdict, Admitted)
                if commit is not None and counts and commit.kind is Kind.FACTS:
                    found.setdefault(commit.match_id, []).append(commit)
                if entry.offset == end - 1:
                    break
    return found


async def placed(log: Log, match_id: str) -> list[Placed]:
    """The match's commits that count, as a verifier is given them."""
    counted = {commit.hash for commit in (await admitted(log))[match_id]}
    found = []
    for partition in range(log.partitions):
        for record in await records(log, partition):
            commit = parse_commit(record.value)
            if commit.hash in counted:
                # Of what was written twice the first counts.
                counted.remove(commit.hash)
                found.append(Placed(record.offset, commit))
    return found


def cause_of(commit: ParsedCommit) -> Cause:
    """Who or what brought it about; commits of matches always say so."""
    assert commit.cause is not None
    return commit.cause


async def size(log: Log) -> int:
    """How many records the log holds."""
    return sum([await log.end_offset(partition) for partition in range(log.partitions)])


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens soon, however busy the machine is."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - conditions of objects that know no events
            await asyncio.sleep(0.01)


def refused(error: Any) -> str:
    """The reason of a caught ApiError (pytest.raises)."""
    caught: ApiError = error.value
    return caught.reason
