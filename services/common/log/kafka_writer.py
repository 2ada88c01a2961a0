"""Appending to Kafka: kafka-python's producer behind an asyncio face.

Not idempotent, one request in flight: the idempotent producer of kafka-python 3.0 can fall silent
for ever after a broker was away longer than the delivery timeout (reliability.md, D1). Duplicates
by retries are harmless here: admission voids them.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from services.common.log.kafka_client import CallThread, KafkaOptions, connect
from services.common.log.port import (
    AppendUnknown,
    LogBusy,
    LogError,
    LogUnavailable,
    RecordTooLarge,
)

_logger = logging.getLogger(__name__)
# `send` may block the event loop this long when the topic vanished from the client's metadata;
# for a while after that appends are refused without asking.
_SEND_BLOCKS_MS: Final = 250
_REFUSE_S: Final = 1.0
# How much later than the delivery timeout the producer may settle an append before it counts as
# stuck.
_STUCK_S: Final = 3.0
_FLUSH_S: Final = 2.0


@dataclass(slots=True, eq=False)
class _Pending:
    done: "asyncio.Future[int]"
    since: float


class Writer:
    """One producer, replaced by a new one when it stops settling appends."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._thread = CallThread("kafka-writer")
        self._producer: Any = None
        self._in_flight: dict[_Pending, None] = {}
        self._settled: deque[tuple[_Pending, int | Exception]] = deque()
        self._drain_is_due = False
        self._refuse_until = 0.0
        self._replacing: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """How many appends are not settled yet."""
        return len(self._in_flight)

    async def start(self) -> None:
        """Connect. Raises LogUnavailable."""
        self._producer = await self._thread.call(
            self._build, 2 + 2 * self._options.connect_timeout_ms / 1000
        )

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        """As `Log.append`."""
        options = self._options
        size = len(key) + len(value)
        if size > options.record_bytes_max:
            raise RecordTooLarge(
                f"a record of {size} bytes is over the limit of {options.record_bytes_max}"
            )
        if len(self._in_flight) >= options.in_flight_max:
            raise LogBusy(f"{len(self._in_flight)} appends are waiting; try again later")
        if self._producer is None or time.monotonic() < self._refuse_until:
            raise LogUnavailable(f"Kafka at {options.shown_servers} cannot be written to now")
        pending = _Pending(self._loop.create_future(), time.monotonic())
        try:
            sent = self._producer.send(options.topic, value=value, key=key, partition=partition)
        except (KafkaError, ValueError, RuntimeError, OSError) as error:
            self._refuse_until = time.monotonic() + _REFUSE_S
            raise LogUnavailable(
                f"Kafka at {options.shown_servers} cannot be written to now: {error}"
            ) from error
        self._in_flight[pending] = None
        sent.add_callback(lambda metadata: self._settle(pending, metadata.offset))
        sent.add_errback(lambda error: self._settle(pending, error))
        # The entry goes when the producer settles it, even if the caller is gone by then.
        return await pending.done

    def check(self) -> None:
        """To be called about every half second: gives up on what the producer never settles."""
        limit_s = self._options.delivery_timeout_ms / 1000 + _STUCK_S
        now = time.monotonic()
        stuck = False
        for pending in list(self._in_flight):
            if now - pending.since < limit_s:
                break
            stuck = True
            del self._in_flight[pending]
            _set_error(pending, _unknown("the Kafka client does not answer"))
        if stuck and self._replacing is None:
            _logger.error("the Kafka producer is stuck; it is replaced")
            self._replacing = self._loop.create_task(self._replace())

    async def close(self) -> None:
        """Flush for a moment; what is not settled then raises AppendUnknown."""
        if self._replacing is not None:
            self._replacing.cancel()
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(LogUnavailable):
                await self._thread.call(lambda: _end(producer, _FLUSH_S), _FLUSH_S + 5)
        self._thread.close()
        self._drain()
        for pending in self._in_flight:
            _set_error(pending, _unknown("the log was closed"))
        self._in_flight.clear()

    def _build(self) -> Any:
        options = self._options
        producer = connect(
            options,
            lambda: KafkaProducer(
                **options.client("writer"),
                enable_idempotence=False,
                acks="all",
                max_in_flight_requests_per_connection=1,
                linger_ms=2,
                batch_size=256 << 10,
                compression_type="lz4",
                delivery_timeout_ms=options.delivery_timeout_ms,
                max_request_size=max(options.record_bytes_max + (64 << 10), 4 << 20),
                max_block_ms=_SEND_BLOCKS_MS,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            ),
        )
        # Without this the first append would block the event loop until the metadata are there.
        deadline = time.monotonic() + options.connect_timeout_ms / 1000
        while True:
            try:
                if producer.partitions_for(options.topic):
                    return producer
            except KafkaTimeoutError:
                pass
            except (KafkaError, RuntimeError, OSError) as error:
                _end(producer, 0)
                raise LogUnavailable(f"Kafka cannot be written to: {error}") from error
            if time.monotonic() > deadline:
                _end(producer, 0)
                raise LogUnavailable(
                    f"Kafka at {options.shown_servers} does not show the topic {options.topic}"
                )

    async def _replace(self) -> None:
        old, self._producer = self._producer, None
        threading.Thread(target=_end, args=(old, 0), name="kafka-writer-end", daemon=True).start()
        try:
            while self._producer is None:
                try:
                    await self.start()
                except LogError:
                    await asyncio.sleep(1)
        finally:
            self._replacing = None

    def _settle(self, pending: _Pending, result: int | Exception) -> None:
        """On the producer's thread: hand many results over with one call into the loop."""
        self._settled.append((pending, result))
        if not self._drain_is_due:
            self._drain_is_due = True
            with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # First the flag, then the queue: whoever appends after this schedules a new drain.
        self._drain_is_due = False
        while self._settled:
            pending, result = self._settled.popleft()
            self._in_flight.pop(pending, None)
            if isinstance(result, int):
                if not pending.done.done():
                    pending.done.set_result(result)
            else:
                _set_error(pending, _append_error(result))


def _append_error(error: Exception) -> LogError:
    if isinstance(error, (MessageSizeTooLargeError, RecordListTooLargeError)):
        return RecordTooLarge(f"Kafka does not take a record of this size: {error}")
    # Whatever else was answered in the end, an attempt before it may have been written.
    if isinstance(error, KafkaTimeoutError):
        return _unknown("no acknowledgement in time")
    return _unknown(str(error))


def _unknown(reason: str) -> AppendUnknown:
    return AppendUnknown(f"{reason}: the record may or may not be in the log")


def _set_error(pending: _Pending, error: LogError) -> None:
    if not pending.done.done():
        pending.done.set_exception(error)


def _end(producer: Any, patience_s: float) -> None:
    """Close a producer for good. Blocks about `patience_s`."""
    with contextlib.suppress(KafkaError, RuntimeError, OSError):
        if patience_s > 0:
            producer.flush(patience_s)
    # close() would flush once more and, failing in that, leave its thread running for ever.
    with contextlib.suppress(AttributeError, KafkaError, RuntimeError, OSError):
        producer._sender.force_close()
    with contextlib.suppress(KafkaError, RuntimeError, OSError):
        producer.close(1)
