"""One partition's projection: the log on one side, Redis on the other, nothing skipped between.

Where to go on is decided by the watermark in Redis alone. Each pass reads the partition from its
first record, because admission needs them all; commits at or below the watermark are folded and
not written again. The watermark changes only together with the views and only from the value that
this projector expects, so a second projector of the same partition, a lost or a restored Redis are
noticed at the next write (or by `look`, when there is nothing to write), and the pass begins anew.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from services.common.admission import Admitted, VoidReason
from services.common.commits import Kind
from services.common.log.port import Log, LogError, LogUnavailable
from services.common.tail import Entry, PartitionTail
from services.common.views import (
    VIEW_VERSION,
    Batch,
    Conflict,
    MatchRow,
    Views,
    ViewsDamaged,
    ViewsUnavailable,
    Watermark,
)
from services.projector.figures import Figures
from services.projector.matches import Matches

_logger = logging.getLogger(__name__)

# Records read ahead of what is applied; beyond it the log is not read further.
_AHEAD_MAX: Final = 500
# One script call writes at most so many changed matches: Redis does nothing else meanwhile.
_ROWS_MAX: Final = 200
_BACKOFF_FIRST_S: Final = 0.05
_BACKOFF_MAX_S: Final = 2.0
# After so long without a pause the other tasks of the loop get their turn.
_TURN_S: Final = 0.004
# A log that ends before the watermark may be a broker that is not up to date yet: look again.
_SHORT_LOG_LOOKS: Final = 5
_SHORT_LOG_WAIT_S: Final = 0.5


class ViewsNewer(Exception):
    """The views are of a later version than this software makes: it must leave them alone."""


class _Again(Exception):
    """The stored watermark is behind what was written: begin a new pass."""


class PartitionProjector:
    """Keeps the views of one partition equal to the fold of the log, until it is cancelled."""

    def __init__(self, log: Log, views: Views, partition: int, figures: Figures) -> None:
        self._log = log
        self._views = views
        self._figures = figures
        self.partition = partition
        # The stored watermark as of the last successful write or reading.
        self.mark: Watermark | None = None
        # The highest offset that the views ever had here; readers have seen that much.
        self._reached = -1
        self._voids_counted = -1
        self._commits_counted = -1
        self._inbox: asyncio.Queue[Entry | None] = asyncio.Queue()
        self._matches = Matches(partition)
        # The last offset that this pass has folded.
        self._folded = -1
        self._rewrite: frozenset[str] = frozenset()

    @property
    def expected(self) -> Watermark | None:
        """What the stored watermark should be; None while a pass is being opened."""
        return self.mark

    def look(self) -> None:
        """Have the stored watermark compared with the expected one, if nothing else is going on."""
        if self._inbox.empty():
            self._inbox.put_nowait(None)

    async def run(self) -> None:
        """Project until cancelled. Returns only when the partition must not be projected further.

        That is: a record that newer software wrote, a damaged record, a log that lost records or
        was replaced, views of a newer version. The alarm metric says so, and the log why.
        """
        self._figures.stop(self.partition, stopped=False)
        backoff_s = _BACKOFF_FIRST_S
        is_damaged = False
        while True:
            try:
                if is_damaged:
                    await self._views.wipe(self.partition)
                    is_damaged = False
                await self._pass()
            except _Again:
                backoff_s = _BACKOFF_FIRST_S
            except ViewsDamaged as error:
                _logger.error("views of partition %d are damaged: %s", self.partition, error)
                self._figures.rebuild("damaged")
                is_damaged = True
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _BACKOFF_MAX_S)
            except (ViewsUnavailable, Conflict, LogUnavailable) as error:
                _logger.warning("views of partition %d: %s; trying again", self.partition, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _BACKOFF_MAX_S)
            except (LogError, ViewsNewer) as error:
                _logger.error("views of partition %d stand still: %s", self.partition, error)
                self._figures.stop(self.partition, stopped=True)
                return

    async def _pass(self) -> None:
        self.mark = None
        self._folded = -1
        self._matches = Matches(self.partition)
        self._inbox = asyncio.Queue(_AHEAD_MAX)
        mark = await self._open()
        self._rewrite = await self._views.parked(self.partition)
        self.mark = mark
        tail = PartitionTail(self._log, self.partition, on_void=self._count_void)
        reader = asyncio.create_task(self._read(tail, self._inbox))
        try:
            async for entries in self._batches(reader):
                await self._project(entries)
        except LogUnavailable:
            raise
        except LogError:
            await self._settle()
            raise
        finally:
            reader.cancel()
            # Waits without taking a cancellation of this task for that of the reader.
            await asyncio.wait((reader,))
            if not reader.cancelled():
                # Retrieved: what stopped the reader was raised by `_batches`, or matters no more.
                reader.exception()

    # -- opening ----------------------------------------------------------------------------------

    async def _open(self) -> Watermark:
        """The watermark to go on from; views that cannot be continued are begun afresh."""
        stored = await self._views.watermark(self.partition)
        cause = await self._unusable(stored)
        if cause:
            last = await self._log.end_offset(self.partition) - 1
            _logger.info("views of partition %d are built anew: %s", self.partition, cause)
            self._figures.rebuild(cause)
            self._reached = -1
            return await self._views.reset(self.partition, stored, last)
        assert stored is not None
        if stored.offset < self._reached > stored.target:
            # Redis came back with an older state: until it has caught up, nothing is current.
            self._figures.rebuild("set_back")
            older = replace(stored, target=self._reached)
            batch = Batch(self._views.keys(self.partition))
            await self._views.apply(self.partition, stored, older, batch)
            return older
        return stored

    async def _unusable(self, stored: Watermark | None) -> str:
        """Why the stored views cannot be continued; empty when they can."""
        if stored is None:
            return "missing"
        if stored.version > VIEW_VERSION:
            raise ViewsNewer(f"they are of version {stored.version}, this software makes older")
        if stored.version != VIEW_VERSION:
            return "version"
        if stored.log_id != self._log.log_id:
            return "other_log"
        for look in range(_SHORT_LOG_LOOKS):
            if await self._log.end_offset(self.partition) > stored.offset:
                return ""
            await asyncio.sleep(_SHORT_LOG_WAIT_S if look < _SHORT_LOG_LOOKS - 1 else 0)
        _logger.error(
            "partition %d of the log ends before offset %d, which its views hold: it lost records",
            self.partition,
            stored.offset,
        )
        return "log_shorter"

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, tail: PartitionTail, inbox: asyncio.Queue[Entry | None]) -> None:
        async with contextlib.aclosing(aiter(tail)) as entries:
            async for entry in entries:
                await inbox.put(entry)

    async def _batches(self, reader: asyncio.Task[None]) -> AsyncIterator[list[Entry]]:
        """What was read since the last batch; raises what stopped the reader, once all is out."""
        while True:
            entries = [entry for entry in await self._arrived(reader) if entry is not None]
            if entries:
                yield entries
            else:
                await self._look()

    async def _arrived(self, reader: asyncio.Task[None]) -> list[Entry | None]:
        inbox = self._inbox
        if inbox.empty():
            first = asyncio.ensure_future(inbox.get())
            try:
                await asyncio.wait((first, reader), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not first.done():
                    first.cancel()
            if not first.done() or first.cancelled():
                reader.result()
                raise AssertionError("a tail never ends by itself")
            arrived = [first.result()]
        else:
            arrived = [inbox.get_nowait()]
        while not inbox.empty():
            arrived.append(inbox.get_nowait())
        return arrived

    def _count_void(self, partition: int, offset: int, reason: VoidReason) -> None:
        # A second pass sees the same records again.
        if offset > self._voids_counted:
            self._voids_counted = offset
            self._figures.void(str(reason))

    # -- applying ---------------------------------------------------------------------------------

    @property
    def _deferring(self) -> bool:
        """Nothing is applied yet and nobody may look: each match need be written only once."""
        return self.mark is not None and self.mark.offset < 0 <= self.mark.target

    async def _project(self, entries: list[Entry]) -> None:
        """Fold a batch and write what it changed."""
        pause_at = time.monotonic() + _TURN_S
        for entry in entries:
            commit = entry.commit
            if commit is not None and isinstance(entry.verdict, Admitted):
                self._count_commit(entry.offset)
                if commit.kind is Kind.FACTS:
                    self._matches.apply(entry.offset, commit)
            self._folded = entry.offset
            if self._matches.waiting(finished_only=self._deferring) >= _ROWS_MAX:
                await self._write(entry.offset)
            if time.monotonic() > pause_at:
                await asyncio.sleep(0)
                pause_at = time.monotonic() + _TURN_S
        await self._write(entries[-1].offset)

    async def _settle(self) -> None:
        """Show what there is, when a rebuild can get no further than this."""
        if self._deferring and self._folded >= 0:
            assert self.mark is not None, "a rebuild has a watermark"
            self.mark = replace(self.mark, target=self._folded)
            await self._write(self._folded)

    async def _write(self, last: int) -> None:
        """Write the rows that changed, and that the views are as far as `last`."""
        mark = self.mark
        assert mark is not None, "writing begins after a pass was opened"
        self._figures.park(self.partition, self._matches.parked)
        if last < mark.offset:
            self._matches.discard(keep=self._rewrite)
            return
        if self._deferring and last < mark.target:
            if self._matches.waiting(finished_only=True) >= _ROWS_MAX:
                await self._put(self._matches.take(finished_only=True), mark)
            return
        rows = self._matches.take(after=mark.offset, also=self._rewrite)
        self._rewrite = frozenset()
        new = replace(mark, offset=last)
        if rows or new != mark:
            await self._put(rows, new)

    async def _put(self, rows: list[MatchRow], new: Watermark) -> None:
        """Write `rows` and set the watermark; waits as long as Redis is not there."""
        while len(rows) > _ROWS_MAX and self.mark is not None and self.mark.rebuilding:
            await self._apply(rows[:_ROWS_MAX], self.mark)
            rows = rows[_ROWS_MAX:]
        await self._apply(rows, new)

    async def _apply(self, rows: list[MatchRow], new: Watermark) -> None:
        backoff_s = _BACKOFF_FIRST_S
        mark = self.mark
        assert mark is not None, "writing begins after a pass was opened"
        while new.offset > mark.offset or rows:
            batch = Batch(self._views.keys(self.partition))
            for row in rows:
                # Until the watermark moves, two that build the same views do not notice each other.
                batch.put(row, keep_newer=mark.rebuilding)
            try:
                await self._views.apply(self.partition, mark, new, batch)
            except ViewsDamaged:
                raise
            except ViewsUnavailable as error:
                _logger.warning("views of partition %d: %s; trying again", self.partition, error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _BACKOFF_MAX_S)
                continue
            except Conflict as conflict:
                if not _same(conflict.stored, new):
                    self._figures.conflicts.inc()
                if new.offset == mark.offset or (mark.rebuilding and conflict.stored != new):
                    # A part of the views that others have completed meanwhile, perhaps with less
                    # in it than the parts that this one wrote before: begin from there.
                    raise _Again from conflict
                mark = self._adopted(conflict.stored)
                rows = [row for row in rows if row.offset > mark.offset]
                new = replace(new, offset=max(new.offset, mark.offset), target=mark.target)
                continue
            mark = new
            break
        self.mark = mark
        self._reached = max(self._reached, mark.offset)

    def _adopted(self, stored: Watermark | None) -> Watermark:
        """Go on from a stored watermark that is not the expected one.

        The views are a function of the log, so what another projector wrote is what this one would
        have written. Raises _Again when the views are behind what this one wrote, or others.
        """
        mark = self.mark
        assert mark is not None, "there was an expected watermark"
        if stored is None or (stored.log_id, stored.version) != (mark.log_id, mark.version):
            raise _Again
        if stored.offset < mark.offset:
            raise _Again
        return stored

    async def _look(self) -> None:
        """Compare the stored watermark with the expected one though there is nothing to write."""
        try:
            stored = await self._views.watermark(self.partition)
        except ViewsDamaged:
            raise
        except ViewsUnavailable:
            return
        if not _same(stored, self.mark):
            self._figures.conflicts.inc()
            self.mark = self._adopted(stored)

    def _count_commit(self, offset: int) -> None:
        # A second pass sees the same records again.
        if offset > self._commits_counted:
            self._commits_counted = offset
            self._figures.commits.inc()


def _same(one: Watermark | None, other: Watermark | None) -> bool:
    """Whether the script would take the one for the other."""
    if one is None or other is None:
        return one is other
    return (one.log_id, one.offset, one.version) == (other.log_id, other.offset, other.version)
