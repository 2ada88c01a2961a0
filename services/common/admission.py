"""Which records of a partition count: the pure automaton that every reader runs.

Kafka cannot append on a condition, so anybody may write anything at any time: a process that lost
the partition, a retry that arrives late, a duplicate, a rogue. Every reader sees the same records
in the same order and runs this automaton over them, so every reader decides alike which records
are admitted and which are void; no clock and no lock takes part (architecture.md, section 4).

No I/O here; ``services.common.tail`` brings the records.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, assert_never

from services.common.commits import (
    UNKNOWN_FORMAT,
    UNKNOWN_KIND,
    BadCommit,
    Kind,
    ParsedCommit,
    parse_commit,
)
from services.common.log.port import LogError, partition_of

# How many finished matches of a partition still answer `seen`, for late retries.
FINISHED_KEPT: Final = 1000


class VoidReason(StrEnum):
    """Why a record does not count; also the label of the metric."""

    STALE_EPOCH = "STALE_EPOCH"
    WRONG_PREVIOUS_EPOCH = "WRONG_PREVIOUS_EPOCH"
    WRONG_SEQUENCE = "WRONG_SEQUENCE"
    WRONG_PREVIOUS_HASH = "WRONG_PREVIOUS_HASH"
    WRONG_FIRST_FACT = "WRONG_FIRST_FACT"
    BAD_HASH = "BAD_HASH"
    WRONG_LOG = "WRONG_LOG"
    WRONG_PARTITION = "WRONG_PARTITION"
    REPEATED_REQUEST = "REPEATED_REQUEST"
    MATCH_FINISHED = "MATCH_FINISHED"
    MALFORMED = "MALFORMED"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The record counts."""

    # The partition's epoch after the record.
    epoch: int


@dataclass(frozen=True, slots=True)
class Void:
    """The record does not count: skip it."""

    reason: VoidReason


Verdict = Admitted | Void


class UnreadableRecord(LogError):
    """A record in a format that this software does not know: the reader must stop before it."""

    def __init__(self, partition: int, offset: int, detail: str) -> None:
        super().__init__(
            f"the record at offset {offset} of partition {partition} was written by newer "
            f"software ({detail}); this version must not go on reading"
        )
        self.partition = partition
        self.offset = offset


class Head(NamedTuple):
    """Where a match stands after its last admitted commit."""

    sequence: int
    hash: bytes
    # How many facts the match has.
    facts: int
    finished: bool
    # Offsets of its first and its last admitted commit.
    first_offset: int
    last_offset: int


class Seen(NamedTuple):
    """The admitted commit of a request; `digest` is that of the request's content."""

    sequence: int
    offset: int
    digest: bytes


_Requests = dict[tuple[str, str], Seen]


