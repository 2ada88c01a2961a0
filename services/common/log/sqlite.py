"""The log in one SQLite file, for the embedded mode: same promises as Kafka, one machine.

WAL with ``synchronous=FULL``: an append is acknowledged after its bytes were synced. One writer
thread groups all appends that wait into one transaction (group commit). One process writes,
guarded by an exclusive lock beside the file; others may open the file read-only at the same time.
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from services.common.log.port import (
    AppendUnknown,
    LogBusy,
    LogCorrupt,
    LogError,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    LogUnusable,
    OwnershipListener,
    Record,
    RecordTooLarge,
)

_FORMAT = "1"
# The row id of a record is partition << 40 | offset: rows of a partition lie side by side, in
# order, and appending touches one page at the end of its range.
_OFFSET_BITS = 40
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_READ_RECORDS = 500
_READ_BYTES = 8 << 20
_RECENT_BYTES = 1 << 20
_BATCH_RECORDS = 2000

_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE record (position INTEGER PRIMARY KEY, key BLOB NOT NULL, value BLOB NOT NULL, "
    "timestamp_ms INTEGER NOT NULL) STRICT",
    # For people who look into the file.
    'CREATE VIEW records AS SELECT position >> 40 AS "partition", '
    'position & 0xFFFFFFFFFF AS "offset", key, value, timestamp_ms FROM record',
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Append:
    partition: int
    key: bytes
    value: bytes
    done: "asyncio.Future[int]"


class _Recent:
    """The last records of one partition, kept so that live readers need not go to the file."""

    def __init__(self, end: int) -> None:
        self.end = end
        self._records: deque[Record] = deque()
        self._bytes = 0

    def add(self, record: Record) -> None:
        if record.offset != self.end:
            # A transaction that was reported as failed is in the file after all.
            self._records.clear()
            self._bytes = 0
        self._records.append(record)
        self._bytes += len(record.value)
        self.end = record.offset + 1
        while self._bytes > _RECENT_BYTES and len(self._records) > 1:
            self._bytes -= len(self._records.popleft().value)

    def since(self, offset: int) -> list[Record] | None:
        """The records from `offset` to the end; None when the oldest of them is not kept."""
        first = self.end - len(self._records)
        if offset < first:
            return None
        return [self._records[index] for index in range(offset - first, len(self._records))]


class SqliteLog:
    """`services.common.log.Log` in the SQLite file `path`.

    `partitions` applies when the file is created; an existing file must have as many (None: take
    what it has, 8 for a new one). `in_flight_max` bounds the appends that wait (LogBusy).
    `poll_seconds` is how often a read-only log looks for what the other process wrote.
    """

    def __init__(
        self,
        path: Path,
        *,
        partitions: int | None = None,
        read_only: bool = False,
        in_flight_max: int = 4096,
        record_bytes_max: int = 8 << 20,
        poll_seconds: float = 0.1,
    ) -> None:
        self._path = path
        self._wanted_partitions = partitions
        self._read_only = read_only
        self._in_flight_max = in_flight_max
        self._record_bytes_max = record_bytes_max
        self._poll_seconds = poll_seconds
        self._partitions = 0
        self._log_id = ""
        self._in_flight = 0
        self._closed = True
        self._lock_file: int | None = None
        self._inode = 0
        self._queue: SimpleQueue[_Append | None] = SimpleQueue()
        self._recent: list[_Recent] = []
        self._grown: list[asyncio.Event] = []

    @property
    def partitions(self) -> int:
        """How many partitions the log has; known after `start`."""
        return self._partitions

    @property
    def log_id(self) -> str:
        """Identity of this log: random, made with the file."""
        return self._log_id

    async def start(self) -> None:
        """Open the file, create it when it is not there. Raises LogUnusable."""
        self._loop = asyncio.get_running_loop()
        self._reader = ThreadPoolExecutor(1, "log-reader")
        try:
            await self._loop.run_in_executor(self._reader, self._open)
        except (OSError, sqlite3.Error) as error:
            self._reader.shutdown(wait=False)
            self._unlock()
            raise LogUnusable(f"cannot open the log {self._path}: {error}") from error
        except LogError:
            self._reader.shutdown(wait=False)
            self._unlock()
            raise
        self._closed = False
        if not self._read_only:
            self._writer = threading.Thread(target=self._write_loop, name="log-writer", daemon=True)
            self._writer.start()

    async def close(self) -> None:
        """Write what was accepted, then close the file and give up the lock."""
        if self._closed:
            return
        self._closed = True
        for grown in self._grown:
            grown.set()
        if not self._read_only:
            self._queue.put(None)
            await asyncio.to_thread(self._writer.join)
        with contextlib.suppress(sqlite3.Error):
            await self._loop.run_in_executor(self._reader, self._connection.close)
        self._reader.shutdown()
        self._unlock()

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        """Append one record, synced when this returns. See `Log.append` for the errors."""
        self._check(partition)
        if self._read_only:
            raise LogUnavailable(f"the log {self._path} was opened for reading only")
        if self._closed:
            raise LogUnavailable(f"the log {self._path} is closed")
        if len(key) + len(value) > self._record_bytes_max:
            raise RecordTooLarge(
                f"a record of {len(key) + len(value)} bytes is over the limit of "
                f"{self._record_bytes_max}"
            )
        if self._in_flight >= self._in_flight_max:
            raise LogBusy(f"{self._in_flight} appends are waiting; try again later")
        self._in_flight += 1
        done: asyncio.Future[int] = self._loop.create_future()
        self._queue.put(_Append(partition, key, value, done))
        # The count goes down when the writer is done with it, even if the caller is gone by then.
        return await done

    async def tail(self, partition: int, from_offset: int) -> AsyncGenerator[Record, None]:
        """Every record from `from_offset` on, endless. See `Log.tail`."""
        self._check(partition)
        offset = from_offset
        if offset > await self.end_offset(partition):
            raise LogTruncated(self._past_end(partition, offset))
        while True:
            for record in await self._next_records(partition, offset):
                offset = record.offset + 1
                yield record

    async def read(
        self, partition: int, from_offset: int, to_offset: int
    ) -> AsyncGenerator[Record, None]:
        """The records of the range, `to_offset` excluded. See `Log.read`."""
        self._check(partition)
        if to_offset > await self.end_offset(partition):
            raise LogTruncated(self._past_end(partition, to_offset))
        offset = from_offset
        while offset < to_offset:
            for record in await self._fetch(partition, offset, to_offset):
                offset = record.offset + 1
                yield record

    async def end_offset(self, partition: int) -> int:
        """The offset that the next record will get."""
        self._check(partition)
        if not self._read_only:
            return self._recent[partition].end
        return await self._in_reader(lambda: _end(self._connection, partition))

    # ---- reading (event loop, and the one reader thread that owns self._connection)

    async def _next_records(self, partition: int, offset: int) -> list[Record]:
        """At least one record from `offset` on; waits for it."""
        while True:
            if self._closed:
                raise LogUnavailable(f"the log {self._path} is closed")
            recent = None if self._read_only else self._recent[partition].since(offset)
            if recent is None:
                end = await self.end_offset(partition)
                if offset > end:
                    raise LogTruncated(self._past_end(partition, offset))
                if offset < end:
                    return await self._fetch(partition, offset, end)
            if recent:
                return recent
            await self._wait_for_more(partition)

    async def _wait_for_more(self, partition: int) -> None:
        if self._read_only:
            await asyncio.sleep(self._poll_seconds)
            await self._in_reader(self._check_replaced)
        else:
            await self._grown[partition].wait()

    async def _fetch(self, partition: int, offset: int, to_offset: int) -> list[Record]:
        records = await self._in_reader(
            lambda: list(_rows(self._connection, partition, offset, to_offset))
        )
        if not records or records[0].offset != offset:
            raise LogTruncated(f"the log {self._path} lost offset {offset} of {partition}")
        return records

    async def _in_reader(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise LogUnavailable(f"the log {self._path} is closed")
        try:
            return await self._loop.run_in_executor(self._reader, work)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) in (
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_NOTADB,
            ):
                raise LogCorrupt(f"the log {self._path} is damaged: {error}") from error
            raise LogUnavailable(f"cannot read the log {self._path}: {error}") from error

    def _check_replaced(self) -> None:
        try:
            inode = self._path.stat().st_ino
        except OSError:
            inode = 0
        if inode != self._inode:
            raise LogReplaced(f"the log file {self._path} was deleted or replaced")

    def _check(self, partition: int) -> None:
        assert 0 <= partition < self._partitions, f"no partition {partition}"

    def _past_end(self, partition: int, offset: int) -> str:
        return f"offset {offset} of partition {partition} is past the end of the log {self._path}"

    # ---- opening

    def _open(self) -> None:
        if self._read_only:
            if not self._path.exists():
                raise LogUnusable(f"there is no log at {self._path}")
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro", uri=True
            )
        else:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock()
            self._connection = _connect(self._path)
            _create(self._connection, self._wanted_partitions or 8)
        meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        if meta.get("format") != _FORMAT:
            raise LogUnusable(
                f"the log {self._path} has format {meta.get('format')}; "
                f"this version knows only {_FORMAT}"
            )
        self._partitions = int(meta["partitions"])
        if self._wanted_partitions not in (None, self._partitions):
            raise LogUnusable(
                f"the log {self._path} has {self._partitions} partitions, not "
                f"{self._wanted_partitions}; the number is fixed for its life"
            )
        self._log_id = meta["log_id"]
        self._inode = self._path.stat().st_ino
        ends = [_end(self._connection, partition) for partition in range(self._partitions)]
        self._recent = [_Recent(end) for end in ends]
        self._grown = [asyncio.Event() for _ in ends]

    def _lock(self) -> None:
        lock = self._path.with_name(self._path.name + ".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise LogUnusable(
                f"the log {self._path} is in use by another process"
                + (f" (process id {holder})" if holder else "")
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._lock_file = descriptor

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # ---- writing (the writer thread)

    def _write_loop(self) -> None:
        with contextlib.closing(_connect(self._path)) as connection:
            ends = [recent.end for recent in self._recent]
            while batch := self._take_batch():
                try:
                    records = _insert(connection, batch, ends)
                except LogError as error:
                    ends = _ends_after_failure(connection, ends)
                    self._tell(self._failed, batch, error)
                    continue
                for record in records:
                    ends[record.partition] = record.offset + 1
                self._tell(self._written, batch, records)

    def _take_batch(self) -> list[_Append]:
        """All appends that wait, at least one; empty when the log is being closed."""
        first = self._queue.get()
        if first is None:
            return []
        batch = [first]
        while len(batch) < _BATCH_RECORDS and not self._queue.empty():
            more = self._queue.get()
            if more is None:
                self._queue.put(None)
                break
            batch.append(more)
        return batch

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        # The loop may be gone when the program ends; then nobody waits for the answer either.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _written(self, batch: list[_Append], records: list[Record]) -> None:
        self._in_flight -= len(batch)
        for append, record in zip(batch, records, strict=True):
            self._recent[record.partition].add(record)
            if not append.done.done():
                append.done.set_result(record.offset)
        for partition in {record.partition for record in records}:
            # Wakes everybody who waits now; who waits next, waits for the next batch.
            self._grown[partition].set()
            self._grown[partition].clear()

    def _failed(self, batch: list[_Append], error: LogError) -> None:
        self._in_flight -= len(batch)
        for append in batch:
            if not append.done.done():
                append.done.set_exception(error)


class LocalOwnership:
    """`services.common.log.Ownership` of the embedded mode: one process owns every partition."""

    def __init__(self, partitions: int, address: str) -> None:
        self._all = frozenset(range(partitions))
        self._address = address
        self._listener: OwnershipListener | None = None

    @property
    def owned(self) -> frozenset[int]:
        """All partitions between `start` and `close`."""
        return self._all if self._listener is not None else frozenset()

    async def start(self, listener: OwnershipListener) -> None:
        """Assign every partition to `listener`."""
        self._listener = listener
        await listener.assigned(self._all)

    async def close(self) -> None:
        """Revoke every partition."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.revoked(self._all)

    async def owner_hint(self, partition: int, *, refresh: bool = False) -> str | None:
        """This process's own address."""
        return self._address


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _create(connection: sqlite3.Connection, partitions: int) -> None:
    """Make the tables, unless they are there."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone():
        return
    meta = {"format": _FORMAT, "log_id": secrets.token_hex(16), "partitions": str(partitions)}
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
    connection.execute("COMMIT")


def _end(connection: sqlite3.Connection, partition: int) -> int:
    first, last = partition << _OFFSET_BITS, partition << _OFFSET_BITS | _OFFSET_MASK
    query = "SELECT max(position) FROM record WHERE position BETWEEN ? AND ?"
    (position,) = connection.execute(query, (first, last)).fetchone()
    return 0 if position is None else (position & _OFFSET_MASK) + 1


def _rows(
    connection: sqlite3.Connection, partition: int, offset: int, to_offset: int
) -> Iterator[Record]:
    """Some of the records of the range, from its start, as many as fit one bite."""
    base = partition << _OFFSET_BITS
    query = (
        "SELECT position, key, value, timestamp_ms FROM record "
        "WHERE position >= ? AND position < ? ORDER BY position LIMIT ?"
    )
    size = 0
    for position, key, value, stamp in connection.execute(
        query, (base | offset, base + to_offset, _READ_RECORDS)
    ):
        yield Record(partition, position & _OFFSET_MASK, key, value, stamp)
        size += len(value)
        if size > _READ_BYTES:
            return


def _insert(connection: sqlite3.Connection, batch: list[_Append], ends: list[int]) -> list[Record]:
    """Write `batch` in one transaction. LogUnavailable: surely not; AppendUnknown: perhaps."""
    now_ms = time.time_ns() // 1_000_000
    free = list(ends)
    records = []
    for append in batch:
        offset = free[append.partition]
        free[append.partition] += 1
        records.append(Record(append.partition, offset, append.key, append.value, now_ms))
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO record VALUES (?, ?, ?, ?)",
            [(r.partition << _OFFSET_BITS | r.offset, r.key, r.value, now_ms) for r in records],
        )
    except sqlite3.Error as error:
        raise LogUnavailable(f"cannot write the log: {error}") from error
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise AppendUnknown(f"the log could not be synced: {error}") from error
    return records


def _ends_after_failure(connection: sqlite3.Connection, ends: list[int]) -> list[int]:
    """Give the failed transaction up; where each partition ends now, by the file."""
    with contextlib.suppress(sqlite3.Error):
        connection.execute("ROLLBACK")
    try:
        return [_end(connection, partition) for partition in range(len(ends))]
    except sqlite3.Error:
        return ends
