"""A real log, a real Redis, and a projector between them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from engine.core.game import AnyGame
from services.common.log.sqlite import SqliteLog
from services.common.redis_server import RedisServer
from services.common.redis_store import connect_redis
from tests.services.projector.high_roll_wire import high_roll_installed
from tests.services.projector.recording import Recorder

PARTITIONS = 3


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnyGame]:
    """The kernel's test game, which has secrets."""
    with high_roll_installed(tmp_path_factory.mktemp("protos")) as installed:
        yield installed


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """An empty log of a few partitions."""
    opened = SqliteLog(tmp_path / "log.db", partitions=PARTITIONS)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A Redis server of this test alone."""
    running = RedisServer(tmp_path / "redis")
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def redis(server: RedisServer) -> AsyncIterator[Redis]:
    """A connection to it that gives up soon."""
    client = connect_redis(server.url, connect_timeout_s=0.5, command_timeout_s=2)
    yield client
    await client.aclose()


@pytest.fixture
async def recorder(log: SqliteLog) -> Recorder:
    """Writes matches into the log."""
    return Recorder(log)
