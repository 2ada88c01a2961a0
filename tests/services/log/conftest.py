"""One world per adapter: a place for a log, opened as often as a test wants."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.common.log import Log
from services.common.log.kafka import KafkaLog
from services.common.log.kafka_client import Admin, KafkaOptions, create_topic
from services.common.log.sqlite import SqliteLog

PARTITIONS = 4


class World(ABC):
    """Where one log lies. Everything opened is closed at the end of the test."""

    def __init__(self) -> None:
        self._opened: list[Log] = []

    async def open(self, **options: Any) -> Log:
        """Open the log; `in_flight_max` and `record_bytes_max` may be given."""
        log = self.make(**options)
        await log.start()
        self._opened.append(log)
        return log

    async def close(self) -> None:
        """Close what is still open."""
        for log in self._opened:
            await log.close()

    @abstractmethod
    def make(self, partitions: int | None = PARTITIONS, **options: Any) -> Log:
        """A log that is not started."""

    @abstractmethod
    async def replace(self) -> None:
        """Put another, empty log in the place of this one."""


class SqliteWorld(World):
    """A file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def make(self, partitions: int | None = PARTITIONS, **options: Any) -> Log:
        return SqliteLog(self.path, partitions=partitions, **options)

    async def replace(self) -> None:
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.unlink()
        log = SqliteLog(self.path, partitions=PARTITIONS)
        await log.start()
        await log.close()


class KafkaWorld(World):
    """A topic."""

    def __init__(self, options: KafkaOptions) -> None:
        super().__init__()
        self.options = options

    def make(self, partitions: int | None = PARTITIONS, **options: Any) -> Log:
        return KafkaLog(dataclasses.replace(self.options, **options), partitions=partitions)

    async def replace(self) -> None:
        await delete_topic(self.options)
        await create_topic(self.options, partitions=PARTITIONS)


async def delete_topic(options: KafkaOptions) -> None:
    """Delete the topic, as no operator should."""
    admin = Admin(options)
    await admin._call(lambda client: client.delete_topics([options.topic]))
    await admin.close()


@pytest_asyncio.fixture
async def sqlite_world(tmp_path: Path) -> AsyncIterator[SqliteWorld]:
    """A place for a SQLite log."""
    world = SqliteWorld(tmp_path / "log.db")
    yield world
    await world.close()


@pytest_asyncio.fixture
async def kafka_world(kafka_options: KafkaOptions) -> AsyncIterator[KafkaWorld]:
    """A topic of its own on the shared broker."""
    await create_topic(kafka_options, partitions=PARTITIONS)
    world = KafkaWorld(kafka_options)
    yield world
    await world.close()


@pytest.fixture(params=["sqlite", "kafka"])
def world(request: pytest.FixtureRequest) -> World:
    """Either adapter's world: what is tested with it holds for both."""
    made = request.getfixturevalue(f"{request.param}_world")
    assert isinstance(made, World)
    return made
