"""The log in a Kafka topic: `services.common.log.Log` over kafka-python.

The parts: ``kafka_writer`` (one producer), ``kafka_reader`` (consumers on threads),
``kafka_client`` (admin calls, errors), ``kafka_ownership`` (the consumer group). Here they are put
together and watched.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from typing import Final

from services.common.log.kafka_client import Admin, KafkaOptions, Topic, check_topic
from services.common.log.kafka_reader import Feed, Reader
from services.common.log.kafka_writer import Writer
from services.common.log.port import (
    LogError,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    Record,
)

_logger = logging.getLogger(__name__)

_RANGE_READERS: Final = 4
_WATCH_S: Final = 0.5
# How often the topic's identity, and the readers' progress against the log's end, are looked at.
_INSPECT_S: Final = 3.0


class KafkaLog:
    """The log in the topic that `options` names. `partitions`: how many it must have, if known."""

    def __init__(self, options: KafkaOptions, *, partitions: int | None = None) -> None:
        self._options = options
        self._wanted_partitions = partitions
        self._topic = Topic(0, "")
        self._fatal: LogError | None = None
        self._live: list[Reader] = []
        self._range: list[Reader] = []
        self._range_slots = asyncio.Semaphore(_RANGE_READERS)
        self._readers_made = 0
        self._asked: dict[int, list[asyncio.Future[int]]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stalled: dict[Feed, int] = {}

    @property
    def partitions(self) -> int:
        """How many partitions the topic has; known after `start`."""
        return self._topic.partitions

    @property
    def log_id(self) -> str:
        """Identity of cluster and topic; known after `start`."""
        return self._topic.log_id

    async def start(self) -> None:
        """Connect. Raises LogUnavailable, or LogUnusable when the topic is not as it must be."""
        self._admin = Admin(self._options)
        self._writer = Writer(self._options)
        try:
            found = await self._admin.topic()
            self._topic = check_topic(self._options, found, self._wanted_partitions)
            await self._writer.start()
        except LogError:
            await self._admin.close()
            await self._writer.close()
            raise
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """Flush for a moment, then let go of everything."""
        if self._watching is None:
            return
        self._fatal = self._fatal or LogUnavailable("the log is closed")
        for task in (self._watching, self._asking):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._watching = None
        self._end_asked(self._fatal)
        self._stop_readers(LogUnavailable("the log is closed"))
        await self._writer.close()
        await self._admin.close()

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        """Append one record; see `Log.append`. Ends within the delivery timeout and 4 s."""
        self._check(partition)
        return await self._writer.append(partition, key, value)

    async def tail(self, partition: int, from_offset: int) -> AsyncGenerator[Record, None]:
        """Every record from `from_offset` on, endless; see `Log.tail`."""
        self._check(partition)
        feed = Feed(partition, from_offset)
        reader = self._reader_for(partition, self._live)
        reader.add(feed)
        try:
            while True:
                for record in await feed.next_batch():
                    yield record
        finally:
            reader.remove(feed)

    async def read(
        self, partition: int, from_offset: int, to_offset: int
    ) -> AsyncGenerator[Record, None]:
        """The records of the range, `to_offset` excluded; see `Log.read`."""
        end = await self.end_offset(partition)
        if to_offset > end:
            raise LogTruncated(
                f"offset {to_offset} of partition {partition} is past the log's end {end}"
            )
        if from_offset >= to_offset:
            return
        # Apart from the tails: here every fetch finds something, so none waits at the broker.
        async with self._range_slots:
            self._check(partition)
            feed = Feed(partition, from_offset)
            reader = self._reader_for(partition, self._range)
            reader.add(feed)
            try:
                while True:
                    for record in await feed.next_batch():
                        if record.offset < to_offset:
                            yield record
                        if record.offset >= to_offset - 1:
                            return
            finally:
                reader.remove(feed)

    async def end_offset(self, partition: int) -> int:
        """The offset that the next record will get. Raises LogUnavailable."""
        self._check(partition)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._asked.setdefault(partition, []).append(answer)
        if self._asking is None:
            self._asking = loop.create_task(self._ask_end_offsets())
        return await answer

    async def _ask_end_offsets(self) -> None:
        """Answer everybody who asked, many partitions with one request."""
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                try:
                    ends = await self._admin.end_offsets(frozenset(asked))
                except LogError as error:
                    _fail_all(asked, error)
                    continue
                except BaseException:
                    _fail_all(asked, LogUnavailable("the log is closed"))
                    raise
                for partition, answers in asked.items():
                    for answer in answers:
                        if not answer.done():
                            answer.set_result(ends[partition])
        finally:
            self._asking = None

    def _end_asked(self, error: LogError) -> None:
        asked, self._asked = self._asked, {}
        _fail_all(asked, error)

    def _check(self, partition: int) -> None:
        assert 0 <= partition < self.partitions, f"no partition {partition}"
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)

    def _reader_for(self, partition: int, readers: list[Reader]) -> Reader:
        for reader in readers:
            if partition not in reader.feeds:
                return reader
        self._readers_made += 1
        readers.append(Reader(self._options, self._readers_made))
        return readers[-1]

    def _stop_readers(self, error: LogError) -> None:
        for reader in (*self._live, *self._range):
            reader.stop(error)
        self._live.clear()
        self._range.clear()

    # ---- watching: what kafka-python does not notice by itself

    async def _watch(self) -> None:
        inspect_at = time.monotonic() + _INSPECT_S
        missing = 0
        while True:
            await asyncio.sleep(_WATCH_S)
            self._writer.check()
            self._give_up_hanging_readers()
            if time.monotonic() < inspect_at:
                continue
            try:
                topic = await self._admin.topic()
                missing = missing + 1 if topic is None else 0
                # A broker that has just come up may not know its topics yet.
                if topic is not None or missing > 2:
                    self._check_identity(topic)
                await self._renew_stalled_readers()
            except LogUnavailable:
                pass  # appends and reads notice it themselves
            except LogError as error:
                self._give_up(error)
            except Exception:  # watching must not end before the log does
                _logger.exception("looking after the Kafka log failed")
            inspect_at = time.monotonic() + _INSPECT_S

    def _check_identity(self, topic: Topic | None) -> None:
        name = self._options.topic
        if topic is None:
            raise LogReplaced(f"the topic {name} was deleted")
        if topic.log_id != self._topic.log_id:
            raise LogReplaced(f"the topic {name} was deleted and made anew")
        if topic.partitions != self._topic.partitions:
            raise LogReplaced(
                f"the topic {name} has {topic.partitions} partitions now, not "
                f"{self._topic.partitions}; matches would be looked for in the wrong ones"
            )

    def _give_up(self, error: LogError) -> None:
        if self._fatal is None:
            _logger.error("%s", error)
            self._fatal = error
            self._stop_readers(error)

    def _give_up_hanging_readers(self) -> None:
        for readers in (self._live, self._range):
            for reader in [one for one in readers if one.hangs]:
                _logger.error("a Kafka consumer hangs; it is given up")
                readers.remove(reader)
                reader.stop(LogUnavailable("the Kafka client hung"))

    async def _renew_stalled_readers(self) -> None:
        """Replace consumers that stand still while the log goes on.

        kafka-python can stop fetching a partition for good when its leader changes (its issue
        3106); the broker knows better.
        """
        readers = {feed: reader for reader in self._live for feed in reader.feeds.values()}
        if not readers:
            return
        ends = await self._admin.end_offsets(frozenset(feed.partition for feed in readers))
        stalled: dict[Feed, int] = {}
        for feed, reader in readers.items():
            if feed.waiting_bytes or feed.position >= ends[feed.partition]:
                continue
            if self._stalled.get(feed) == feed.position:
                _logger.warning("partition %d stands still; reading anew", feed.partition)
                reader.renew()
            else:
                stalled[feed] = feed.position
        self._stalled = stalled


def _fail_all(asked: dict[int, list["asyncio.Future[int]"]], error: LogError) -> None:
    for answers in asked.values():
        for answer in answers:
            if not answer.done():
                answer.set_exception(error)
