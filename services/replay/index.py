"""Where each match lies in the log: a partition read through admission, its commits forgotten.

What is kept per match is admission's own head (offsets of the first and last commit, sequence,
hash); and per partition the few places where its epoch changed.
"""

import asyncio
import logging
from bisect import bisect_left
from typing import Final

from services.common.admission import Admitted, Head
from services.common.commits import Kind
from services.common.errors import refuse
from services.common.log.port import Log, LogError, LogUnavailable
from services.common.tail import PartitionTail

_logger = logging.getLogger(__name__)

_RESTART_S: Final = 5.0


class PartitionIndex:
    """The index of one partition; `run` keeps it up to date until it is cancelled."""

    def __init__(self, log: Log, partition: int) -> None:
        self._log = log
        self.partition = partition
        self._tail = PartitionTail(log, partition)
        # Offsets of admitted claims and releases, and the epoch after each (0: nobody's).
        self._changed: list[int] = []
        self._epochs: list[int] = []
        # Why the partition is read no further; empty while it is.
        self.stopped = ""

    async def run(self) -> None:
        """Read the partition. Returns when it must not be read further; `stopped` says why."""
        while True:
            try:
                await self._read()
            except LogUnavailable as error:
                _logger.warning("index of partition %d: %s; trying again", self.partition, error)
            except LogError as error:
                self.stopped = str(error)
                return
            await asyncio.sleep(_RESTART_S)
            self._tail = PartitionTail(self._log, self.partition)
            self._changed.clear()
            self._epochs.clear()

    async def _read(self) -> None:
        async for entry in self._tail:
            commit = entry.commit
            if commit is None or not isinstance(entry.verdict, Admitted):
                continue
            if commit.kind is not Kind.FACTS:
                self._changed.append(entry.offset)
                self._epochs.append(entry.verdict.epoch if commit.kind is Kind.CLAIM else 0)

    def head(self, match_id: str) -> Head | None:
        """Where the match stands, as far as the log was read."""
        return self._tail.admission.head(match_id)

    async def catch_up(self, timeout: float) -> None:
        """Wait until all that is in the log now was read; at most `timeout` seconds.

        Raises ApiError LOG_UNAVAILABLE when it was not.
        """
        if self.stopped:
            raise refuse("LOG_UNAVAILABLE", f"This part of the log cannot be read: {self.stopped}.")
        try:
            async with asyncio.timeout(timeout):
                await self._tail.catch_up()
        except TimeoutError:
            raise refuse("LOG_UNAVAILABLE", "The log is still being read; try again.") from None
        except LogError as error:
            raise refuse("LOG_UNAVAILABLE", f"The log cannot be read: {error}.") from error

    def epoch_at(self, offset: int) -> int:
        """The epoch under which a record at `offset` had to be written; 0: none could be."""
        at = bisect_left(self._changed, offset) - 1
        return self._epochs[at] if at >= 0 else 0
