"""The replay process: an index of every partition, and the service on top of it."""

import asyncio
import logging
from typing import Any

from redis.asyncio import Redis

from diceledger.replay.v1 import replay_pb2_grpc
from services.common.log.port import Log
from services.common.metrics import Metrics
from services.common.views import Views
from services.replay.handlers import ReplayHandlers
from services.replay.index import PartitionIndex
from services.replay.recorded import CACHE_BYTES, Library

_logger = logging.getLogger(__name__)


class ReplayNode:
    """Serves ReplayService from the log alone. All methods belong to one event loop."""

    def __init__(
        self,
        *,
        log: Log,
        redis: Redis,
        metrics: Metrics,
        settings: Any = None,
        keys: Any = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """`log` is started before `start`. `redis` is only what VerifyMatch compares with.

        `settings` and `keys` are taken so that every node is made alike; nothing here needs them.
        """
        del settings, keys
        self._log = log
        self._redis = redis
        self._cache_bytes = cache_bytes
        self._handlers = ReplayHandlers(metrics)
        self._indexes: list[PartitionIndex] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def healthy(self) -> bool:
        """Every partition is being read."""
        return not any(index.stopped for index in self._indexes)

    async def start(self) -> None:
        """Begin to read the log; calls wait until it was read as far as they need."""
        log = self._log
        self._indexes = [PartitionIndex(log, partition) for partition in range(log.partitions)]
        library = Library(log, self._indexes, cache_bytes=self._cache_bytes)
        self._handlers.open(library, Views(self._redis, log.log_id, log.partitions))
        self._tasks = [
            asyncio.create_task(index.run(), name=f"replay-{index.partition}")
            for index in self._indexes
        ]

    async def close(self) -> None:
        """Stop reading."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                _logger.error("an index of the replay service failed", exc_info=outcome)
        self._tasks = []

    def register(self, server: Any) -> None:
        """Add ReplayService to a grpc.aio.Server."""
        replay_pb2_grpc.add_ReplayServiceServicer_to_server(self._handlers, server)
