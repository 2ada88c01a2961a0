"""What only the SQLite log has: one writing process, crashes of the process, the file itself."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from services.common.log import (
    AppendUnknown,
    LogCorrupt,
    LogError,
    LogTruncated,
    LogUnavailable,
    LogUnusable,
)
from services.common.log import sqlite as sqlite_module
from services.common.log.sqlite import SqliteLog
from tests.services.log.conftest import PARTITIONS, SqliteWorld

# Appends without end, printing each acknowledged offset and value, until it is killed.
_WRITER = """
import asyncio, sys
from pathlib import Path
from services.common.log.sqlite import SqliteLog

async def write(log, name):
    number = 0
    while True:
        value = f"{name}/{number}"
        offset = await log.append(0, b"k", value.encode())
        print(offset, value, flush=True)
        number += 1

async def main():
    log = SqliteLog(Path(sys.argv[1]))
    await log.start()
    await asyncio.gather(*(write(log, name) for name in range(20)))

asyncio.run(main())
"""


def run(program: str, path: Path) -> "subprocess.Popen[str]":
    """Start another process that uses the log at `path`."""
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def values(log: SqliteLog, start: int, end: int) -> list[bytes]:
    async with aclosing(log.read(0, start, end)) as records:
        return [record.value async for record in records]


async def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    acknowledged: dict[int, str] = {}
    for _ in range(3):
        with run(_WRITER, path) as process:
            assert process.stdout is not None
            for _ in range(500):
                offset, value = process.stdout.readline().split()
                acknowledged[int(offset)] = value
            process.send_signal(signal.SIGKILL)
            for line in process.stdout:
                if line.endswith("\n"):
                    offset, value = line.split()
                    acknowledged[int(offset)] = value
    log = SqliteLog(path)
    await log.start()
    written = await values(log, 0, await log.end_offset(0))
    await log.close()
    assert len(acknowledged) >= 1500
    for number, text in acknowledged.items():
        assert written[number] == text.encode()


async def test_a_second_writing_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with run(_WRITER, path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(LogUnusable, match=f"in use by another process .*{process.pid}"):
            await SqliteLog(path).start()
        process.kill()
    log = SqliteLog(path)
    await log.start()
    await log.close()


async def test_the_same_process_cannot_open_it_twice_either(sqlite_world: SqliteWorld) -> None:
    await sqlite_world.open()
    with pytest.raises(LogUnusable, match="in use"):
        await sqlite_world.make().start()


async def test_another_process_can_read_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with run(_WRITER, path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        reader = SqliteLog(path, read_only=True, poll_seconds=0.02)
        await reader.start()
        seen = await reader.end_offset(0)
        async with aclosing(reader.tail(0, 0)) as records, asyncio.timeout(20):
            async for record in records:
                # The writer's pipe must not fill up.
                process.stdout.readline()
                if record.offset > seen + 200:
                    break
        with pytest.raises(LogUnavailable, match="for reading only"):
            await reader.append(0, b"k", b"v")
        await reader.close()
        process.kill()


async def test_appends_that_wait_share_a_transaction(
    sqlite_world: SqliteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    insert = sqlite_module._insert

    def counted(connection: sqlite3.Connection, batch: list[object], ends: list[int]) -> object:
        batches.append(len(batch))
        return insert(connection, batch, ends)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(sqlite_module, "_insert", counted)
    log = await sqlite_world.open()
    await asyncio.gather(*(log.append(n % PARTITIONS, b"k", b"v") for n in range(400)))
    assert sum(batches) == 400
    assert len(batches) < 100


def refuse(message: str) -> Callable[..., object]:
    """Something that raises as SQLite does when the disk is full."""

    def raising(*arguments: object) -> object:
        raise sqlite3.OperationalError(message)

    return raising


async def test_a_transaction_that_cannot_be_written_leaves_no_gap(
    sqlite_world: SqliteWorld,
) -> None:
    """The disk is full (as SQLite says it): surely not written; with room again it goes on."""
    log = await sqlite_world.open()
    assert isinstance(log, SqliteLog)
    await log.append(0, b"k", b"before")
    await limit_pages(log, 1)
    with pytest.raises(LogUnavailable, match="full"):
        await log.append(0, b"k", b"v" * 100_000)
    await limit_pages(log, 1_000_000)
    assert await log.append(0, b"k", b"after") == 1
    assert await values(log, 0, 2) == [b"before", b"after"]


async def limit_pages(log: SqliteLog, pages: int) -> None:
    """Make the writer's file as small as it is, or large again: through the writer's own queue."""
    taken = sqlite_module._insert

    def limiting(connection: sqlite3.Connection, batch: object, ends: object) -> object:
        connection.execute(f"PRAGMA max_page_count = {pages}")
        sqlite_module._insert = taken
        return taken(connection, batch, ends)  # type: ignore[arg-type]  # passed on as it came

    sqlite_module._insert = limiting  # type: ignore[assignment]  # for the next batch only
    await asyncio.sleep(0)


async def test_a_commit_that_fails_is_unknown_and_the_next_append_goes_on(
    sqlite_world: SqliteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite reports an error although everything is in the file: the honest answer is unknown."""
    log = await sqlite_world.open()
    assert isinstance(log, SqliteLog)
    async with aclosing(log.tail(0, 0)) as records:
        await log.append(0, b"k", b"before")
        insert = sqlite_module._insert

        def failing(connection: sqlite3.Connection, batch: object, ends: object) -> object:
            insert(connection, batch, ends)  # type: ignore[arg-type]  # passed on as it came
            raise AppendUnknown("the log could not be synced: disk I/O error")

        monkeypatch.setattr(sqlite_module, "_insert", failing)
        with pytest.raises(AppendUnknown):
            await log.append(0, b"k", b"perhaps")
        monkeypatch.setattr(sqlite_module, "_insert", insert)
        assert await log.append(0, b"k", b"after") == 2
        seen = [(await asyncio.wait_for(anext(records), 5)).value for _ in range(3)]
    assert seen == [b"before", b"perhaps", b"after"]


