"""Writing to one partition: claims, the epoch, and what became of each commit.

An acknowledged append proves nothing and a failed one disproves nothing: the outcome of a commit
is what admission says when it is read back. Where that does not come, the writer appends a claim
of its own as a barrier: once that counts, whatever has not been admitted under the epoch before
never will be (architecture.md, section 4).
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from services.common.admission import Admitted
from services.common.commits import Kind, ParsedCommit, build_claim, build_release, parse_commit
from services.common.errors import ApiError, refuse
from services.common.log import Log, LogError, LogUnavailable, RecordTooLarge
from services.common.tail import Entry, PartitionTail
from services.match.limits import Limits
from services.match.outcomes import NotApplied, Superseded

_logger = logging.getLogger(__name__)

_CLAIM_WAIT_S: Final = 10.0
_BACKOFF_FIRST_S: Final = 0.02
_BACKOFF_MAX_S: Final = 1.0


class Phase(Enum):
    """Where the writer stands."""

    # The claim that makes this process the owner is under way; the partition may still be read.
    CLAIMING = "claiming"
    SERVING = "serving"
    # Serving, but a commit's outcome is unknown: nothing is written until the barrier is read back.
    BARRIER = "barrier"
    # Another process claimed the partition.
    LOST = "lost"
    CLOSED = "closed"


class WriterListener(Protocol):
    """What the owner of the partition wants to know."""

    def serving(self) -> None:
        """The partition is ours from now on."""

    def resumed(self) -> None:
        """Commits may be appended again, after a barrier."""

    def lost(self) -> None:
        """The partition is another process's from now on."""

    def stuck(self, error: ApiError) -> None:
        """The outcome of what is under way stays unknown for longer than callers should wait."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes: a name for people, and where the process serves gRPC."""

    writer: str
    address: str


@dataclass(slots=True, eq=False)
class _Pending:
    outcome: "asyncio.Future[int]"
    admitted: Callable[[], None]
    since: float


