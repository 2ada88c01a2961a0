"""Raw records straight from where they lie, without the services' own adapters."""

import sqlite3
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from tests.support.history import RawRecord


def kafka_records(bootstrap: str, topic: str) -> list[RawRecord]:
    """All records of a topic. Blocks."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    )
    try:
        partitions = [
            TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        records: list[RawRecord] = []
        while any(consumer.position(each) < ends[each] for each in partitions):
            for batch in consumer.poll(timeout_ms=1_000).values():
                records += [RawRecord(each.partition, each.offset, each.value) for each in batch]
        return records
    finally:
        consumer.close()


def sqlite_records(path: Path) -> list[RawRecord]:
    """All records of an embedded log; the log may be in use."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        rows = database.execute('SELECT "partition", "offset", value FROM records').fetchall()
    return [RawRecord(partition, offset, value) for partition, offset, value in rows]