class Admission:
    """The automaton of one partition. Offer it every record, from offset 0 on, in order."""

    def __init__(self, log_id: str, partition: int, partitions: int) -> None:
        self._log_id = log_id
        self._partition = partition
        self._partitions = partitions
        self._epoch = 0
        self._released = False
        self._owner = ""
        self._next_offset = 0
        self._heads: dict[str, Head] = {}
        # Requests of the matches that are not finished; their keys are the live matches.
        self._requests: dict[str, _Requests] = {}
        self._finished: OrderedDict[str, _Requests] = OrderedDict()

    @property
    def epoch(self) -> int:
        """Offset + 1 of the last admitted claim; 0 when there was none yet."""
        return self._epoch

    @property
    def released(self) -> bool:
        """Whether the owner under `epoch` gave the partition up: nothing but a claim counts now."""
        return self._released

    @property
    def owner(self) -> str:
        """Address in the last admitted claim; empty when there was none or it was released."""
        return "" if self._released else self._owner

    @property
    def next_offset(self) -> int:
        """The lowest offset that may be offered next."""
        return self._next_offset

    def head(self, match_id: str) -> Head | None:
        """Where the match stands; None when no commit of it was admitted."""
        return self._heads.get(match_id)

    def live(self) -> Iterator[str]:
        """Ids of the matches that have begun and are not finished, oldest first."""
        return iter(tuple(self._requests))

    def matches(self) -> Iterator[str]:
        """Ids of all matches, finished ones too, oldest first."""
        return iter(tuple(self._heads))

    def seen(self, match_id: str, actor: str, request_id: str) -> Seen | None:
        """The admitted commit of this request of `actor`, if any.

        For finished matches only while they are among the last FINISHED_KEPT that finished.
        """
        requests = self._requests.get(match_id) or self._finished.get(match_id)
        return requests.get((actor, request_id)) if requests else None

    def offer_value(self, offset: int, value: bytes) -> tuple[ParsedCommit | None, Verdict]:
        """Parse a record's value and decide about it; no commit when it cannot be parsed.

        Raises UnreadableRecord when newer software wrote it.
        """
        try:
            commit = parse_commit(value)
        except BadCommit as error:
            if error.reason in (UNKNOWN_FORMAT, UNKNOWN_KIND):
                raise UnreadableRecord(self._partition, offset, error.detail) from error
            self._step_to(offset)
            return None, Void(VoidReason(error.reason))
        return commit, self.offer(offset, commit)

    def offer(self, offset: int, commit: ParsedCommit) -> Verdict:
        """Decide about the commit at `offset`; an admitted one changes the state."""
        self._step_to(offset)
        reason = self._fault(commit)
        if reason is not None:
            return Void(reason)
        match commit.kind:
            case Kind.CLAIM:
                self._epoch = offset + 1
                self._released = False
                self._owner = commit.address
            case Kind.RELEASE:
                self._released = True
            case Kind.FACTS:
                self._apply(offset, commit)
            case _:
                assert_never(commit.kind)
        return Admitted(self._epoch)

    def _step_to(self, offset: int) -> None:
        assert offset >= self._next_offset, f"offset {offset} was offered already"
        self._next_offset = offset + 1

    def _fault(self, commit: ParsedCommit) -> VoidReason | None:
        if commit.log_id != self._log_id:
            return VoidReason.WRONG_LOG
        if commit.partition != self._partition:
            return VoidReason.WRONG_PARTITION
        match commit.kind:
            case Kind.CLAIM:
                if commit.previous_epoch != self._epoch:
                    return VoidReason.WRONG_PREVIOUS_EPOCH
                return None
            case Kind.RELEASE:
                return self._epoch_fault(commit)
            case Kind.FACTS:
                return self._epoch_fault(commit) or self._facts_fault(commit)
            case _:
                assert_never(commit.kind)

    def _epoch_fault(self, commit: ParsedCommit) -> VoidReason | None:
        # Before the first claim nobody may write; after a release nobody may until the next claim,
        # so that whoever released knows that nothing of its own can be admitted any more.
        if commit.epoch != self._epoch or self._epoch == 0 or self._released:
            return VoidReason.STALE_EPOCH
        return None

    def _facts_fault(self, commit: ParsedCommit) -> VoidReason | None:
        if partition_of(commit.match_id, self._partitions) != self._partition:
            return VoidReason.WRONG_PARTITION
        head = self._heads.get(commit.match_id)
        if head is not None and head.finished:
            return VoidReason.MATCH_FINISHED
        if commit.sequence != (head.sequence + 1 if head else 1):
            return VoidReason.WRONG_SEQUENCE
        if commit.previous_hash != (head.hash if head else b""):
            return VoidReason.WRONG_PREVIOUS_HASH
        if commit.first_fact != (head.facts if head else 0):
            return VoidReason.WRONG_FIRST_FACT
        key = _request_key(commit)
        if key is not None and key in self._requests.get(commit.match_id, ()):
            return VoidReason.REPEATED_REQUEST
        return None

    def _apply(self, offset: int, commit: ParsedCommit) -> None:
        match_id = commit.match_id
        before = self._heads.get(match_id)
        self._heads[match_id] = Head(
            commit.sequence,
            commit.hash,
            commit.first_fact + commit.fact_count,
            commit.final,
            before.first_offset if before else offset,
            offset,
        )
        requests = self._requests.setdefault(match_id, {})
        key = _request_key(commit)
        if key is not None and commit.cause is not None:
            requests[key] = Seen(commit.sequence, offset, commit.cause.digest)
        if commit.final:
            self._finished[match_id] = self._requests.pop(match_id)
            if len(self._finished) > FINISHED_KEPT:
                self._finished.popitem(last=False)


def _request_key(commit: ParsedCommit) -> tuple[str, str] | None:
    """What makes the request unique within its match; None when it need not be."""
    cause = commit.cause
    if cause is None or not cause.request_id:
        return None
    return cause.actor, cause.request_id
