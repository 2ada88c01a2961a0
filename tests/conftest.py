"""Fixtures for every test that needs the real thing: a Kafka broker, started once per run."""

from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from services.common.broker import KafkaBroker
from services.common.errors import StartupError
from services.common.log.kafka_client import KafkaOptions


async def started(broker: KafkaBroker) -> KafkaBroker:
    """Start `broker`; a broker that cannot be had fails the test, it never skips it."""
    try:
        await broker.start()
    except StartupError as error:
        pytest.fail(f"These tests need a real Kafka broker. {error}", pytrace=False)
    return broker


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KafkaBroker]:
    """The broker that all tests share. Whoever kills brokers takes `own_kafka_broker`."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), quick=True)
    yield await started(broker)
    await broker.stop()


@pytest_asyncio.fixture
async def own_kafka_broker(tmp_path: Path) -> AsyncIterator[KafkaBroker]:
    """A broker for this test alone, to be killed, frozen and damaged."""
    broker = KafkaBroker(tmp_path / "own-kafka", quick=True)
    yield await started(broker)
    await broker.kill()


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[str], str]:
    """Names that no other test of this run uses, for topics and groups on the shared broker."""
    numbers = count(1)
    return lambda stem: f"{stem}-{next(numbers)}"


@pytest.fixture
def kafka_options(kafka_broker: KafkaBroker, fresh_name: Callable[[str], str]) -> KafkaOptions:
    """Options for a topic of this test's own on the shared broker; it is not created yet."""
    return KafkaOptions(
        servers=(kafka_broker.bootstrap,),
        topic=fresh_name("events"),
        request_timeout_ms=2_000,
        delivery_timeout_ms=5_000,
    )
