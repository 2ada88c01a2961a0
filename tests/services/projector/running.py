"""A projector in the test's own loop, and looks at what it wrote."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.views import (
    MatchRow,
    Views,
)
from services.projector import Projector


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of one metric; 0 when it has none."""
    return metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def projecting(
    log: SqliteLog, redis: Redis, look_s: float = 0.1
) -> AsyncIterator[tuple[Projector, Metrics]]:
    metrics = Metrics("projector")
    projector = Projector(log=log, redis=redis, metrics=metrics, look_s=look_s)
    await projector.start()
    try:
        yield projector, metrics
    finally:
        await projector.close()


async def stopped(projector: Projector) -> bool:
    """Whether a partition stands still."""
    return not projector.healthy


async def row_of(views: Views, match_id: str) -> MatchRow:
    row = await views.read_match(match_id)
    assert row is not None
    return row
