"""`diceledger up`, `serve`, `token`, `topics` as a person meets them."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import jwt
import pytest

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.common.keys import create_key
from services.common.redis_server import RedisServer
from tests.services.edge.commands import Ended, clean_environ, run, up
from tests.services.edge.serving import secret_file

CREATE = match_pb2.CreateMatchRequest(request_id="r1", game="king_of_tokyo", seats=2)
SECRET = "a secret of more than thirty-two characters"


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A directory in which nothing can be made, not even by root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "data"


async def create(ready: dict[str, Any], token: str) -> match_pb2.CreateMatchResponse:
    async with grpc.aio.insecure_channel(ready["address"]) as channel:
        stub = match_pb2_grpc.MatchServiceStub(channel)
        metadata = (("authorization", f"Bearer {token}"),)
        return await stub.CreateMatch(CREATE, metadata=metadata, timeout=20, wait_for_ready=True)


async def token_for(data: Path) -> str:
    made = await run("token", "--subject", "ann", "--data", str(data))
    assert made.code == 0, made.err
    return made.out.strip()


def match_environ(tmp_path: Path, **settings: str) -> dict[str, str]:
    """All that a match process needs, with nothing behind it."""
    create_key(tmp_path)
    return clean_environ(
        KAFKA="127.0.0.1:1",
        REDIS_URL="redis://127.0.0.1:1/0",
        TOKEN_SECRET=SECRET,
        MASTER_KEYS=str(tmp_path),
        LISTEN="127.0.0.1:0",
        METRICS_LISTEN="127.0.0.1:0",
        **settings,
    )


def assert_failed(ended: Ended, *parts: str) -> None:
    """Exit code 1, one sentence with these parts, nothing on standard output."""
    assert ended.code == 1
    for part in parts:
        assert part in ended.sentence
    assert ended.out == ""
    assert len(ended.err.strip().splitlines()) <= 4, ended.err


async def test_it_goes_on_after_kill_9_and_after_a_stop(tmp_path: Path) -> None:
    replies = []
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        async with up("--data", str(tmp_path / "d")) as running:
            token = await token_for(tmp_path / "d")
            replies.append(await create(running.ready, token))
            code = await running.end(number)
            assert code == (-9 if number == signal.SIGKILL else 0)
    assert replies[0] == replies[1] == replies[2]


async def test_a_second_one_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with up("--data", str(tmp_path)) as running:
        second = await run("up", "--data", str(tmp_path), "--port", "0")
        pid = running.process.pid
        assert_failed(second, f"Another diceledger (process {pid}) is running on {tmp_path}")


async def test_ctrl_c_pressed_in_a_hurry_ends_without_a_word(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"))
    for _ in range(2):
        said = tmp_path / "said"
        async with up(*data, said=said) as running:
            for _ in range(3):
                with contextlib.suppress(ProcessLookupError):
                    running.process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.02)
            await asyncio.wait_for(running.process.wait(), 20)
        assert running.process.returncode in (0, -signal.SIGINT)
        assert said.read_text() == ""
    # Nothing holds the directory any more.
    async with up(*data) as running:
        assert await running.end() == 0


async def test_a_taken_port_is_one_sentence(tmp_path: Path, taken_port: int) -> None:
    ended = await run("up", "--data", str(tmp_path), "--port", str(taken_port))
    assert_failed(ended, f"The port 127.0.0.1:{taken_port} cannot be opened: another program")
    ended = await run(
        "up", "--data", str(tmp_path), "--port", "0", "--metrics-port", str(taken_port)
    )
    assert_failed(ended, f"The metrics port 127.0.0.1:{taken_port} cannot be opened: Address")


@pytest.mark.parametrize("mode", [(), ("--distributed",)])
async def test_a_directory_without_write_permission_is_one_sentence(
    unwritable: Path, mode: tuple[str, ...]
) -> None:
    ended = await run("up", "--data", str(unwritable), *mode)
    assert_failed(ended, f"The data directory {unwritable} cannot be used: Not a directory")


async def test_a_damaged_log_is_one_sentence(tmp_path: Path) -> None:
    create_key(tmp_path / "keys")
    (tmp_path / "log.sqlite").write_bytes(b"this is no database" * 100)
    assert_failed(await run("up", "--data", str(tmp_path), "--port", "0"), "log.sqlite")


async def test_a_damaged_key_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    secret_file(tmp_path / "keys" / "k1.key", "rubbish")
    assert_failed(await run("up", "--data", str(tmp_path), "--port", "0"), "k1.key is damaged")


async def test_wrong_usage_ends_with_2() -> None:
    for arguments in (
        ("up", "--port", "70000"),
        ("up", "--nonsense"),
        ("serve", "nonsense"),
        ("serve",),
        ("token",),
    ):
        ended = await run(*arguments)
        assert ended.code == 2, arguments
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("service", ["match", "projector", "replay"])
async def test_serve_without_settings_says_what_is_missing(service: str) -> None:
    ended = await run("serve", service, environ=clean_environ(PARTITIONS="many"))
    assert ended.code == 1
    assert "DICELEDGER_KAFKA is not set." in ended.sentence
    assert "DICELEDGER_REDIS_URL is not set." in ended.sentence
    assert "DICELEDGER_PARTITIONS: 'many' is not a whole number" in ended.sentence


async def test_an_unreachable_redis_is_one_sentence(tmp_path: Path) -> None:
    ended = await run("serve", "match", environ=match_environ(tmp_path))
    assert_failed(ended, "Redis at redis://127.0.0.1:1/0 cannot be reached: Connection refused.")


async def test_an_unreachable_kafka_is_one_sentence(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "redis")
    await redis.start()
    try:
        environ = match_environ(tmp_path) | {"DICELEDGER_REDIS_URL": redis.url}
        ended = await run("serve", "match", environ=environ)
        assert_failed(ended, "annot reach Kafka at 127.0.0.1:1: Connection refused.")
    finally:
        await redis.stop()
    for command in ("create", "check"):
        ended = await run("topics", command, environ=clean_environ(KAFKA="127.0.0.1:1"))
        assert_failed(ended, "annot reach Kafka at 127.0.0.1:1: Connection refused.")


async def test_missing_keys_are_one_sentence(tmp_path: Path) -> None:
    environ = match_environ(tmp_path) | {"DICELEDGER_MASTER_KEYS": str(tmp_path / "none")}
    ended = await run("serve", "match", environ=environ)
    assert_failed(ended, "DICELEDGER_MASTER_KEYS: ", "is not the path of a directory that exists.")


async def test_help_lists_every_setting() -> None:
    ended = await run("serve", "--help")
    assert ended.code == 0
    for name in ("DICELEDGER_KAFKA", "DICELEDGER_TOKEN_PUBLIC_KEYS", "DICELEDGER_DRAIN_S"):
        assert name in ended.out


async def test_a_token_is_made_from_a_secret_file(tmp_path: Path) -> None:
    path = secret_file(tmp_path / "secret", SECRET)
    ended = await run(
        *("token", "--subject", "judge", "--role", "arbiter", "--role", "player"),
        *("--name", "The Judge", "--hours", "1", "--secret-file", str(path), "--json"),
    )
    made = json.loads(ended.out)
    claims = jwt.decode(made["token"], SECRET, algorithms=["HS256"])
    assert (claims["sub"], claims["name"]) == ("judge", "The Judge")
    assert claims["roles"] == ["arbiter", "player"] == made["roles"]
    assert 3590 < claims["exp"] - claims["iat"] <= 3601


async def test_a_token_needs_a_server_s_directory_or_a_secret(tmp_path: Path) -> None:
    ended = await run("token", "--subject", "ann", "--data", str(tmp_path / "nothing"))
    assert_failed(ended, "There is no server data in", "start `diceledger up` first")
    assert not (tmp_path / "nothing").exists()
    public = secret_file(tmp_path / "s", SECRET)
    public.chmod(0o644)
    ended = await run("token", "--subject", "ann", "--secret-file", str(public))
    assert_failed(ended, "make it private")


@pytest.mark.parametrize("bad", [("--subject", "a b"), ("--subject", "a", "--role", "king")])
async def test_a_token_for_nobody_is_wrong_usage(tmp_path: Path, bad: tuple[str, ...]) -> None:
    path = secret_file(tmp_path / "secret", SECRET)
    ended = await run("token", *bad, "--secret-file", str(path))
    assert ended.code == 2
    assert "Traceback" not in ended.err


async def test_a_new_directory_is_private(tmp_path: Path) -> None:
    async with up("--data", str(tmp_path / "d")) as running:
        mode = os.stat(running.ready["data"]).st_mode  # noqa: PTH116 - a string from JSON
        assert stat.S_IMODE(mode) == 0o700
