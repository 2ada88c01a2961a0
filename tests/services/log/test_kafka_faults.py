"""The Kafka log while its broker is killed, frozen, damaged, or is not there at all."""

import asyncio
import contextlib
import dataclasses
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kafka import KafkaProducer, TopicPartition

from services.common.broker import KafkaBroker
from services.common.log import (
    AppendUnknown,
    Log,
    LogCorrupt,
    LogError,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    LogUnusable,
    Record,
)
from services.common.log import kafka as kafka_module
from services.common.log.kafka import KafkaLog
from services.common.log.kafka_client import Admin, KafkaOptions, create_topic
from tests.conftest import started
from tests.services.log.conftest import KafkaWorld, delete_topic

PARTITIONS = 4
# The delivery timeout here (3 s), what the writer adds to it (3.5 s), and a busy machine.
LIMIT_S = 3 + 3.5 + 5


@pytest_asyncio.fixture
async def own_options(own_kafka_broker: KafkaBroker) -> KafkaOptions:
    """A topic on a broker that this test may ruin; short timeouts."""
    options = KafkaOptions(
        servers=(own_kafka_broker.bootstrap,),
        connect_timeout_ms=2_000,
        request_timeout_ms=1_000,
        delivery_timeout_ms=3_000,
    )
    await create_topic(options, partitions=PARTITIONS)
    return options


@pytest_asyncio.fixture
async def own_log(own_options: KafkaOptions) -> AsyncIterator[KafkaLog]:
    """The log in that topic."""
    log = KafkaLog(own_options)
    await log.start()
    yield log
    await log.close()


class Writers:
    """Tasks that append different values without end and remember how each append went."""

    def __init__(self, log: Log, count: int) -> None:
        self.log = log
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.unknown: list[bytes] = []
        self.refused = 0
        self.longest_s = 0.0
        self.tasks = [asyncio.ensure_future(self.write(name)) for name in range(count)]

    async def write(self, name: int) -> None:
        number = 0
        while True:
            partition, value = name % PARTITIONS, f"{name}/{number}".encode()
            number += 1
            begun = time.monotonic()
            try:
                offset = await self.log.append(partition, b"k", value)
                self.acknowledged[partition, offset] = value
            except (AppendUnknown, asyncio.CancelledError) as error:
                self.unknown.append(value)
                if isinstance(error, asyncio.CancelledError):
                    raise
            except LogUnavailable:
                self.refused += 1
                await asyncio.sleep(0.1)
            self.longest_s = max(self.longest_s, time.monotonic() - begun)

    async def more(self, count: int) -> None:
        """Wait until `count` more appends were acknowledged."""
        wanted = len(self.acknowledged) + count
        await until(lambda: len(self.acknowledged) >= wanted, 40)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


class Reader:
    """Tails every partition and keeps all that it reads; begins again when it must."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.records: dict[int, list[Record]] = {p: [] for p in range(PARTITIONS)}
        self.tasks = [asyncio.ensure_future(self.read(p)) for p in range(PARTITIONS)]

    async def read(self, partition: int) -> None:
        kept = self.records[partition]
        while True:
            with contextlib.suppress(LogUnavailable):
                async with aclosing(self.log.tail(partition, len(kept))) as records:
                    async for record in records:
                        assert record.offset == len(kept)
                        kept.append(record)
            await asyncio.sleep(0.1)

    async def catch_up(self) -> None:
        ends = {partition: await self.log.end_offset(partition) for partition in self.records}
        await until(lambda: all(len(self.records[p]) >= end for p, end in ends.items()), 20)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)
        assert all(task.cancelled() for task in self.tasks)


async def until(holds: Callable[[], bool], limit_s: float) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(limit_s):
        while not holds():  # noqa: ASYNC110  # many things are waited for here, none has an event
            await asyncio.sleep(0.02)


def check(writers: Writers, reader: Reader) -> None:
    """Every acknowledged append lies where it was said to lie; nothing else was made up."""
    for (partition, offset), value in writers.acknowledged.items():
        assert reader.records[partition][offset].value == value
    written = {record.value for kept in reader.records.values() for record in kept}
    assert written <= {*writers.acknowledged.values(), *writers.unknown}


async def test_a_killed_broker_loses_nothing_that_was_acknowledged(
    own_kafka_broker: KafkaBroker, own_log: KafkaLog
) -> None:
    writers, reader = Writers(own_log, 16), Reader(own_log)
    await writers.more(300)
    await own_kafka_broker.kill()
    await asyncio.sleep(0.5)
    await started(own_kafka_broker)
    await writers.more(300)
    await writers.stop()
    await reader.catch_up()
    await reader.stop()
    check(writers, reader)
    assert writers.longest_s < LIMIT_S


async def test_a_frozen_broker_makes_appends_unknown_in_bounded_time(
    own_kafka_broker: KafkaBroker, own_log: KafkaLog
) -> None:
    writers, reader = Writers(own_log, 8), Reader(own_log)
    await writers.more(200)
    own_kafka_broker.pause()
    try:
        await until(lambda: len(writers.unknown) >= 8, LIMIT_S)
        with pytest.raises(LogUnavailable):
            await asyncio.wait_for(own_log.end_offset(0), 10)
    finally:
        own_kafka_broker.resume()
    await writers.more(200)
    await writers.stop()
    await reader.catch_up()
    await reader.stop()
    check(writers, reader)
    assert writers.longest_s < LIMIT_S


async def test_a_producer_that_settles_nothing_is_replaced(
    kafka_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_world.options = dataclasses.replace(
        kafka_world.options, request_timeout_ms=300, delivery_timeout_ms=500
    )
    log = await kafka_world.open()
    assert isinstance(log, KafkaLog)
    assert await log.append(0, b"k", b"before") == 0
    # As when kafka-python's sender dies or falls silent (D1): accepted, never answered.
    stuck = log._writer._producer
    monkeypatch.setattr(stuck._sender, "run_once", lambda: time.sleep(0.05))
    with pytest.raises(AppendUnknown):
        await asyncio.wait_for(log.append(0, b"k", b"lost"), 5)
    async with asyncio.timeout(10):
        while True:
            try:
                offset = await log.append(0, b"k", b"after")
                break
            except LogUnavailable:
                await asyncio.sleep(0.05)
    assert log._writer._producer is not stuck
    assert log._writer.in_flight == 0
    async with aclosing(log.tail(0, offset)) as records:
        assert (await anext(records)).value == b"after"


def flip_a_bit(segment: Path, where: bytes) -> None:
    """Damage the place in Kafka's file where `where` is written."""
    data = segment.read_bytes()
    place = data.index(where)
    with segment.open("r+b") as file:
        file.seek(place)
        file.write(bytes([data[place] ^ 1]))


