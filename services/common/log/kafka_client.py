"""What every use of kafka-python here shares: options, admin calls, errors for people, its noise.

kafka-python blocks and keeps threads of its own, so each client lives on one thread of ours
(`CallThread`) and every wait for it is bounded. A client that failed is thrown away, not repaired.
"""

import asyncio
import contextlib
import hashlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import (
    AuthorizationError,
    GroupIdNotFoundError,
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from services.common.log.port import LogError, LogUnavailable, LogUnusable

T = TypeVar("T")
_logger = logging.getLogger(__name__)
_PROBE_S: Final = 2.0
_NOISE_PER_MINUTE: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """How Kafka is reached and used. Sizes in bytes of key and value together.

    `servers` are "host:port" to begin with; `security` goes to kafka-python as it is
    (``security_protocol``, ``sasl_mechanism`` …).
    """

    servers: tuple[str, ...]
    topic: str = "match-events"
    name: str = "diceledger"
    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 4_000
    # How long an append may stay without acknowledgement before its outcome counts as unknown.
    delivery_timeout_ms: int = 10_000
    in_flight_max: int = 2_048
    record_bytes_max: int = 2 << 20
    security: Mapping[str, object] = field(default_factory=dict)

    @property
    def shown_servers(self) -> str:
        """The servers as people read them."""
        return ", ".join(self.servers)

    def client(self, role: str) -> dict[str, Any]:
        """The options that all of kafka-python's clients take."""
        return {
            "bootstrap_servers": list(self.servers),
            "client_id": f"{self.name}-{role}",
            "request_timeout_ms": self.request_timeout_ms,
            "bootstrap_timeout_ms": self.connect_timeout_ms,
            "reconnect_backoff_max_ms": 500,
            "metadata_max_age_ms": 30_000,
            **self.security,
        }


@dataclass(frozen=True, slots=True)
class Topic:
    """What identifies the topic: its number of partitions and the log's identity."""

    partitions: int
    log_id: str


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group as its coordinator sees it."""

    # Not being rearranged.
    settled: bool
    # Which partitions of the topic each member has, by the members' client ids.
    members: Mapping[str, frozenset[int]]


def connect(options: KafkaOptions, make: Callable[[], T]) -> T:
    """Build a client by `make`; LogUnavailable, in one sentence, when Kafka is away. Blocks."""
    quiet_kafka_python()
    _probe(options)
    with people_errors(options):
        return make()


@contextlib.contextmanager
def people_errors(options: KafkaOptions) -> Iterator[None]:
    """Turn kafka-python's errors into LogUnavailable or LogUnusable, in one sentence."""
    try:
        yield
    except (AuthorizationError, SaslAuthenticationFailedError) as error:
        raise LogUnusable(f"Kafka at {options.shown_servers} refuses us: {error}") from error
    except KafkaError as error:
        raise LogUnavailable(f"cannot reach Kafka at {options.shown_servers}: {error}") from error
    except LogError:
        raise
    # A connection that breaks makes kafka-python raise almost anything: RuntimeError and OSError
    # from its event loop, errors of decoding half an answer.
    except Exception as error:
        raise LogUnavailable(
            f"talking to Kafka at {options.shown_servers} failed: {type(error).__name__}: {error}"
        ) from error


def _probe(options: KafkaOptions) -> None:
    """Learn quickly, and with the reason, that no server can be connected to."""
    reason = "no server given"
    for server in options.servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_S).close()
            return
        except TimeoutError:
            reason = "no answer"
        except OSError as error:
            reason = error.strerror or str(error)
    raise LogUnavailable(f"cannot reach Kafka at {options.shown_servers}: {reason}")


class CallThread:
    """One thread for the blocking calls of one client. Never joined; dies with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] | None = None

    async def call(self, work: Callable[[], T], timeout_s: float) -> T:
        """Run `work` on the thread. After `timeout_s` the thread is abandoned: LogUnavailable."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                _tell(loop, _fail, done, error)
            else:
                _tell(loop, _resolve, done, result)

        self._started().put(run)
        try:
            async with asyncio.timeout(timeout_s):
                return await done
        except TimeoutError:
            self.close()
            raise LogUnavailable(f"Kafka did not answer within {timeout_s:.0f} s") from None

    def close(self) -> None:
        """Let the thread end after what it is doing; a later call begins a new one."""
        if self._queue is not None:
            self._queue.put(None)
            self._queue = None

    def _started(self) -> "SimpleQueue[Callable[[], None] | None]":
        if self._queue is None:
            self._queue = SimpleQueue()
            threading.Thread(
                target=_serve, args=(self._queue,), name=self._name, daemon=True
            ).start()
        return self._queue


def _serve(queue: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (work := queue.get()) is not None:
        work()


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object) -> None:
    # The loop is closed when the program ends; then nobody waits for the answer either.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def _resolve(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[T]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


