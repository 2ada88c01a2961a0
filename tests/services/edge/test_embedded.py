"""The embedded mode: everything in one process, on one directory."""

import asyncio
import urllib.request
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from diceledger.replay.v1 import replay_pb2, replay_pb2_grpc
from services.cli import runtime
from services.cli.datadir import DataDir
from services.cli.embedded import Embedded, embedded
from services.cli.runtime import MATCH_SERVICE, REPLAY_SERVICE
from services.cli.serve_process import Role, service_process
from services.common.errors import StartupError, parse_error
from services.common.settings import Settings

CREATE = match_pb2.CreateMatchRequest(request_id="r1", game="king_of_tokyo", seats=2)


def metadata(running: Embedded, subject: str = "ann") -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {running.token(subject)}"),)


async def create(running: Embedded) -> match_pb2.CreateMatchResponse:
    async with grpc.aio.insecure_channel(running.address) as channel:
        stub = match_pb2_grpc.MatchServiceStub(channel)
        return await stub.CreateMatch(CREATE, metadata=metadata(running), timeout=20)


async def seen(running: Embedded, receipt: match_pb2.Receipt) -> match_pb2.GetMatchResponse:
    request = match_pb2.GetMatchRequest(match_id=receipt.match_id, position=receipt.position)
    async with grpc.aio.insecure_channel(running.address) as channel:
        stub = match_pb2_grpc.MatchServiceStub(channel)
        return await stub.GetMatch(request, metadata=metadata(running), timeout=20)


async def test_one_address_serves_matches_and_replays(tmp_path: Path) -> None:
    async with embedded(tmp_path) as running:
        created = await create(running)
        row = await seen(running, created.receipt)
        assert row.summary.host == "ann"
        async with grpc.aio.insecure_channel(running.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for service in ("", MATCH_SERVICE, REPLAY_SERVICE):
                reply = await health.Check(health_pb2.HealthCheckRequest(service=service))
                assert reply.status == health_pb2.HealthCheckResponse.SERVING
            replay = replay_pb2_grpc.ReplayServiceStub(channel)
            request = replay_pb2.GetStateRequest(
                match_id=created.match_id, viewer=replay_pb2.Viewer(spectator=True)
            )
            state = await replay.GetState(request, metadata=metadata(running), timeout=20)
            assert state.sequence == 1


async def test_the_next_start_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    replies = []
    for _ in range(2):
        async with embedded(tmp_path) as running:
            replies.append(await create(running))
            assert (await seen(running, replies[-1].receipt)).summary.sequence == 1
    assert replies[0] == replies[1]


async def test_a_token_of_another_directory_opens_nothing(tmp_path: Path) -> None:
    async with embedded(tmp_path / "a") as one, embedded(tmp_path / "b") as two:
        async with grpc.aio.insecure_channel(one.address) as channel:
            stub = match_pb2_grpc.MatchServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.ListGames(match_pb2.ListGamesRequest(), metadata=metadata(two))
        assert parse_error(caught.value).reason == "TOKEN_INVALID"


async def test_nothing_in_the_directory_is_open_to_others(tmp_path: Path) -> None:
    async with embedded(tmp_path / "data") as running:
        await create(running)
        assert running.data_dir.stat().st_mode & 0o077 == 0


async def test_metrics_tell_of_partitions_and_commands(tmp_path: Path) -> None:
    def scrape(address: str) -> str:
        with urllib.request.urlopen(f"http://{address}/metrics") as reply:
            return str(reply.read().decode())

    async with embedded(tmp_path, partitions=3) as running:
        await create(running)
        text = await asyncio.to_thread(scrape, running.metrics_address)
    assert text.count("} 1.0\n", text.index("# TYPE diceledger_partition_owned gauge")) >= 3
    assert 'diceledger_commands_total{command="create",result="ok"} 1.0' in text


async def test_a_second_one_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with embedded(tmp_path) as running:
        with pytest.raises(StartupError, match=r"Another diceledger \(process \d+\) is running on"):
            async with embedded(tmp_path):
                pass
        await create(running)


async def test_the_end_of_redis_is_noticed(tmp_path: Path) -> None:
    async with embedded(tmp_path) as running:
        failed = asyncio.create_task(running.failed())
        await asyncio.sleep(0)
        await running.redis_server.kill()
        async with asyncio.timeout(5):
            assert "Redis ended unexpectedly" in await failed


async def test_a_failure_inside_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with embedded(tmp_path) as running:
            raise ZeroDivisionError
    assert not running.redis_server.is_running
    async with embedded(tmp_path) as again:
        await create(again)


async def test_an_existing_log_keeps_its_partitions(tmp_path: Path) -> None:
    async with embedded(tmp_path, partitions=3):
        pass
    async with embedded(tmp_path):
        pass
    with pytest.raises(StartupError, match=r"has 3 partitions, not 4"):
        async with embedded(tmp_path, partitions=4):
            pass


async def test_a_log_without_its_keys_is_not_gone_on_with(tmp_path: Path) -> None:
    """A new key would freeze every match of the log; a new token secret harms nobody."""
    async with embedded(tmp_path) as running:
        created = await create(running)
    keys = tmp_path / "keys"
    keys.rename(tmp_path / "elsewhere")
    with pytest.raises(StartupError) as refused:
        async with embedded(tmp_path):
            raise AssertionError("started")
    assert str(refused.value) == (
        f"The data directory {tmp_path} has a log, but the master keys of its matches are gone: "
        f"put the files *.key back into {keys}, or choose another directory with --data."
    )
    assert not keys.exists()
    (tmp_path / "elsewhere").rename(keys)
    (tmp_path / "token.secret").unlink()
    async with embedded(tmp_path) as running:
        assert (await seen(running, created.receipt)).summary.sequence == 1


def test_a_kafka_directory_without_keys_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "kafka" / "data").mkdir(parents=True)
    with DataDir(tmp_path) as data, pytest.raises(StartupError, match="master keys"):
        data.key_ring()


async def test_games_that_cannot_be_loaded_keep_a_process_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ImportError("no module named 'dice'")

    monkeypatch.setattr(runtime, "catalogue", broken)
    expected = "The games cannot be loaded: ImportError: no module named 'dice'."
    with pytest.raises(StartupError) as refused:
        async with embedded(tmp_path):
            raise AssertionError("started")
    assert str(refused.value) == expected
    roles: tuple[Role, ...] = ("match", "projector", "replay")
    for role in roles:
        with pytest.raises(StartupError) as refused:
            async with service_process(role, Settings(node=role)):
                raise AssertionError("started")
        assert str(refused.value) == expected
