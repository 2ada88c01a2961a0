"""What every log adapter promises; each test runs against SQLite and against a real Kafka."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from services.common.log import (
    Log,
    LogBusy,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    LogUnusable,
    Record,
    RecordTooLarge,
)
from tests.services.log.conftest import PARTITIONS, KafkaWorld, SqliteWorld, World

P = 1


async def fill(log: Log, count: int, *, partition: int = P, size: int = 0) -> list[bytes]:
    """Append `count` different values at once; returns them."""
    values = [f"value {number}".encode().ljust(size, b".") for number in range(count)]
    await asyncio.gather(*(log.append(partition, b"key", value) for value in values))
    return values


async def take(log: Log, count: int, *, start: int = 0, partition: int = P) -> list[Record]:
    """The next `count` records of a tail from `start`."""
    async with aclosing(log.tail(partition, start)) as records:
        return await first(records, count)


async def first(records: AsyncIterator[Record], count: int) -> list[Record]:
    """The next `count` of `records`."""
    taken: list[Record] = []
    async with asyncio.timeout(20):
        while len(taken) < count:
            taken.append(await anext(records))
    return taken


async def read(log: Log, start: int, end: int, partition: int = P) -> list[Record]:
    """All records of a range."""
    async with asyncio.timeout(20), aclosing(log.read(partition, start, end)) as records:
        return [record async for record in records]


async def test_offsets_of_a_partition_begin_at_0_and_have_no_gap(world: World) -> None:
    log = await world.open()
    assert [await log.append(P, b"k", b"v") for _ in range(5)] == [0, 1, 2, 3, 4]
    assert await log.append(2, b"k", b"v") == 0


async def test_what_was_appended_is_read_back_byte_for_byte(world: World) -> None:
    log = await world.open()
    everything = bytes(range(256))
    await log.append(P, everything, everything[::-1])
    await log.append(P, b"", b"\x00")
    one, two = await take(log, 2)
    assert (one.partition, one.offset, one.key, one.value) == (P, 0, everything, everything[::-1])
    assert (two.offset, two.key, two.value) == (1, b"", b"\x00")
    assert one.timestamp_ms > 1_500_000_000_000


async def test_appends_of_one_task_keep_their_order(world: World) -> None:
    log = await world.open()
    values = await fill(log, 500)
    assert [record.value for record in await take(log, 500)] == values


async def test_concurrent_appends_each_get_the_offset_where_they_lie(world: World) -> None:
    log = await world.open()

    async def writer(name: int) -> dict[int, bytes]:
        said = {}
        for number in range(20):
            value = f"{name}/{number}".encode()
            said[await log.append(P, b"k", value)] = value
        return said

    said: dict[int, bytes] = {}
    for one in await asyncio.gather(*(writer(name) for name in range(10))):
        said.update(one)
    assert len(said) == 200
    assert {record.offset: record.value for record in await take(log, 200)} == said


async def test_a_tail_begins_at_any_offset(world: World) -> None:
    log = await world.open()
    values = await fill(log, 30)
    for start in (0, 1, 17, 29):
        records = await take(log, 30 - start, start=start)
        assert [record.value for record in records] == values[start:]
        assert records[0].offset == start


async def test_a_tail_waits_for_what_comes(world: World) -> None:
    log = await world.open()
    await fill(log, 3)
    async with aclosing(log.tail(P, 3)) as records:
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await log.append(P, b"k", b"new")
        assert (await asyncio.wait_for(waiting, 5)).value == b"new"
        for number in range(20):
            await log.append(P, b"k", b"%d" % number)
        assert [record.offset for record in await first(records, 20)] == list(range(4, 24))


async def test_tails_of_one_partition_do_not_disturb_each_other(world: World) -> None:
    log = await world.open()
    await fill(log, 10)
    tails = [log.tail(P, start) for start in (0, 5, 10)]
    assert [record.offset for record in await first(tails[1], 5)] == [5, 6, 7, 8, 9]
    await log.append(P, b"k", b"new")
    for records, start in zip(tails, (0, 10, 10), strict=True):
        offsets = [record.offset for record in await first(records, 11 - start)]
        assert offsets == list(range(start, 11))
        await records.aclose()


async def test_all_partitions_are_read_at_once(world: World) -> None:
    log = await world.open()
    reading = [asyncio.ensure_future(take(log, 50, partition=p)) for p in range(PARTITIONS)]
    await asyncio.gather(*(fill(log, 50, partition=p) for p in range(PARTITIONS)))
    for partition, records in enumerate(await asyncio.gather(*reading)):
        assert [record.offset for record in records] == list(range(50))
        assert {record.partition for record in records} == {partition}


async def test_a_tail_can_be_cancelled_and_begun_again(world: World) -> None:
    log = await world.open()
    await fill(log, 5)
    for _ in range(3):
        task = asyncio.ensure_future(take(log, 6))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(await take(log, 5)) == 5


async def test_a_slow_reader_gets_everything(world: World) -> None:
    log = await world.open()
    values = await fill(log, 1500, size=10_000)
    taken = []
    async with aclosing(log.tail(P, 0)) as records:
        async for record in records:
            taken.append(record.value)
            if len(taken) % 100 == 0:
                await asyncio.sleep(0.01)
            if len(taken) == len(values):
                break
    assert taken == values


async def test_a_range_is_read_without_its_end(world: World) -> None:
    log = await world.open()
    values = await fill(log, 1200)
    assert [r.value for r in await read(log, 100, 1100)] == values[100:1100]
    assert [r.offset for r in await read(log, 7, 8)] == [7]
    assert await read(log, 5, 5) == []
    ranges = await asyncio.gather(*(read(log, n, n + 3) for n in range(0, 60, 3)))
    assert [r.offset for records in ranges for r in records] == list(range(60))


async def test_a_range_past_the_end_is_refused(world: World) -> None:
    log = await world.open()
    await fill(log, 5)
    assert len(await read(log, 0, 5)) == 5
    with pytest.raises(LogTruncated):
        await read(log, 0, 6)


async def test_a_tail_past_the_end_is_refused(world: World) -> None:
    log = await world.open()
    await fill(log, 5)
    with pytest.raises(LogTruncated):
        await take(log, 1, start=7)
    assert len(await take(log, 5)) == 5


async def test_the_end_offset_is_where_the_next_record_will_lie(world: World) -> None:
    log = await world.open()
    assert await log.end_offset(P) == 0
    await fill(log, 3)
    assert await log.end_offset(P) == 3
    assert await log.append(P, b"k", b"v") == 3
    ends = await asyncio.gather(*(log.end_offset(p) for p in range(PARTITIONS)))
    assert ends == [0, 4, 0, 0]


async def test_a_log_that_is_opened_again_is_the_same(world: World) -> None:
    log = await world.open()
    values = await fill(log, 10)
    log_id = log.log_id
    assert log_id and log.partitions == PARTITIONS
    await log.close()
    log = await world.open()
    assert (log.log_id, log.partitions) == (log_id, PARTITIONS)
    assert [record.value for record in await take(log, 10)] == values
    assert await log.append(P, b"k", b"v") == 10


async def test_large_records_go_through(world: World) -> None:
    log = await world.open()
    sizes = [1_000_000, 1, 2_000_000, 500_000]
    for size in sizes:
        await log.append(P, b"k", bytes([size % 251]) * size)
    assert [len(record.value) for record in await take(log, len(sizes))] == sizes


async def test_a_record_over_the_limit_is_refused_for_good(world: World) -> None:
    log = await world.open(record_bytes_max=10_000)
    with pytest.raises(RecordTooLarge, match="10001 bytes"):
        await log.append(P, b"k", b"v" * 10_000)
    assert await log.append(P, b"k", b"v" * 9_999) == 0


async def test_too_many_appends_at_once_are_refused_and_not_written(world: World) -> None:
    log = await world.open(in_flight_max=10)
    values = [b"%d" % number for number in range(50)]
    results = await asyncio.gather(
        *(log.append(P, b"k", value) for value in values), return_exceptions=True
    )
    written = [v for v, r in zip(values, results, strict=True) if isinstance(r, int)]
    busy = [r for r in results if isinstance(r, LogBusy)]
    assert len(written) == 10 and len(busy) == 40
    # Having waited, there is room again.
    await log.append(P, b"k", b"last")
    records = await take(log, await log.end_offset(P))
    assert [record.value for record in records] == [*written, b"last"]


async def test_a_cancelled_append_disturbs_nobody(world: World) -> None:
    log = await world.open(in_flight_max=10)
    for _ in range(5):
        tasks = [asyncio.ensure_future(log.append(P, b"k", b"v")) for _ in range(10)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks[::2])
        assert all(isinstance(task.result(), int) for task in tasks[1::2])
        await log.append(P, b"k", b"after")
    end = await log.end_offset(P)
    assert (await take(log, end))[-1].value == b"after"


async def test_another_number_of_partitions_is_refused(world: World) -> None:
    await (await world.open()).close()
    with pytest.raises(LogUnusable, match=f"has {PARTITIONS} partitions, not 9"):
        await world.make(partitions=9).start()
    log = await world.open(partitions=None)
    assert log.partitions == PARTITIONS


async def test_a_closed_log_refuses_everything(world: World) -> None:
    log = await world.open()
    await fill(log, 3)
    async with aclosing(log.tail(P, 0)) as records:
        await first(records, 3)
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0.05)
        await log.close()
        with pytest.raises(LogUnavailable):
            await asyncio.wait_for(waiting, 5)
    with pytest.raises(LogUnavailable):
        await log.append(P, b"k", b"v")
    await log.close()


async def test_two_logs_have_different_identities(
    sqlite_world: SqliteWorld, kafka_world: KafkaWorld
) -> None:
    for world in (sqlite_world, kafka_world):
        log = await world.open()
        before = log.log_id
        await log.close()
        await world.replace()
        assert (await world.open()).log_id != before


async def test_a_reader_notices_that_the_log_was_replaced(world: World) -> None:
    writer = await world.open()
    await fill(writer, 3)
    if isinstance(world, SqliteWorld):
        reader = await world.open(read_only=True)
    else:
        reader = writer
    async with aclosing(reader.tail(P, 0)) as records:
        await first(records, 3)
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0.2)
        if reader is not writer:
            await writer.close()
        await world.replace()
        with pytest.raises((LogReplaced, LogTruncated)):
            await asyncio.wait_for(waiting, 20)