class Admin:
    """Questions about the cluster, asked one after the other on a thread of their own."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._thread = CallThread("kafka-admin")
        self._client: Any = None
        self._timeout_s = (2 * options.connect_timeout_ms + options.request_timeout_ms) / 1000

    async def topic(self) -> Topic | None:
        """The topic as it is now; None when it does not exist. Raises LogUnavailable."""
        return await self._call(self._topic)

    async def create_topic(self, partitions: int, replication: int) -> bool:
        """Create the topic unless it exists; whether it was created. Raises LogUnavailable."""
        return await self._call(lambda admin: self._create_topic(admin, partitions, replication))

    async def end_offsets(self, partitions: frozenset[int]) -> dict[int, int]:
        """The offset that the next record of each partition will get. Raises LogUnavailable."""

        def ask(admin: Any) -> dict[int, int]:
            name = self._options.topic
            specs = {TopicPartition(name, partition): OffsetSpec.LATEST for partition in partitions}
            found = admin.list_partition_offsets(specs)
            return {where.partition: result.offset for where, result in found.items()}

        return await self._call(ask)

    async def group(self, group: str) -> Group:
        """The consumer group `group`; one that does not exist has no members.

        Raises LogUnavailable, also when Kafka does not tell about groups.
        """

        def ask(admin: Any) -> Group:
            described = admin.describe_groups([group])[group]
            error = described["error"]
            if error and GroupIdNotFoundError.__name__ not in error:
                raise LogUnavailable(f"Kafka tells nothing about the group {group}: {error}")
            return Group(
                settled=described["group_state"] in ("Stable", "Empty", "Dead"),
                members={
                    member["client_id"]: _assigned(member, self._options.topic)
                    for member in described["members"]
                },
            )

        return await self._call(ask)

    async def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(LogUnavailable):
            await self._thread.call(lambda: self._drop(self._client), 5)
        self._thread.close()

    async def _call(self, ask: Callable[[Any], T]) -> T:
        def work() -> T:
            client = self._client
            if client is None:
                client = self._client = connect(self._options, self._connect)
            try:
                with people_errors(self._options):
                    return ask(client)
            except BaseException:
                self._drop(client)
                raise

        try:
            return await self._thread.call(work, self._timeout_s)
        except LogUnavailable:
            # A thread that was given up keeps the client that it hangs in.
            # The next call makes a new one.
            self._client = None
            raise

    def _connect(self) -> Any:
        return KafkaAdminClient(**self._options.client("admin"))

    def _drop(self, client: Any) -> None:
        if self._client is client:
            self._client = None
        if client is not None:
            with contextlib.suppress(KafkaError, RuntimeError, OSError):
                client.close()

    def _topic(self, admin: Any) -> Topic | None:
        described = admin.describe_topics([self._options.topic])[0]
        if described["error_code"] == UnknownTopicOrPartitionError.errno:
            return None
        if described["error_code"]:
            raise LogUnavailable(f"Kafka knows no details of the topic {self._options.topic} now")
        # Also when somebody has deleted the topic and made a new one of the same name, or the
        # same name is looked up in another cluster, the identity is another.
        cluster_id = admin.describe_cluster()["cluster_id"]
        identity = f"diceledger.log-id.v1/{cluster_id}/{described['topic_id']}"
        log_id = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return Topic(len(described["partitions"]), log_id)

    def _create_topic(self, admin: Any, partitions: int, replication: int) -> bool:
        settings = {
            # The log is the truth: nothing leaves it by itself.
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "min.insync.replicas": "2" if replication >= 3 else "1",
            "unclean.leader.election.enable": "false",
            # A record and what surrounds it in its batch.
            "max.message.bytes": str(self._options.record_bytes_max + (64 << 10)),
        }
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replication,
            "configs": settings,
        }
        try:
            admin.create_topics({self._options.topic: wanted})
        except TopicAlreadyExistsError:
            return False
        admin.wait_for_topics([self._options.topic])
        return True


async def create_topic(options: KafkaOptions, *, partitions: int, replication: int = 1) -> bool:
    """Make the log's topic with everything it needs; False when it existed already.

    Raises LogUnavailable, and LogUnusable when it exists with another number of partitions.
    """
    admin = Admin(options)
    try:
        created = await admin.create_topic(partitions, replication)
        check_topic(options, await admin.topic(), partitions)
        return created
    finally:
        await admin.close()


def check_topic(options: KafkaOptions, topic: Topic | None, partitions: int | None) -> Topic:
    """The topic, if it is there and has `partitions` partitions (None: any); else LogUnusable."""
    where = f"the topic {options.topic} on Kafka at {options.shown_servers}"
    if topic is None:
        raise LogUnusable(f"{where} does not exist; make it with: diceledger topics create")
    if partitions not in (None, topic.partitions):
        raise LogUnusable(
            f"{where} has {topic.partitions} partitions, not {partitions}; "
            "the number is fixed for its life"
        )
    return topic


def _assigned(member: Mapping[str, Any], topic: str) -> frozenset[int]:
    assignment = member["member_assignment"]
    if not isinstance(assignment, dict):  # empty bytes while the group is being rearranged
        return frozenset()
    return frozenset(
        partition
        for entry in assignment["assigned_partitions"]
        if entry["topic"] == topic
        for partition in entry["partitions"]
    )


class _Quiet(logging.Handler):
    """Lets a few of kafka-python's complaints a minute through, one line each, as warnings."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._minute = 0
        self._passed = 0

    def emit(self, record: logging.LogRecord) -> None:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._passed = minute, 0
        self._passed += 1
        if self._passed <= _NOISE_PER_MINUTE:
            _logger.warning("kafka-python: %s", record.getMessage())


def quiet_kafka_python() -> None:
    """Keep kafka-python from filling the logs while a broker is away; idempotent."""
    logger = logging.getLogger("kafka")
    if not any(isinstance(handler, _Quiet) for handler in logger.handlers):
        logger.addHandler(_Quiet())
        logger.propagate = False
