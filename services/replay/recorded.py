"""Recorded matches: read from the log by their range of offsets, kept in a bounded cache."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from engine import MatchState
from services.common.admission import Head
from services.common.commits import BadCommit, Kind, ParsedCommit, parse_commit
from services.common.errors import refuse
from services.common.log.port import Log, LogError
from services.common.verify import Placed
from services.common.viewfold import EVERYTHING, MatchFold
from services.replay.index import PartitionIndex

CACHE_BYTES: Final = 64 << 20
# A decoded commit takes about so many times the bytes of its record.
_DECODED_TIMES: Final = 6
_YIELD_RECORDS: Final = 256


@dataclass(slots=True)
class RecordedMatch:
    """A match as far as it was read: its admitted commits in order, sequence 1 first."""

    match_id: str
    partition: int
    commits: tuple[Placed, ...]
    size: int
    _whole: MatchState | None = field(default=None, repr=False)

    @property
    def last(self) -> ParsedCommit:
        """The newest commit."""
        return self.commits[-1].commit

    @property
    def finished(self) -> bool:
        """The match is over: nothing is secret any more."""
        return self.last.final

    def fold(self, sequence: int, viewers: Sequence[int] | None = None) -> MatchFold:
        """The states after the commit `sequence`, for all viewers or for some."""
        fold = MatchFold(viewers)
        for placed in self.commits[:sequence]:
            fold.apply(placed.commit.facts(), final=placed.commit.final)
        return fold

    def whole(self) -> MatchState:
        """The newest state with nothing hidden: for deciding who may see what, not for showing."""
        if self._whole is None:
            self._whole = self.fold(len(self.commits), (EVERYTHING,)).state(EVERYTHING)
        return self._whole

    def seat_of(self, player: str) -> int:
        """The seat of the player with this token subject; 0: none."""
        seats = (each.seat for each in self.whole().players if player and each.player == player)
        return next(seats, 0)


class Library:
    """Finds matches by the indexes and reads them from the log."""

    def __init__(
        self, log: Log, indexes: Sequence[PartitionIndex], *, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """`indexes`: one for each partition, in order."""
        self._log = log
        self._indexes = indexes
        self._cache: OrderedDict[str, RecordedMatch] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._cached = 0
        # One reading of a partition at a time: whoever waits finds the match read already.
        self._locks = [asyncio.Lock() for _ in indexes]

    def epoch_at(self, match: RecordedMatch, offset: int) -> int:
        """The epoch that the match's partition had at `offset`."""
        return self._indexes[match.partition].epoch_at(offset)

    async def find(
        self, match_id: str, partition: int, *, sequence: int = 0, timeout: float
    ) -> RecordedMatch:
        """The match, at least up to `sequence`; 0: up to its newest commit.

        Raises ApiError MATCH_NOT_FOUND, and LOG_UNAVAILABLE when the log cannot be read that far
        within `timeout` seconds.
        """
        index = self._indexes[partition]
        head = index.head(match_id)
        if head is None or not (head.finished or 0 < sequence <= head.sequence):
            await index.catch_up(timeout)
            head = index.head(match_id)
        if head is None:
            raise refuse("MATCH_NOT_FOUND", field="match_id")
        async with self._locks[partition]:
            match = self._cache.get(match_id)
            if match is None or match.last.sequence < head.sequence:
                match = await self._read(match_id, index, head, match)
                self._keep(match)
            self._cache.move_to_end(match_id)
        return match

    async def _read(
        self, match_id: str, index: PartitionIndex, head: Head, known: RecordedMatch | None
    ) -> RecordedMatch:
        commits = list(known.commits) if known else []
        size = known.size if known else 0
        start = commits[-1].offset + 1 if commits else head.first_offset
        walk = _Walk(match_id, index, [placed.commit for placed in commits])
        wanted = match_id.encode()
        seen = 0
        try:
            async with aclosing(
                self._log.read(index.partition, start, head.last_offset + 1)
            ) as records:
                async for record in records:
                    seen += 1
                    if seen % _YIELD_RECORDS == 0:
                        await asyncio.sleep(0)
                    if wanted not in record.value:
                        continue
                    commit = walk.taken(record.offset, record.value)
                    if commit is not None:
                        commits.append(Placed(record.offset, commit))
                        size += len(record.value) * _DECODED_TIMES
        except LogError as error:
            raise refuse("LOG_UNAVAILABLE", f"The log cannot be read: {error}.") from error
        if not commits or commits[-1].commit.hash != head.hash:
            raise refuse("LOG_UNAVAILABLE", "The log no longer holds the whole match.")
        return RecordedMatch(match_id, index.partition, tuple(commits), size)

    def _keep(self, match: RecordedMatch) -> None:
        before = self._cache.pop(match.match_id, None)
        self._cached += match.size - (before.size if before else 0)
        self._cache[match.match_id] = match
        while self._cached > self._cache_bytes and len(self._cache) > 1:
            self._cached -= self._cache.popitem(last=False)[1].size


class _Walk:
    """Picks a match's admitted commits from the records of its range, as admission did.

    The range ends with a commit that admission let through, so what is picked is certain: the
    hashes lead from the last commit back to the first.
    """

    def __init__(self, match_id: str, index: PartitionIndex, known: Sequence[ParsedCommit]) -> None:
        self._match_id = match_id
        self._index = index
        self._last = known[-1] if known else None
        self._requests = {key for commit in known if (key := _request_key(commit))}

    def taken(self, offset: int, value: bytes) -> ParsedCommit | None:
        """The commit at `offset`, if it is the match's next one."""
        try:
            commit = parse_commit(value)
        except BadCommit:
            return None
        last = self._last
        fits = (
            commit.kind is Kind.FACTS
            and commit.match_id == self._match_id
            and commit.sequence == (last.sequence + 1 if last else 1)
            and commit.previous_hash == (last.hash if last else b"")
            and commit.first_fact == (last.first_fact + last.fact_count if last else 0)
            and commit.epoch == self._index.epoch_at(offset)
        )
        key = _request_key(commit)
        if not fits or (key is not None and key in self._requests):
            return None
        if key is not None:
            self._requests.add(key)
        self._last = commit
        return commit


def _request_key(commit: ParsedCommit) -> tuple[str, str] | None:
    cause = commit.cause
    return (cause.actor, cause.request_id) if cause is not None and cause.request_id else None