async def test_a_damaged_record_stops_its_partition_and_no_other(
    own_kafka_broker: KafkaBroker, own_log: KafkaLog, tmp_path: Path
) -> None:
    for partition in (0, 1):
        for value in (b"first value", b"second value", b"third value"):
            await own_log.append(partition, b"k", value)
    segment = tmp_path / "own-kafka/data/match-events-1/00000000000000000000.log"
    flip_a_bit(segment, b"second value")
    good, bad = own_log.tail(0, 0), own_log.tail(1, 0)
    async with aclosing(good), aclosing(bad):
        assert (await asyncio.wait_for(anext(bad), 10)).value == b"first value"
        with pytest.raises(LogCorrupt, match="damaged"):
            await asyncio.wait_for(anext(bad), 10)
        # The reader has not begun to spin (D6); the other partition goes on, live as well.
        for _ in range(3):
            await asyncio.wait_for(anext(good), 10)
        await own_log.append(0, b"k", b"fourth value")
        assert (await asyncio.wait_for(anext(good), 10)).value == b"fourth value"
        used = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - used < 0.5


async def test_a_topic_made_anew_stops_readers_and_writers(
    kafka_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_module, "_INSPECT_S", 0.5)
    log = await kafka_world.open()
    await log.append(0, b"k", b"old")
    async with aclosing(log.tail(0, 0)) as records:
        await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await kafka_world.replace()
        with pytest.raises((LogReplaced, LogTruncated)):
            await asyncio.wait_for(waiting, 10)
    async with asyncio.timeout(10):
        # Until it is noticed, records go to the new topic, where their log id makes them void.
        with pytest.raises(LogReplaced, match="made anew"):
            while True:
                with contextlib.suppress(LogUnavailable, AppendUnknown):
                    await log.append(0, b"k", b"stray")
                await asyncio.sleep(0.05)
    with pytest.raises(LogReplaced):
        await log.end_offset(0)


async def test_a_deleted_topic_is_noticed_without_blocking_the_event_loop(
    kafka_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_module, "_INSPECT_S", 0.5)
    log = await kafka_world.open()
    await log.append(0, b"k", b"v")
    await delete_topic(kafka_world.options)
    longest = 0.0
    async with asyncio.timeout(15):
        with pytest.raises(LogReplaced, match="deleted"):
            while True:
                await asyncio.sleep(0.02)
                begun = time.monotonic()
                with contextlib.suppress(LogUnavailable, AppendUnknown, TimeoutError):
                    async with asyncio.timeout(0.01):
                        await log.append(0, b"k", b"v")
                longest = max(longest, time.monotonic() - begun)
    assert longest < 1