@dataclass(slots=True)
class _Signals:
    """What the tail told about claims and releases, for the task that waits for it."""

    # One of our claims was read back, whatever the verdict.
    claim_read: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Writer:
    """The one who appends to a partition. `read` must be called for every entry of its tail."""

    def __init__(self, log: Log, tail: PartitionTail, identity: Identity, limits: Limits) -> None:
        """`tail` is the partition's, read by somebody else who calls `read`."""
        self._log = log
        self._tail = tail
        self._identity = identity
        self._limits = limits
        self._phase = Phase.CLAIMING
        self._listener: WriterListener | None = None
        # Serving under this epoch; 0 while the partition is not ours.
        self.epoch = 0
        self._pending: dict[bytes, _Pending] = {}
        self._claims: set[bytes] = set()
        self._signals = _Signals()
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def phase(self) -> Phase:
        """Where the writer stands."""
        return self._phase

    @property
    def accepts(self) -> bool:
        """Whether commands may come: now, or after a barrier that is under way."""
        return self._phase in (Phase.SERVING, Phase.BARRIER)

    def start(self, listener: WriterListener) -> None:
        """Begin to claim the partition."""
        self._listener = listener
        self._spawn(self._claim(take_over=True))

    async def ready(self) -> None:
        """Wait until commits may be appended. Raises Superseded when the partition is not ours."""
        while self._phase is not Phase.SERVING:
            if not self.accepts:
                raise Superseded
            await self._ready.wait()

    async def wait_accepting(self, seconds: float) -> bool:
        """Wait until the partition is ours, at most so long; whether it is."""
        if self._phase is Phase.CLAIMING:
            try:
                async with asyncio.timeout(seconds):
                    await self._ready.wait()
            except TimeoutError:
                return False
        return self.accepts

    # -- commits ----------------------------------------------------------------------------------

    async def append(self, commit: ParsedCommit, admitted: Callable[[], None]) -> int:
        """Append the commit and wait until it was read back as admitted; its offset.

        `admitted` is called at that moment, before anything that comes after it is read. Raises
        NotApplied when the commit does not count and never will, LogUnavailable or RecordTooLarge
        when the log did not take it. Ends only when the outcome is known.
        """
        if self._phase is not Phase.SERVING:
            raise NotApplied
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[int] = loop.create_future()
        self._pending[commit.hash] = _Pending(outcome, admitted, loop.time())
        self._tail.expect(commit)
        self._spawn(self._append(commit))
        return await outcome

    async def _append(self, commit: ParsedCommit) -> None:
        try:
            await self._log.append(commit.partition, commit.match_id.encode(), commit.value)
        except (LogUnavailable, RecordTooLarge) as error:
            pending = self._pending.pop(commit.hash, None)
            if pending is not None:
                _fail(pending.outcome, error)
        except Exception as error:
            if commit.hash in self._pending:
                self._doubt(f"an append ended with {type(error).__name__}: {error}")

    def check(self) -> None:
        """Called now and then: a commit that is not read back for long needs a barrier."""
        oldest = next(iter(self._pending.values()), None)
        if oldest is not None:
            waited_s = asyncio.get_running_loop().time() - oldest.since
            if waited_s > self._limits.outcome_wait_s:
                self._doubt(f"a commit was not read back for {waited_s:.0f} s")

    def read(self, entry: Entry) -> None:
        """Take note of the next entry of the partition."""
        commit = entry.commit
        if commit is None:
            return
        admitted = isinstance(entry.verdict, Admitted)
        match commit.kind:
            case Kind.FACTS:
                self._facts_read(entry.offset, commit.hash, admitted)
            case Kind.CLAIM:
                self._claim_read(commit, admitted, entry.offset + 1)
            case Kind.RELEASE if admitted:
                self._release_read()
            case _:
                pass

    def is_pending(self, commit: ParsedCommit) -> bool:
        """Whether the commit is one that this process waits for."""
        return commit.hash in self._pending

    def _facts_read(self, offset: int, digest: bytes, admitted: bool) -> None:
        pending = self._pending.get(digest)
        if pending is None:
            return
        if not admitted:
            # A copy of it may count yet: only a barrier can tell.
            self._doubt("a commit of ours was read back as void")
            return
        del self._pending[digest]
        pending.admitted()
        if not pending.outcome.done():
            pending.outcome.set_result(offset)

    def _settle_all(self, error: NotApplied) -> None:
        """A new epoch, or none: what was not admitted by now never will be."""
        pending, self._pending = self._pending, {}
        for each in pending.values():
            _fail(each.outcome, error)

    # -- claims -----------------------------------------------------------------------------------

    def _claim_read(self, commit: ParsedCommit, admitted: bool, epoch: int) -> None:
        ours = commit.hash in self._claims
        if admitted:
            self._settle_all(NotApplied() if ours else Superseded())
        if ours:
            self._claims.discard(commit.hash)
            if admitted and self._phase is not Phase.CLOSED:
                self._serve(epoch)
            self._signals.claim_read.set()
        elif admitted and self.accepts:
            _logger.warning(
                "partition %d was claimed by %s (%s)",
                *(self._tail.partition, commit.writer, commit.address),
            )
            self._lose()

    def _serve(self, epoch: int) -> None:
        was_ours = self.accepts
        self.epoch = epoch
        self._phase = Phase.SERVING
        self._ready.set()
        if self._listener is not None:
            if was_ours:
                self._listener.resumed()
            else:
                self._listener.serving()

    def _lose(self) -> None:
        self.epoch = 0
        self._phase = Phase.LOST
        self._signals.released.clear()
        self._wake_waiting()
        if self._listener is not None:
            self._listener.lost()
        self._spawn(self._reclaim())

    def _wake_waiting(self) -> None:
        """Whoever waits in `ready` shall look at the phase again."""
        self._ready.set()
        self._ready.clear()

    def _doubt(self, why: str) -> None:
        """The outcome of something is unknown: let a barrier tell."""
        if self._phase is not Phase.SERVING:
            return
        _logger.warning("partition %d: %s; claiming again", self._tail.partition, why)
        self._phase = Phase.BARRIER
        self._ready.clear()
        self._spawn(self._claim(take_over=False))
        self._spawn(self._watch_barrier(self.epoch))

    async def _watch_barrier(self, epoch: int) -> None:
        """Do not let callers wait without end while the log is out of reach."""
        await asyncio.sleep(self._limits.outcome_wait_s)
        while self._phase is Phase.BARRIER and self.epoch == epoch and self._listener is not None:
            self._listener.stuck(
                refuse(
                    "LOG_UNAVAILABLE",
                    "The log cannot be reached. Whether the command was applied is not known; "
                    "sending it again with the same request_id is safe.",
                )
            )
            await asyncio.sleep(1.0)

    async def _claim(self, *, take_over: bool) -> None:
        """Append claims until one of ours counts, or the partition turns out to be another's."""
        phase = self._phase
        backoff_s = _BACKOFF_FIRST_S
        while self._phase is phase:
            try:
                if take_over:
                    # The end of the log as it is now tells which epoch to claim from.
                    await self._tail.catch_up()
                if self._phase is phase:
                    await self._append_claim()
            except LogError as error:
                # Not written, or unknown, or the tail stopped (its owner hears of that).
                if backoff_s == _BACKOFF_FIRST_S:
                    _logger.warning(
                        "partition %d: no claim yet: %s; trying on", self._tail.partition, error
                    )
            if self._phase is not phase:
                return
            await asyncio.sleep(backoff_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            backoff_s = min(_BACKOFF_MAX_S, backoff_s * 2)

    async def _append_claim(self) -> None:
        """Append one claim, and wait until one of ours is read back, but not for ever."""
        value = build_claim(
            log_id=self._log.log_id,
            partition=self._tail.partition,
            writer=self._identity.writer,
            address=self._identity.address,
            previous_epoch=self._tail.admission.epoch,
        )
        self._claims.add(parse_commit(value).hash)
        self._signals.claim_read.clear()
        await self._log.append(self._tail.partition, b"", value)
        try:
            async with asyncio.timeout(_CLAIM_WAIT_S):
                await self._signals.claim_read.wait()
        except TimeoutError:
            _logger.warning("partition %d: a claim is not read back", self._tail.partition)

    async def _reclaim(self) -> None:
        """Take the partition back that is still assigned to us, should the other not keep it."""
        patience_s = self._limits.reclaim_s * random.uniform(1.0, 1.5)  # noqa: S311
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._signals.released.wait()
        if self._phase is Phase.LOST:
            self._phase = Phase.CLAIMING
            await self._claim(take_over=True)

    # -- the end ----------------------------------------------------------------------------------

    def _release_read(self) -> None:
        # After a release nothing under its epoch counts: a barrier, like a claim.
        self._settle_all(Superseded())
        self._signals.released.set()
        # Not by us: only who knows our epoch could write it.
        self._doubt("the partition was released")

    async def close(self) -> None:
        """Append no more, wait a little for what is under way, then release the partition.

        What is still unknown then ends with LogUnavailable. The tail must still be read.
        """
        served, self._phase = self.epoch if self.accepts else 0, Phase.CLOSED
        self.epoch = 0
        self._wake_waiting()
        outcomes = [pending.outcome for pending in self._pending.values()]
        if outcomes:
            await asyncio.wait(outcomes, timeout=self._limits.release_wait_s)
        if served:
            await self._release(served)
        unknown = LogUnavailable("the outcome is not known: the process let go of the partition")
        pending_left, self._pending = self._pending, {}
        for pending in pending_left.values():
            _fail(pending.outcome, unknown)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _release(self, epoch: int) -> None:
        value = build_release(
            log_id=self._log.log_id,
            partition=self._tail.partition,
            writer=self._identity.writer,
            epoch=epoch,
        )
        try:
            async with asyncio.timeout(self._limits.release_wait_s):
                offset = await self._log.append(self._tail.partition, b"", value)
                await self._tail.wait_for(offset)
        except (LogError, TimeoutError) as error:
            # The next owner's claim works without it.
            _logger.info("partition %d was not released: %s", self._tail.partition, error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fail(outcome: "asyncio.Future[int]", error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)
