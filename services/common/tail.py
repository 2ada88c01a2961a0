"""Reading one partition through admission, endlessly: match owner, projector and replay alike.

Nothing is skipped silently: the position moves only past records that were admitted or counted as
void; what must not be passed stops the tail with an alarm (reliability.md, A11).
"""

import asyncio
import heapq
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, NamedTuple

from services.common.admission import Admission, Verdict, Void, VoidReason
from services.common.commits import ParsedCommit
from services.common.log.port import Log, LogError, LogTruncated, LogUnavailable, Record

_logger = logging.getLogger(__name__)

_BACKOFF_FIRST_S: Final = 0.05
_BACKOFF_MAX_S: Final = 2.0
# So many commits that were announced by `expect` are kept; the oldest go first.
_EXPECTED_MAX: Final = 4096
# After so many records without a pause the other tasks of the loop get their turn.
_TURN_RECORDS: Final = 64


class Entry(NamedTuple):
    """One record as it was decided about; no commit when its value is none."""

    offset: int
    commit: ParsedCommit | None
    verdict: Verdict


class PartitionTail:
    """Every record of one partition with its verdict, from offset 0 on, by ``async for``.

    One task iterates, once. While the log is unavailable the tail waits and tries again; on
    UnreadableRecord, LogTruncated, LogReplaced and LogCorrupt it stops and raises, here and in
    `wait_for`. `on_void` is told (partition, offset, reason) of every void record.
    """

    def __init__(
        self,
        log: Log,
        partition: int,
        *,
        on_void: Callable[[int, int, VoidReason], None] | None = None,
    ) -> None:
        self._log = log
        self._partition = partition
        self._on_void = on_void
        self._position = -1
        self._stopped: BaseException | None = None
        self._started = False
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._waiter_count = 0
        self._expected: dict[bytes, ParsedCommit] = {}
        self.admission = Admission(log.log_id, partition, log.partitions)
        self.voids: dict[VoidReason, int] = {}

    @property
    def partition(self) -> int:
        """The partition that is read."""
        return self._partition

    @property
    def position(self) -> int:
        """Offset of the last record whose handling is finished, -1 at first.

        Finished: whoever iterates has come back for the next one.
        """
        return self._position

    def expect(self, commit: ParsedCommit) -> None:
        """Announce a commit that this process appends: read back, it need not be parsed again.

        Only saves time. It is recognised by its very bytes, so the verdict is the same.
        """
        self._expected[commit.value] = commit
        if len(self._expected) > _EXPECTED_MAX:
            del self._expected[next(iter(self._expected))]

    async def wait_for(self, offset: int) -> None:
        """Wait until `position` is at least `offset`; raises what stopped the tail."""
        if self._position >= offset:
            return
        if self._stopped is not None:
            raise self._stopped.with_traceback(None)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiter_count += 1
        heapq.heappush(self._waiters, (offset, self._waiter_count, done))
        await done

    async def catch_up(self) -> int:
        """Wait until everything that is in the log now was handled; return the last offset.

        Raises LogUnavailable, and what stopped the tail.
        """
        last = await self._log.end_offset(self._partition) - 1
        await self.wait_for(last)
        return last

    async def __aiter__(self) -> AsyncGenerator[Entry, None]:
        """The entries, endless."""
        assert not self._started, "a tail is iterated once"
        self._started = True
        try:
            async with aclosing(self._entries()) as entries:
                async for entry in entries:
                    yield entry
                    self._finish(entry.offset)
        except LogError as error:
            _logger.error("partition %d is read no further: %s", self._partition, error)
            self._stop(error)
            raise
        finally:
            self._stop(LogUnavailable(f"partition {self._partition} is no longer read"))

    async def _entries(self) -> AsyncGenerator[Entry, None]:
        backoff_s = _BACKOFF_FIRST_S
        while True:
            records = self._log.tail(self._partition, self.admission.next_offset)
            try:
                async with aclosing(records):
                    async for record in records:
                        backoff_s = _BACKOFF_FIRST_S
                        yield self._decide(record)
                        if record.offset % _TURN_RECORDS == 0:
                            await asyncio.sleep(0)
            except LogUnavailable as error:
                if backoff_s == _BACKOFF_FIRST_S:
                    _logger.warning("partition %d: %s; trying again", self._partition, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _BACKOFF_MAX_S)

    def _decide(self, record: Record) -> Entry:
        expected = self.admission.next_offset
        if record.offset != expected:
            raise LogTruncated(
                f"offsets {expected} to {record.offset - 1} of partition {self._partition} are gone"
            )
        commit = self._expected.pop(record.value, None) if self._expected else None
        if commit is not None:
            verdict = self.admission.offer(record.offset, commit)
        else:
            commit, verdict = self.admission.offer_value(record.offset, record.value)
        if isinstance(verdict, Void):
            self._count_void(record.offset, verdict.reason)
        return Entry(record.offset, commit, verdict)

    def _count_void(self, offset: int, reason: VoidReason) -> None:
        self.voids[reason] = self.voids.get(reason, 0) + 1
        if self._on_void is not None:
            self._on_void(self._partition, offset, reason)

    def _finish(self, offset: int) -> None:
        self._position = offset
        while self._waiters and self._waiters[0][0] <= offset:
            done = heapq.heappop(self._waiters)[2]
            if not done.done():
                done.set_result(None)

    def _stop(self, error: BaseException) -> None:
        if self._stopped is not None:
            return
        self._stopped = error
        for _, _, done in self._waiters:
            if not done.done():
                done.set_exception(error)
        self._waiters.clear()
