"""The log port: what a log is to the rest of the services, whichever adapter stands behind it.

An adapter (``kafka``, ``sqlite``) keeps a fixed number of partitions, each an endless sequence of
records with offsets 0, 1, 2 …. What the records mean, and which of them count, is decided by
``services.common.admission``, never here.
"""

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it lies in the log. An absent key or value is read as empty bytes."""

    partition: int
    offset: int
    key: bytes
    value: bytes
    # Wall clock of whoever stamped the record; information only.
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log: the record at `offset` of `partition`. Opaque text for clients."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, token: str) -> "Position":
        """The position that `token` names; ValueError when it is none."""
        partition, colon, offset = token.partition(":")
        digits = partition + offset
        if not (colon and partition and offset and digits.isascii() and digits.isdigit()):
            raise ValueError(f"not a position: {token!r}")
        if len(token) > 30:
            raise ValueError("not a position: too long")
        return cls(int(partition), int(offset))


def partition_of(match_id: str, partitions: int) -> int:
    """The partition that holds every commit of `match_id` in a log of `partitions` partitions.

    Our own function, passed explicitly to Kafka, so that no client library's hashing matters.
    """
    assert partitions > 0, "a log has at least one partition"
    return int.from_bytes(hashlib.sha256(match_id.encode()).digest()[:4], "big") % partitions


class LogError(Exception):
    """Whatever goes wrong with the log; the message is one sentence for people."""


class AppendUnknown(LogError):
    """The outcome of an append is not known: the record may be in the log, now or later."""


class LogUnavailable(LogError):
    """The log cannot be reached now. An append that raises it was surely not written."""


class LogBusy(LogUnavailable):
    """Too many appends are in flight; surely not written, try again later."""


class RecordTooLarge(LogError):
    """The record is larger than the log takes; surely not written, and never will be."""


class LogUnusable(LogError):
    """An operator must act: the log does not exist, is in use, or is not what settings say."""


class LogTruncated(LogError):
    """Records that should be there are gone: the position is before the start or past the end."""


class LogReplaced(LogError):
    """Another log stands where the one was that this reader began to read."""


class LogCorrupt(LogError):
    """A record cannot be read because its bytes are damaged; reading stops before it."""


class Log(Protocol):
    """A partitioned, append-only log. All methods belong to the event loop that ran `start`."""

    @property
    def partitions(self) -> int:
        """How many partitions the log has; fixed for its life. Known after `start`."""

    @property
    def log_id(self) -> str:
        """Identity of this incarnation of the log. Known after `start`."""

    async def start(self) -> None:
        """Connect or open. Raises LogUnavailable or LogUnusable."""

    async def close(self) -> None:
        """Let go of everything; appends that are still in flight raise AppendUnknown."""

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        """Append one record and return the offset that was acknowledged; never proof by itself.

        Appends of one task keep their order. Always ends within a bounded time. Raises
        AppendUnknown when the record may or may not be written; LogUnavailable, LogBusy or
        RecordTooLarge when it surely is not, as LogReplaced once that was noticed. A cancelled
        append may have been written.
        """

    def tail(self, partition: int, from_offset: int) -> AsyncGenerator[Record, None]:
        """Every record from `from_offset` on, endless, without gap; waits for new ones.

        Cancellable. Raises LogUnavailable (the reader may start again from where it was),
        LogTruncated, LogReplaced or LogCorrupt.
        """

    def read(
        self, partition: int, from_offset: int, to_offset: int
    ) -> AsyncGenerator[Record, None]:
        """The records from `from_offset` up to, not including, `to_offset`; then it ends.

        Raises as `tail` does; LogTruncated when the log ends before `to_offset`.
        """

    async def end_offset(self, partition: int) -> int:
        """The offset that the next record will get. Raises LogUnavailable."""


class OwnershipListener(Protocol):
    """Told which partitions this process should own; called in the loop, one call at a time."""

    async def assigned(self, partitions: frozenset[int]) -> None:
        """These partitions came in addition to those already owned."""

    async def revoked(self, partitions: frozenset[int]) -> None:
        """These partitions went. Another process may have claimed them already."""


class Ownership(Protocol):
    """Spreads the partitions over the processes. Only a hint: the log decides by claims."""

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that the listener was last told to own."""

    async def start(self, listener: OwnershipListener) -> None:
        """Begin to take part. Returns at once; assignments follow through the listener."""

    async def close(self) -> None:
        """Have everything that is owned revoked, then leave, so that others take over at once."""

    async def owner_hint(self, partition: int, *, refresh: bool = False) -> str | None:
        """Address ("host:port") of the process that should own `partition`, as far as is known.

        May be about a second old; `refresh` asks again. Never proof. None: nobody, or not known.
        """
