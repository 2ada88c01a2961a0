"""A real log for each test, and the kernel's test game, which has secrets."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engine.core.game import AnyGame
from services.common.log.sqlite import SqliteLog
from tests.services.match.serving import Process, process
from tests.services.projector.high_roll_wire import high_roll_installed

PARTITIONS = 2


@pytest.fixture(scope="session", autouse=True)
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnyGame]:
    """Simultaneous secret prompts: what a match service finds hardest."""
    with high_roll_installed(tmp_path_factory.mktemp("protos")) as installed:
        yield installed


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """An empty log."""
    opened = SqliteLog(tmp_path / "log.db", partitions=PARTITIONS)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def here(log: SqliteLog) -> AsyncIterator[Process]:
    """A process that owns the whole log."""
    async with process(log) as running:
        yield running
