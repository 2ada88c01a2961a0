"""The distributed mode on one machine: Kafka, Redis, and each service as a process of its own.

The processes are what `diceledger serve` runs anywhere, told by environment variables only. No
process is restarted: a died one is reported, and the caller stops the rest.
"""

import asyncio
import contextlib
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.cli.datadir import DataDir, TokenMaker
from services.cli.runtime import first_of
from services.cli.topics_kafka import ensure_topic, existing_partitions
from services.common.broker import KafkaBroker
from services.common.child import Program, start_child
from services.common.errors import StartupError
from services.common.redis_server import RedisServer
from services.common.settings import PREFIX, Address, Settings, parse_address

HEALTHY_S: Final = 60.0
# Longer than a process takes to drain (its own setting), so that it ends by itself.
_DRAIN_S: Final = 5
_STOP_S: Final = 15.0
_LOOPBACK: Final = "127.0.0.1"

MemberRole = Literal["match", "projector", "replay"]


class Member(Program):
    """One service process of the set-up: started, watched, and harmed by tests."""

    def __init__(
        self, name: str, role: MemberRole, listen: Address, metrics: Address, logs: Path
    ) -> None:
        """Nothing runs yet."""
        self.name = name
        self.role = role
        self.address = str(listen)
        self.metrics_address = str(metrics)
        self.log_file = logs / f"{name}.log"

    async def start(self, environ: Mapping[str, str]) -> None:
        """Start it; `healthy` waits until it serves. StartupError when it cannot be started."""
        assert not self.is_running, f"{self.name} is running"
        # -P: a directory `services` where the person stands is not ours.
        command = [sys.executable, "-P", "-m", "services.cli.main", "serve", self.role]
        own = {
            f"{PREFIX}NODE": self.name,
            f"{PREFIX}LISTEN": self.address,
            f"{PREFIX}METRICS_LISTEN": self.metrics_address,
        }
        try:
            with self.log_file.open("ab") as output:
                self._child = await start_child(
                    self.name, command, environ={**environ, **own}, output=output
                )
        except OSError as error:
            raise StartupError(f"{self.name} cannot be started: {error.strerror}.") from None

    async def healthy(self, patience_s: float = HEALTHY_S) -> None:
        """Wait until its health check says SERVING; StartupError when it ends or takes too long."""
        give_up = time.monotonic() + patience_s
        async with grpc.aio.insecure_channel(self.address, options=_IMPATIENT) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            while not await _serves(stub):
                if not self.is_running:
                    raise StartupError(self.obituary())
                if time.monotonic() > give_up:
                    raise StartupError(
                        f"{self.name} did not serve within {patience_s:.0f} s; see {self.log_file}."
                    )
                await asyncio.sleep(0.1)

    async def partitions(self) -> frozenset[int]:
        """Return the partitions that it says it serves; none when it does not answer."""
        text = await asyncio.to_thread(_fetch, f"http://{self.metrics_address}/metrics")
        return frozenset(int(number) for number in _OWNED.findall(text))

    async def stop(self) -> int:
        """End it in order (SIGTERM); return the exit code."""
        return await self._started.stop(_STOP_S)

    async def ended(self) -> str:
        """Wait until it ends; return a sentence that says how."""
        await self.wait()
        return self.obituary()

    def obituary(self) -> str:
        """Say how it ended and what it said last."""
        code = self._child.returncode if self._child else None
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended ({code})"
        last = _last_line(self.log_file)
        return f"{self.name} {how}{': ' + last if last else ''} (see {self.log_file})."


