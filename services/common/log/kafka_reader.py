"""Reading from Kafka: threads that poll a consumer each and hand the records into the event loop.

kafka-python's consumer has one position per partition and belongs to one thread. So a `Reader` is
one thread with one consumer and serves at most one `Feed` per partition; positions are ours and
explicit, nothing is ever read from a group's offsets or reset by a policy. A consumer that raised
is thrown away and a new one goes on from the feeds' positions: after some errors kafka-python's
``poll`` would spin for ever (reliability.md, D6).
"""

import asyncio
import contextlib
import logging
import re
import threading
import time
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
)

from services.common.log.kafka_client import KafkaOptions, connect
from services.common.log.port import LogCorrupt, LogError, LogTruncated, LogUnavailable, Record

_logger = logging.getLogger(__name__)

# A fetch that finds nothing new waits so long at the broker. A feed that is added meanwhile waits
# with it, so this is also the latency of a new feed.
_FETCH_WAIT_MS: Final = 100
_POLL_MS: Final = 100
_POLL_PAUSED_MS: Final = 10
_POLL_RECORDS: Final = 2_000
# A feed with more than this waiting in the loop is paused; below the half it goes on.
_WAITING_BYTES_MAX: Final = 4 << 20
_RECORD_OVERHEAD_BYTES: Final = 200
_PARTITION_IN_MESSAGE: Final = re.compile(r"partition=(\d+)")
_BUILD_BACKOFF_S: Final = 0.2


class Feed:
    """The records of one partition from one offset on, as they come from a reader.

    The reader's thread writes `position` and `delivered_bytes`, the event loop everything else.
    """

    def __init__(self, partition: int, offset: int) -> None:
        self.partition = partition
        # Offset of the next record to come from Kafka.
        self.position = offset
        self.delivered_bytes = 0
        self.taken_bytes = 0
        self._batches: deque[tuple[list[Record], int]] = deque()
        self._more = asyncio.Event()
        self._error: LogError | None = None

    @property
    def waiting_bytes(self) -> int:
        """How much was delivered and not taken yet."""
        return self.delivered_bytes - self.taken_bytes

    async def next_batch(self) -> list[Record]:
        """The next records, at least one; raises what ended the feed."""
        while not self._batches:
            if self._error is not None:
                # Without the traceback of whoever raised it before; it would grow for ever.
                raise self._error.with_traceback(None)
            self._more.clear()
            await self._more.wait()
        records, size = self._batches.popleft()
        self.taken_bytes += size
        return records

    def push(self, records: list[Record], size: int) -> None:
        """Called in the loop with what the reader delivered."""
        self._batches.append((records, size))
        self._more.set()

    def end(self, error: LogError) -> None:
        """Called in the loop: nothing more comes. What is waiting can still be taken."""
        if self._error is None:
            self._error = error
        self._more.set()