async def test_a_newer_file_format_is_refused(sqlite_world: SqliteWorld) -> None:
    await (await sqlite_world.open()).close()
    with sqlite3.connect(sqlite_world.path) as connection:
        connection.execute("UPDATE meta SET value = '2' WHERE name = 'format'")
    with pytest.raises(LogUnusable, match="format 2; this version knows only 1"):
        await sqlite_world.make().start()


async def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"something else entirely, and long enough to be looked at " * 50)
    with pytest.raises(LogUnusable, match=r"cannot open the log .*not a database"):
        await SqliteLog(path).start()
    with pytest.raises(LogUnusable, match="there is no log at"):
        await SqliteLog(tmp_path / "none.db", read_only=True).start()
    with pytest.raises(LogUnusable, match="cannot open the log"):
        await SqliteLog(path / "below-a-file.db").start()


async def test_a_damaged_file_is_reported_as_such(sqlite_world: SqliteWorld) -> None:
    log = await sqlite_world.open()
    for number in range(200):
        await log.append(0, b"k", bytes([number]) * 5_000)
    await log.close()
    with sqlite3.connect(sqlite_world.path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = sqlite_world.path.stat().st_size
    with sqlite_world.path.open("r+b") as file:
        for page in range(8, size // 4096, 3):
            file.seek(page * 4096)
            file.write(b"\xff" * 512)
    with pytest.raises(LogError) as raised:
        log = await sqlite_world.open()
        assert isinstance(log, SqliteLog)
        await values(log, 0, 200)
    assert isinstance(raised.value, LogCorrupt | LogTruncated | LogUnusable)


async def test_people_can_look_into_the_file(sqlite_world: SqliteWorld) -> None:
    log = await sqlite_world.open()
    await log.append(3, b"k", b"first")
    await log.append(3, b"k", b"second")
    with sqlite3.connect(sqlite_world.path) as connection:
        found = connection.execute('SELECT "partition", "offset", value FROM records').fetchall()
    assert found == [(3, 0, b"first"), (3, 1, b"second")]