class Distributed:
    """The whole set-up. Use `distributed`; tests reach into `members`, `redis_server`, `broker`."""

    def __init__(self, data: DataDir, environ: Mapping[str, str], redis: RedisServer) -> None:
        """`environ` is what all processes are started with."""
        self.data_dir = data.path
        self.environ = dict(environ)
        self.redis_server = redis
        self.broker: KafkaBroker | None = None
        self.members: dict[str, Member] = {}
        self.token = TokenMaker(data.token_secret())

    @property
    def kafka(self) -> str:
        """Where Kafka listens."""
        return self.environ[f"{PREFIX}KAFKA"]

    @property
    def topic(self) -> str:
        """The log's topic."""
        return self.environ[f"{PREFIX}TOPIC"]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the match processes serve gRPC."""
        return tuple(each.address for each in self.members.values() if each.role == "match")

    @property
    def replay_address(self) -> str:
        """Where the replay process serves gRPC."""
        return self.members["replay"].address

    async def start(self, *names: str) -> None:
        """Start these processes (default: all) and wait until they serve. For restarts, too."""
        members = [self.members[name] for name in names or self.members]
        for member in members:
            await member.start(self.environ)
        await asyncio.gather(*(member.healthy() for member in members))

    async def all_served(self, partitions: int, patience_s: float = HEALTHY_S) -> None:
        """Wait until the match processes serve all partitions between them; else StartupError."""
        give_up = time.monotonic() + patience_s
        while True:
            running = [m for m in self.members.values() if m.role == "match" and m.is_running]
            owned = await asyncio.gather(*(member.partitions() for member in running))
            served = frozenset().union(*owned)
            if len(served) >= partitions:
                return
            if time.monotonic() > give_up:
                raise StartupError(
                    f"After {patience_s:.0f} s only {len(served)} of {partitions} partitions "
                    f"are served; see {self.data_dir / 'logs'}."
                )
            await asyncio.sleep(0.2)

    async def failed(self) -> str:
        """Wait until any process ends; return a sentence that says which, and how."""
        ends = [member.ended for member in self.members.values()]
        broker = [self._kafka_ended] if self.broker else []
        return await first_of(self._redis_ended, *broker, *ends)

    async def close(self) -> None:
        """Stop the services: first those that write, then those that read."""
        for role in ("match", "replay", "projector"):
            running = [m for m in self.members.values() if m.role == role and m.is_running]
            await asyncio.gather(*(member.stop() for member in running))

    async def _redis_ended(self) -> str:
        code = await self.redis_server.wait()
        return f"Redis ended ({code}); see {self.data_dir / 'redis' / 'redis.log'}."

    async def _kafka_ended(self) -> str:
        assert self.broker is not None
        code = await self.broker.wait()
        return f"Kafka ended ({code}); see {self.broker.log_file}."


@contextlib.asynccontextmanager
async def distributed(
    data_dir: Path,
    *,
    match_processes: int = 2,
    port: int = 0,
    metrics_port: int = 0,
    partitions: int | None = None,
    kafka: str = "",
    topic: str = "match-events",
    log_level: str = "info",
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Distributed]:
    """Run everything on `data_dir` for the length of the block; all of it serves on entry.

    `kafka` names a broker (host:port) that runs already; without it one is started and stopped
    here. `partitions` counts for a new topic only (default 8). Ports count up from `port` and
    `metrics_port`; 0: free ones. `settings` are further environment variables of the processes.
    `say` is told, in a sentence, what takes time. Raises StartupError with one sentence. Call it
    from the main thread: the children live as long.
    """
    async with contextlib.AsyncExitStack() as stack:
        data = stack.enter_context(DataDir(data_dir))
        data.key_ring()
        _prepare_logs(data)
        broker = None
        if not kafka:
            say("Starting Kafka …")
            broker = KafkaBroker(data.kafka, say=say)
            stack.push_async_callback(broker.stop)
            await broker.start()
            kafka = broker.bootstrap
        redis = RedisServer(data.redis)
        stack.push_async_callback(redis.stop)
        await redis.start()
        log = Settings(kafka=(parse_address(kafka),), topic=topic)
        partitions = partitions or await existing_partitions(log) or log.partitions
        await ensure_topic(replace(log, partitions=partitions))
        environ = _environ(data, kafka, topic, partitions, redis.url, log_level)
        running = Distributed(data, environ | dict(settings or {}), redis)
        running.broker = broker
        running.members = _members(data, match_processes, port, metrics_port)
        stack.push_async_callback(running.close)
        say("Starting the services …")
        await running.start()
        await running.all_served(partitions)
        yield running


_IMPATIENT: Final = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
]


_OWNED: Final = re.compile(r'^diceledger_partition_owned\{partition="(\d+)"\} 1\.0$', re.MULTILINE)


def _fetch(url: str) -> str:
    try:
        # Straight to the loopback interface, whatever proxy the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=2) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


async def _serves(stub: health_pb2_grpc.HealthStub) -> bool:
    try:
        reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=2)
    except grpc.aio.AioRpcError:
        return False
    return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


def _environ(
    data: DataDir, kafka: str, topic: str, partitions: int, redis_url: str, log_level: str
) -> dict[str, str]:
    """Return the environment of all processes: ours, without settings meant for another set-up."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    ours = {
        "KAFKA": kafka,
        "TOPIC": topic,
        "PARTITIONS": str(partitions),
        "REDIS_URL": redis_url,
        "TOKEN_SECRET_FILE": str(data.token_secret_file),
        "MASTER_KEYS": str(data.keys),
        "LOG_LEVEL": log_level,
        "LOG_FORMAT": "json",
        "DRAIN_S": str(_DRAIN_S),
    }
    return inherited | {PREFIX + name: value for name, value in ours.items()}


def _members(
    data: DataDir, match_processes: int, port: int, metrics_port: int
) -> dict[str, Member]:
    roles: list[tuple[str, MemberRole]] = [
        (f"match-{number}", "match") for number in range(1, match_processes + 1)
    ]
    roles += [("replay", "replay"), ("projector", "projector")]
    ports = _ports(port, len(roles))
    metrics_ports = _ports(metrics_port, len(roles), avoid=ports)
    return {
        name: Member(name, role, Address(_LOOPBACK, own), Address(_LOOPBACK, metrics), data.logs)
        for (name, role), own, metrics in zip(roles, ports, metrics_ports, strict=True)
    }


def _ports(first: int, count: int, avoid: Sequence[int] = ()) -> list[int]:
    """Return ports that count up from `first`; for 0, free ones."""
    if first:
        return list(range(first, first + count))
    with contextlib.ExitStack() as probes:
        ports: list[int] = []
        while len(ports) < count:
            probe = probes.enter_context(socket.socket())
            probe.bind((_LOOPBACK, 0))
            if probe.getsockname()[1] not in avoid:
                ports.append(probe.getsockname()[1])
    return ports


def _prepare_logs(data: DataDir) -> None:
    data.token_secret()
    try:
        data.logs.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise StartupError(f"{data.logs} cannot be made: {error.strerror}.") from None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][-300:].rstrip(".") if lines else ""