async def test_a_consumer_that_stands_still_is_renewed(
    kafka_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in kafka-python's issue 3106: polls return nothing although there are records."""
    monkeypatch.setattr(kafka_module, "_INSPECT_S", 0.3)
    log = await kafka_world.open()
    assert isinstance(log, KafkaLog)
    await log.append(0, b"k", b"one")
    async with aclosing(log.tail(0, 0)) as records:
        await anext(records)
        consumer = log._live[0]._consumer

        def read_nothing(timeout_ms: int) -> dict[object, object]:
            time.sleep(timeout_ms / 1000)
            return {}

        monkeypatch.setattr(consumer, "poll", read_nothing)
        await asyncio.sleep(0.3)  # the poll that is under way ends
        await log.append(0, b"k", b"two")
        assert (await asyncio.wait_for(anext(records), 10)).value == b"two"
        assert log._live[0]._consumer is not consumer


async def test_a_broker_that_goes_leaves_reads_waiting_and_comes_back(
    own_kafka_broker: KafkaBroker, own_log: KafkaLog
) -> None:
    await own_log.append(0, b"k", b"before")
    async with aclosing(own_log.tail(0, 0)) as records:
        await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await own_kafka_broker.stop()
        begun = time.monotonic()
        with pytest.raises(LogError):
            await own_log.append(0, b"k", b"lost")
        assert time.monotonic() - begun < LIMIT_S
        with pytest.raises(LogUnavailable, match="Connection refused"):
            await own_log.end_offset(0)
        await started(own_kafka_broker)
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(LogUnavailable, AppendUnknown):
                    await own_log.append(0, b"k", b"after")
                    break
        assert (await asyncio.wait_for(waiting, 10)).value in (b"lost", b"after")


async def test_an_unreachable_kafka_is_said_in_one_sentence_and_soon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{probe.getsockname()[1]}"
    begun = time.monotonic()
    with pytest.raises(LogUnavailable) as raised:
        await KafkaLog(KafkaOptions(servers=(server,))).start()
    assert str(raised.value) == f"cannot reach Kafka at {server}: Connection refused"
    assert time.monotonic() - begun < 10
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_server_that_is_no_kafka_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    server = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with silent:
        begun = time.monotonic()
        with pytest.raises(LogUnavailable, match=f"cannot reach Kafka at {server}: "):
            await KafkaLog(KafkaOptions(servers=(server,), connect_timeout_ms=1_000)).start()
        assert time.monotonic() - begun < 20
    assert len([record for record in caplog.records if record.name.startswith("services")]) < 10


async def test_a_missing_topic_is_the_operators_business(kafka_options: KafkaOptions) -> None:
    with pytest.raises(LogUnusable, match="does not exist; make it with: diceledger topics create"):
        await KafkaLog(kafka_options).start()


async def test_creating_the_topic_twice_changes_nothing(kafka_options: KafkaOptions) -> None:
    assert await create_topic(kafka_options, partitions=3) is True
    assert await create_topic(kafka_options, partitions=3) is False
    with pytest.raises(LogUnusable, match="has 3 partitions, not 4"):
        await create_topic(kafka_options, partitions=4)


async def administer(options: KafkaOptions, what: Callable[[Any], object]) -> None:
    """Do something to the topic that an operator must not do."""
    admin = Admin(options)
    await admin._call(what)
    await admin.close()


async def test_a_topic_that_grows_stops_everything(
    kafka_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_module, "_INSPECT_S", 0.3)
    log = await kafka_world.open()
    topic = kafka_world.options.topic
    async with aclosing(log.tail(0, 0)) as records:
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0)
        await administer(
            kafka_world.options,
            lambda admin: admin.create_partitions({topic: PARTITIONS + 1}),
        )
        with pytest.raises(LogReplaced, match="has 5 partitions now, not 4"):
            await asyncio.wait_for(waiting, 10)


async def test_records_that_retention_removed_are_missed(kafka_world: KafkaWorld) -> None:
    log = await kafka_world.open()
    for _ in range(5):
        await log.append(0, b"k", b"v")
    place = TopicPartition(kafka_world.options.topic, 0)
    await administer(kafka_world.options, lambda admin: admin.delete_records({place: 3}))
    async with aclosing(log.tail(0, 0)) as records:
        with pytest.raises(LogTruncated):
            await asyncio.wait_for(anext(records), 10)
    async with aclosing(log.tail(0, 3)) as records:
        assert (await asyncio.wait_for(anext(records), 10)).offset == 3


async def test_a_record_without_key_or_value_is_read_as_empty(kafka_world: KafkaWorld) -> None:
    """A tombstone or the like, from somebody else's producer; admission makes it void."""
    log = await kafka_world.open()
    rogue = KafkaProducer(bootstrap_servers=kafka_world.options.servers[0])
    rogue.send(kafka_world.options.topic, key=b"k", value=None, partition=0)
    rogue.send(kafka_world.options.topic, key=None, value=b"v", partition=0).get(10)
    rogue.close()
    async with aclosing(log.tail(0, 0)) as records:
        found = [await asyncio.wait_for(anext(records), 10) for _ in range(2)]
    assert [(record.key, record.value) for record in found] == [(b"k", b""), (b"", b"v")]
