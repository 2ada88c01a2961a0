"""Who should own which partition: a Kafka consumer group whose members read nothing.

The group only spreads the partitions; that a process owns one is decided by its claim in the log
(``services.common.admission``). So a late or wrong notice here costs time, never correctness.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaError

from services.common.log.kafka_client import Admin, KafkaOptions, connect
from services.common.log.port import LogError, OwnershipListener

_logger = logging.getLogger(__name__)

_POLL_MS: Final = 200
_MAX_POLL_INTERVAL_MS: Final = 30_000
_HANG_S: Final = 45.0
_WATCH_S: Final = 5.0
_RETRY_S: Final = 1.0
_HINT_S: Final = 1.0
_CLOSE_S: Final = 5.0
_SLICE_S: Final = 0.01
# The group keeps a member's assignment from the others until its revocation was handled, or so
# long: the time to finish what is in flight and to release.
_REVOKE_S: Final = 3.0

_Change = Literal["assigned", "revoked"]


@dataclass(frozen=True, slots=True)
class _Notice:
    change: _Change
    partitions: frozenset[int]
    handled: threading.Event


class KafkaOwnership:
    """`services.common.log.Ownership` by the consumer group `group` on the log's topic.

    `address` ("host:port", where this process serves gRPC) travels in the member's client id, so
    that every process can read off the group who should own what.
    """

    def __init__(
        self,
        options: KafkaOptions,
        *,
        address: str,
        group: str = "match-owners",
        session_timeout_ms: int = 6_000,
    ) -> None:
        self._options = options
        self._address = address
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._owned: frozenset[int] = frozenset()
        self._notices: asyncio.Queue[_Notice] = asyncio.Queue()
        self._telling: asyncio.Task[None] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread()
        self._last_turn = 0.0
        self._admin = Admin(options)
        self._hints: dict[int, str] = {}
        self._hints_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that the listener was last told to own."""
        return self._owned

    async def start(self, listener: OwnershipListener) -> None:
        """Join the group, in the background, for as long as it takes to reach Kafka."""
        self._loop = asyncio.get_running_loop()
        self._telling = self._loop.create_task(self._tell(listener))
        self._begin()

    def _begin(self) -> None:
        self._last_turn = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="log-ownership", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Have everything revoked, then leave the group; others take over at once."""
        if self._telling is None:
            return
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _CLOSE_S + _REVOKE_S)
        # Normally the member's leaving has had everything revoked already.
        self.post("revoked", self._owned)
        await asyncio.sleep(0)
        await self._notices.join()
        self._telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._telling
        self._telling = None
        await self._admin.close()

    async def owner_hint(self, partition: int, *, refresh: bool = False) -> str | None:
        """Address of the group's member that `partition` is assigned to; see the port."""
        if refresh or time.monotonic() - self._hints_at > _HINT_S:
            if self._asking is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask())
            # Shielded: others may wait for the same answer.
            await asyncio.shield(self._asking)
        return self._hints.get(partition)

    async def _ask(self) -> None:
        try:
            members = await self._admin.group(self._group)
        except LogError as error:
            _logger.debug("no owner hints: %s", error)
            return
        finally:
            self._asking = None
            self._hints_at = time.monotonic()
        # While the group is being rearranged, the last known owners are the better guess.
        self._hints.update(
            {partition: client.rpartition("@")[2] for partition, client in members.items()}
        )

    # ---- the event loop's side of notices

    async def _tell(self, listener: OwnershipListener) -> None:
        while True:
            try:
                async with asyncio.timeout(_WATCH_S):
                    notice = await self._notices.get()
            except TimeoutError:
                self._check_thread()
                continue
            try:
                if notice.change == "assigned":
                    fresh = notice.partitions - self._owned
                    self._owned |= fresh
                    if fresh:
                        await listener.assigned(fresh)
                else:
                    gone = notice.partitions & self._owned
                    self._owned -= gone
                    if gone:
                        await listener.revoked(gone)
            except Exception:
                # The log decides who owns; a listener that fails must not end the membership.
                _logger.exception("telling about %s partitions failed", notice.change)
            finally:
                notice.handled.set()
                self._notices.task_done()

    def _check_thread(self) -> None:
        """Begin anew when the thread hangs in kafka-python; the group has dropped it by then."""
        if time.monotonic() - self._last_turn > _HANG_S and not self._stopping.is_set():
            _logger.error("the membership in the group %s hangs; joining anew", self._group)
            self._begin()
            self.post("revoked", self._owned)

    # ---- the member's thread

    def post(self, change: _Change, partitions: frozenset[int]) -> threading.Event:
        """Tell the loop, from any thread; the event is set when the listener has handled it."""
        notice = _Notice(change, partitions, threading.Event())
        try:
            self._loop.call_soon_threadsafe(self._notices.put_nowait, notice)
        except RuntimeError:  # the loop is closed: nobody is there to be told
            notice.handled.set()
        return notice.handled

    def _is_wanted(self) -> bool:
        self._last_turn = time.monotonic()
        return threading.current_thread() is self._thread and not self._stopping.is_set()

    def _run(self) -> None:
        said = ""
        while self._is_wanted():
            try:
                consumer = connect(self._options, self._build)
            except LogError as error:
                if str(error) != said:
                    said = str(error)
                    _logger.warning("no partitions are assigned: %s; trying again", error)
                self._stopping.wait(_RETRY_S)
                continue
            said = ""
            try:
                self._take_part(consumer)
            except Exception as error:  # a consumer that raised is not used again
                _logger.warning("left the group %s: %s; joining anew", self._group, error)
                self._leave(consumer)
                self.post("revoked", self._owned)
                self._stopping.wait(_RETRY_S)
            else:
                self._leave(consumer)

    def _build(self) -> Any:
        options = self._options.client("owner")
        options["client_id"] = f"{self._options.name}@{self._address}"
        return KafkaConsumer(
            **options,
            group_id=self._group,
            partition_assignment_strategy=[CooperativeStickyAssignor],
            session_timeout_ms=self._session_timeout_ms,
            heartbeat_interval_ms=self._session_timeout_ms // 4,
            max_poll_interval_ms=_MAX_POLL_INTERVAL_MS,
            auto_offset_reset="none",
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def _take_part(self, consumer: Any) -> None:
        consumer.subscribe([self._options.topic], listener=_Listener(self, consumer))
        while self._is_wanted():
            consumer.poll(timeout_ms=_POLL_MS)

    def _leave(self, consumer: Any) -> None:
        with contextlib.suppress(KafkaError, RuntimeError, OSError, AssertionError):
            consumer.close(autocommit=False, timeout_ms=1000 * _CLOSE_S)


class _Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Runs in kafka-python's event loop; heartbeats go on while a revocation is handled."""

    def __init__(self, ownership: KafkaOwnership, consumer: Any) -> None:
        self._ownership = ownership
        self._consumer = consumer

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        # Nothing is read through the group: positions without asking for any, and paused.
        for where in assigned:
            self._consumer.seek(where, 0)
        if assigned:
            self._consumer.pause(*assigned)
        self._ownership.post("assigned", _numbers(assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        handled = self._ownership.post("revoked", _numbers(revoked))
        give_up = time.monotonic() + _REVOKE_S
        while not handled.is_set() and time.monotonic() < give_up:
            await self._consumer._net.sleep(_SLICE_S)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        # Others may have claimed them already; there is nothing to wait for.
        self._ownership.post("revoked", _numbers(lost))


def _numbers(places: Iterable[TopicPartition]) -> frozenset[int]:
    return frozenset(where.partition for where in places)
