"""The distributed mode on one machine: real Kafka, real Redis, five processes of our own."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc.aio
import pytest

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.cli.datadir import DataDir
from services.cli.supervisor import Distributed, distributed
from services.common.broker import KafkaBroker
from services.common.errors import StartupError
from tests.services.edge.commands import COMMAND, clean_environ, run, up


@pytest.fixture
async def setup(
    kafka_broker: KafkaBroker, tmp_path: Path, fresh_name: Callable[[str], str]
) -> AsyncIterator[Distributed]:
    """Two match processes, projector and replay on the tests' broker."""
    async with distributed(
        tmp_path, kafka=kafka_broker.bootstrap, topic=fresh_name("up"), partitions=4
    ) as running:
        yield running


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] != "Z"


async def until_dead(pids: list[int]) -> None:
    for _ in range(100):
        if not any(alive(pid) for pid in pids):
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"still running: {[pid for pid in pids if alive(pid)]}")


async def create(address: str, token: str, request_id: str) -> match_pb2.CreateMatchResponse:
    request = match_pb2.CreateMatchRequest(request_id=request_id, game="king_of_tokyo", seats=2)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = match_pb2_grpc.MatchServiceStub(channel)
        return await stub.CreateMatch(
            request, metadata=(("authorization", f"Bearer {token}"),), timeout=20
        )


async def test_both_match_processes_serve_every_match(setup: Distributed) -> None:
    token = setup.token("ann")
    for number in range(6):
        one, two = [await create(a, token, f"r{number}") for a in setup.addresses]
        assert one == two
    owned = [await m.partitions() for m in setup.members.values() if m.role == "match"]
    assert frozenset.union(*owned) == frozenset(range(4))
    assert not frozenset.intersection(*owned)


async def test_a_stopped_process_ends_with_0_and_its_partitions_move(setup: Distributed) -> None:
    assert await setup.members["match-1"].stop() == 0
    await setup.all_served(4)
    assert await setup.members["match-2"].partitions() == frozenset(range(4))
    await create(setup.members["match-2"].address, setup.token("ann"), "r1")
    await setup.start("match-1")
    for role in ("projector", "replay"):
        assert await setup.members[role].stop() == 0


async def test_the_end_of_a_process_is_told_with_its_name(setup: Distributed) -> None:
    failed = asyncio.create_task(setup.failed())
    await asyncio.sleep(0.1)
    await setup.members["projector"].kill()
    async with asyncio.timeout(5):
        sentence = await failed
    assert sentence.startswith("projector was ended by signal 9")
    assert str(setup.members["projector"].log_file) in sentence


async def test_a_process_that_cannot_start_says_why(
    kafka_broker: KafkaBroker, tmp_path: Path, fresh_name: Callable[[str], str]
) -> None:
    with pytest.raises(StartupError, match=r"ended \(1\): .*DICELEDGER_IN_FLIGHT_MAX"):
        async with distributed(
            tmp_path,
            match_processes=1,
            kafka=kafka_broker.bootstrap,
            topic=fresh_name("up"),
            settings={"DICELEDGER_IN_FLIGHT_MAX": "none"},
        ):
            pass


async def test_topics_are_created_and_checked_by_command(
    kafka_broker: KafkaBroker, fresh_name: Callable[[str], str]
) -> None:
    topic = fresh_name("topics")
    environ = clean_environ(KAFKA=kafka_broker.bootstrap, TOPIC=topic, PARTITIONS="3")
    missing = await run("topics", "check", environ=environ)
    assert missing.code == 1
    assert "does not exist; make it with: diceledger topics create" in missing.sentence
    for created in (True, False):
        made = await run("topics", "create", "--json", environ=environ)
        assert json.loads(made.out) == {"topic": topic, "partitions": 3, "created": created}
    checked = await run("topics", "check", environ=environ)
    assert checked.code == 0
    assert "3 partitions" in checked.out
    other = await run("topics", "check", environ=environ | {"DICELEDGER_PARTITIONS": "4"})
    assert other.code == 1
    assert "has 3 partitions, not 4" in other.sentence


async def test_up_keeps_its_data_ends_in_order_and_leaves_nothing_when_killed(
    tmp_path: Path,
) -> None:
    """One long test: a broker of its own is the dear part."""
    replies = []
    for number in (signal.SIGTERM, signal.SIGKILL):
        async with up(
            "--distributed", "--match-processes", "1", "--data", str(tmp_path)
        ) as running:
            made = await run("token", "--subject", "ann", "--data", str(tmp_path))
            address = running.ready["match"][0]
            replies.append(await create(address, made.out.strip(), "r1"))
            pids = [each["pid"] for each in running.ready["processes"].values()]
            assert len(pids) == 3
            assert all(alive(pid) for pid in pids)
            assert await running.end(number) == (0 if number == signal.SIGTERM else -9)
            await until_dead(pids)
    assert replies[0] == replies[1]


async def test_up_ends_when_a_process_dies_and_says_which(tmp_path: Path) -> None:
    async with up("--distributed", "--match-processes", "1", "--data", str(tmp_path)) as running:
        pids = {name: each["pid"] for name, each in running.ready["processes"].items()}
        os.kill(pids["replay"], signal.SIGKILL)
        async with asyncio.timeout(40):
            assert await running.process.wait() == 1
        assert not any(alive(pid) for pid in pids.values())


async def test_ctrl_c_while_it_starts_up_leaves_nothing_and_shows_no_trace(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("up", "--distributed", "--json", "--port", "0", "--metrics-port", "0"),
        *("--data", str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=clean_environ(),
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        assert b"Starting Kafka" in await process.stderr.readline()
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    with DataDir(tmp_path):
        pass


async def test_the_end_of_kafka_is_told(tmp_path: Path) -> None:
    async with distributed(tmp_path, match_processes=1) as running:
        assert running.broker is not None
        await running.broker.kill()
        async with asyncio.timeout(5):
            assert (await running.failed()).startswith("Kafka ended (-9); see ")
