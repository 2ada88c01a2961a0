"""One distributed set-up for all fault tests; each leaves it whole again."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from services.cli.supervisor import Distributed
from services.common.broker import KafkaBroker
from tests.support.arena import Arena
from tests.support.cluster import arena_on, cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running(
    kafka_broker: KafkaBroker,
    tmp_path_factory: pytest.TempPathFactory,
    fresh_name: Callable[[str], str],
) -> AsyncIterator[Distributed]:
    data = tmp_path_factory.mktemp("faults") / "data"
    async with cluster(data, kafka_broker.bootstrap, fresh_name("faults")) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def arena(running: Distributed) -> AsyncIterator[Arena]:
    async with arena_on(running) as bots:
        yield bots