class Reader:
    """One thread, one consumer, feeds of different partitions. Made and used in the event loop."""

    def __init__(self, options: KafkaOptions, number: int) -> None:
        self.feeds: dict[int, Feed] = {}
        # When the thread last went round; a thread that hangs shows by it.
        self.last_turn = time.monotonic()
        self._options = options
        self._name = f"reader-{number}"
        self._loop = asyncio.get_running_loop()
        self._commands: SimpleQueue[tuple[str, Feed | None]] = SimpleQueue()
        # The thread's own view; `feeds` is the loop's.
        self._serving: dict[int, Feed] = {}
        self._consumer: Any = None
        self._thread = threading.Thread(target=self._run, name=f"log-{self._name}", daemon=True)
        self._thread.start()

    @property
    def hangs(self) -> bool:
        """Whether the thread is stuck in kafka-python. One without feeds sleeps and never is."""
        limit_s = 10 + 2 * self._options.connect_timeout_ms / 1000
        return bool(self.feeds) and time.monotonic() - self.last_turn > limit_s

    def add(self, feed: Feed) -> None:
        """Begin to serve `feed`; its partition must be free here."""
        assert feed.partition not in self.feeds, "one feed per partition and reader"
        if not self.feeds:
            self.last_turn = time.monotonic()
        self.feeds[feed.partition] = feed
        self._commands.put(("add", feed))

    def remove(self, feed: Feed) -> None:
        """Serve `feed` no longer."""
        if self.feeds.get(feed.partition) is feed:
            del self.feeds[feed.partition]
            self._commands.put(("remove", feed))

    def renew(self) -> None:
        """Go on with a new consumer from the feeds' positions."""
        self._commands.put(("renew", None))

    def stop(self, error: LogError) -> None:
        """End every feed with `error`, then the thread; does not wait for it."""
        for feed in self.feeds.values():
            feed.end(error)
        self.feeds.clear()
        self._commands.put(("stop", None))

    # ---- the thread

    def _run(self) -> None:
        while self._obey():
            self.last_turn = time.monotonic()
            try:
                if self._consumer is None:
                    self._consumer = connect(self._options, self._build)
                    self._assign(set(self._serving))
                self._turn(self._consumer)
            except LogError as error:
                self._drop_consumer()
                self._end_feeds(list(self._serving.values()), error)
                time.sleep(_BUILD_BACKOFF_S)
            except Exception as error:  # whatever it was: a consumer that raised is not used again
                self._drop_consumer()
                self._end_broken(error)
        self._drop_consumer()

    def _obey(self) -> bool:
        """Carry out what the loop wants; wait for it when there is nothing to read."""
        fresh: set[int] = set()
        changed = False
        while True:
            try:
                command, feed = self._commands.get(block=not self._serving)
            except Empty:
                break
            if command == "stop":
                return False
            if command == "renew":
                self._drop_consumer()
            elif feed is not None and command == "add":
                self._serving[feed.partition] = feed
                fresh.add(feed.partition)
                changed = True
            elif feed is not None and self._serving.get(feed.partition) is feed:
                del self._serving[feed.partition]
                changed = True
        if changed and self._consumer is not None:
            try:
                self._assign(fresh & self._serving.keys())
            except Exception:  # a consumer that raised is not used again
                self._drop_consumer()
        return True

    def _build(self) -> Any:
        return KafkaConsumer(
            **self._options.client(self._name),
            auto_offset_reset="none",
            enable_auto_commit=False,
            group_id=None,
            fetch_max_wait_ms=_FETCH_WAIT_MS,
            max_partition_fetch_bytes=1 << 20,
            max_poll_records=_POLL_RECORDS,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def _assign(self, fresh: set[int]) -> None:
        """Make the consumer read what is to be served; `fresh` partitions from their position."""
        name = self._options.topic
        self._consumer.assign([TopicPartition(name, partition) for partition in self._serving])
        for partition in fresh:
            where = TopicPartition(name, partition)
            self._consumer.seek(where, self._serving[partition].position)
            self._consumer.resume(where)

    def _turn(self, consumer: Any) -> None:
        name = self._options.topic
        paused = {where.partition for where in consumer.paused()}
        for partition, feed in self._serving.items():
            if partition not in paused and feed.waiting_bytes > _WAITING_BYTES_MAX:
                consumer.pause(TopicPartition(name, partition))
                paused.add(partition)
            elif partition in paused and feed.waiting_bytes < _WAITING_BYTES_MAX // 2:
                consumer.resume(TopicPartition(name, partition))
                paused.remove(partition)
        polled = consumer.poll(timeout_ms=_POLL_PAUSED_MS if paused else _POLL_MS)
        deliveries = []
        for where, fetched in polled.items():
            served = self._serving.get(where.partition)
            if served is None:
                continue
            records = [_record(one) for one in fetched if one.offset >= served.position]
            if records:
                size = sum(len(one.value) + _RECORD_OVERHEAD_BYTES for one in records)
                served.position = records[-1].offset + 1
                served.delivered_bytes += size
                deliveries.append((served, records, size))
        if deliveries:
            self._tell(_push_all, deliveries)

    def _end_broken(self, error: Exception) -> None:
        """End the feeds that `error` is about; the others go on with a new consumer."""
        why, partitions = _explain(error)
        concerned = [feed for feed in self._serving.values() if feed.partition in partitions]
        if isinstance(why, LogUnavailable) or not concerned:
            _logger.warning("%s: %s", self._name, why)
            concerned = list(self._serving.values())
        self._end_feeds(concerned, why)

    def _end_feeds(self, feeds: list[Feed], error: LogError) -> None:
        for feed in feeds:
            self._serving.pop(feed.partition, None)
        self._tell(self._ended, feeds, error)

    def _ended(self, feeds: list[Feed], error: LogError) -> None:
        for feed in feeds:
            if self.feeds.get(feed.partition) is feed:
                del self.feeds[feed.partition]
            feed.end(error)

    def _drop_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with contextlib.suppress(KafkaError, RuntimeError, OSError, AssertionError):
                consumer.close(autocommit=False, timeout_ms=500)

    def _tell(self, callback: Any, *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits
            self._loop.call_soon_threadsafe(callback, *arguments)


def _push_all(deliveries: list[tuple[Feed, list[Record], int]]) -> None:
    for feed, records, size in deliveries:
        feed.push(records, size)


def _record(fetched: Any) -> Record:
    return Record(
        fetched.partition,
        fetched.offset,
        fetched.key or b"",
        fetched.value or b"",
        fetched.timestamp,
    )


def _explain(error: Exception) -> tuple[LogError, set[int]]:
    """What an error of the consumer means, and for which partitions (none: not known)."""
    if isinstance(error, OffsetOutOfRangeError):
        offsets = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        places = ", ".join(f"{where.partition}:{offset}" for where, offset in offsets.items())
        return (
            LogTruncated(f"the log does not have position {places or 'asked for'} (any more)"),
            {where.partition for where in offsets},
        )
    if isinstance(error, LogTruncationError):
        partitions = {where.partition for where in error.divergent_offsets}
        return LogTruncated(f"the log lost records that were read: {error}"), partitions
    if isinstance(error, CorruptRecordError):
        found = _PARTITION_IN_MESSAGE.search(str(error))
        return LogCorrupt(f"the log is damaged: {error}"), {int(found[1])} if found else set()
    return LogUnavailable(f"reading from Kafka failed: {error}"), set()
