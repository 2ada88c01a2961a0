"""Two scripted servers over one match, and a client that knows both addresses."""

from collections.abc import AsyncIterator

import pytest

from services.client import Client, RetryPolicy, connect
from tests.services.client.fake_server import FakeMatch, FakeServer, fake_server

PATIENT = RetryPolicy(total_s=10.0, attempt_s=1.0, first_wait_s=0.01, longest_wait_s=0.05)


@pytest.fixture
async def match() -> FakeMatch:
    fake = FakeMatch()
    fake.open()
    return fake


@pytest.fixture
async def servers(match: FakeMatch) -> AsyncIterator[tuple[FakeServer, FakeServer]]:
    pair = (fake_server(match), fake_server(match))
    for server in pair:
        await server.start()
    yield pair
    for server in pair:
        await server.stop()


@pytest.fixture
async def client(servers: tuple[FakeServer, FakeServer]) -> AsyncIterator[Client]:
    async with connect([server.address for server in servers], policy=PATIENT) as connected:
        yield connected
