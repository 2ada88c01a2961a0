"""One membership in a Kafka consumer group: a thread, and one consumer after the other on it.

What happens to it is told by notices. Whoever loses faith in it gives it up and begins another;
from then on nobody listens to it, and its thread ends when kafka-python lets it.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaError

from services.common.log.kafka_client import KafkaOptions, connect
from services.common.log.port import LogError

_logger = logging.getLogger(__name__)

_POLL_MS: Final = 200
_MAX_POLL_INTERVAL_MS: Final = 30_000
_RETRY_S: Final = 1.0
_CLOSE_S: Final = 5.0
_SLICE_S: Final = 0.01
# The group keeps a member's assignment from the others until its revocation was handled, or so
# long: the time to finish what is in flight and to release.
_REVOKE_S: Final = 3.0
# How long the thread may take to leave in order.
LEAVE_S: Final = _CLOSE_S + _REVOKE_S


@dataclass(frozen=True, slots=True, eq=False)
class Notice:
    """Something changed. `handled` is set by whoever was told, also when it did not care."""

    membership: "Membership"
    change: Literal["assigned", "revoked"]
    # None: all that there are.
    partitions: frozenset[int] | None
    handled: threading.Event = field(default_factory=threading.Event)


class Membership:
    """Takes part in `group` on a thread of its own, from `start` until `stop`."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        group: str,
        address: str,
        session_timeout_ms: int,
        tell: Callable[[Notice], None],
    ) -> None:
        """`tell` is called from other threads."""
        # Changes whenever the thread goes round; one that hangs in kafka-python shows by it.
        self.turns = 0
        # Which member of the group this is; no two consumers share one. Empty: none yet.
        self.client_id = ""
        self._options = options
        self._group = group
        self._address = address
        self._session_timeout_ms = session_timeout_ms
        self._tell = tell
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-ownership", daemon=True)

    def start(self) -> None:
        """Join the group, for as long as it takes to reach Kafka."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the group soon; does not wait for it."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, at most so long. Blocks."""
        self._thread.join(timeout_s)

    def post(self, change: Literal["assigned", "revoked"], partitions: frozenset[int]) -> Notice:
        """Tell of a change; from any thread."""
        notice = Notice(self, change, partitions)
        self._tell(notice)
        return notice

    # ---- the thread

    def _run(self) -> None:
        said = ""
        while not self._stopping.is_set():
            self.turns += 1
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
                _leave(consumer)
                self._tell(Notice(self, "revoked", None))
                self._stopping.wait(_RETRY_S)
            else:
                _leave(consumer)

    def _build(self) -> Any:
        options = self._options.client("owner")
        # Others read the address off it; the rest tells this consumer from any other.
        self.client_id = f"{self._options.name}.{secrets.token_hex(4)}@{self._address}"
        options["client_id"] = self.client_id
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
        while not self._stopping.is_set():
            self.turns += 1
            remember_rejoining(consumer)
            consumer.poll(timeout_ms=_POLL_MS)


def remember_rejoining(consumer: Any) -> None:
    """Have a rejoining that a poll broke off be taken up by the next poll.

    kafka-python 3.0.12 forgets it when a change of the metadata was its reason: a leader rejoins
    because the topic looks other than when it assigned; it assigns anew, so that is no reason any
    more; if the poll ends before the answer to SyncGroup is there, no later poll asks for it.
    Heartbeats are off while rejoining, so the group drops the member, which never notices.
    """
    coordinator = consumer._coordinator
    if coordinator.rejoining and not coordinator.need_rejoin():
        coordinator.request_rejoin()


def _leave(consumer: Any) -> None:
    with contextlib.suppress(KafkaError, RuntimeError, OSError, AssertionError):
        consumer.close(autocommit=False, timeout_ms=1000 * _CLOSE_S)


class _Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Runs in kafka-python's event loop; heartbeats go on while a revocation is handled."""

    def __init__(self, membership: Membership, consumer: Any) -> None:
        self._membership = membership
        self._consumer = consumer

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        # Nothing is read through the group: positions without asking for any, and paused.
        for where in assigned:
            self._consumer.seek(where, 0)
        if assigned:
            self._consumer.pause(*assigned)
        self._membership.post("assigned", _numbers(assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        notice = self._membership.post("revoked", _numbers(revoked))
        give_up = time.monotonic() + _REVOKE_S
        while not notice.handled.is_set() and time.monotonic() < give_up:
            await self._consumer._net.sleep(_SLICE_S)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        # Others may have claimed them already; there is nothing to wait for.
        self._membership.post("revoked", _numbers(lost))


def _numbers(places: Iterable[TopicPartition]) -> frozenset[int]:
    return frozenset(where.partition for where in places)
