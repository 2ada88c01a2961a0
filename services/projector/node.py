"""The projector process: a projection for each partition it was given, and their supervision."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from redis.asyncio import Redis

from services.common.log.port import Log, LogError, Ownership
from services.common.metrics import Metrics
from services.common.views import Views, ViewsUnavailable
from services.projector.figures import Figures
from services.projector.partition import PartitionProjector

_logger = logging.getLogger(__name__)

# How often lost or set back views are looked for where nothing is written.
_LOOK_S: Final = 1.0
# Lag asks the log for its end, partition by partition: less often.
_LAG_S: Final = 2.0
_LAG_TOGETHER: Final = 16
# After an unexpected failure a partition is tried again, not in a tight loop.
_RESTART_S: Final = 5.0


class Projector:
    """Runs the projection `views`. All methods belong to one event loop.

    With an `ownership` the partitions are those that it assigns (a group of its own, not that of
    the match processes); without, all of them. Two projectors of one partition do no harm.
    """

    def __init__(
        self,
        *,
        log: Log,
        redis: Redis,
        metrics: Metrics,
        ownership: Ownership | None = None,
        look_s: float = _LOOK_S,
    ) -> None:
        """`log` is started by the caller, `ownership` by `start`."""
        self._log = log
        self._redis = redis
        self._ownership = ownership
        self._figures = Figures(metrics)
        self._look_s = look_s
        self._projectors: dict[int, PartitionProjector] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._carers: list[asyncio.Task[None]] = []
        self._stopped: set[int] = set()

    @property
    def healthy(self) -> bool:
        """No partition stands still for good."""
        return not self._stopped

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that are projected."""
        return frozenset(self._tasks)

    async def start(self) -> None:
        """Begin to project. Redis and the log may come and go; raises what the ownership raises."""
        self._views = Views(self._redis, self._log.log_id, self._log.partitions)
        self._carers = [
            asyncio.create_task(self._care(self._look, self._look_s), name="projector-look"),
            asyncio.create_task(self._care(self._measure, _LAG_S), name="projector-lag"),
        ]
        if self._ownership is None:
            await self.assigned(frozenset(range(self._log.partitions)))
        else:
            await self._ownership.start(self)

    async def close(self) -> None:
        """Stop projecting; what was written stays, and is gone on from next time."""
        if self._ownership is not None:
            await self._ownership.close()
        await self.revoked(frozenset(self._tasks))
        await _cancelled(self._carers)

    async def assigned(self, partitions: frozenset[int]) -> None:
        """Ownership: project these partitions too."""
        for partition in sorted(partitions - self._tasks.keys()):
            self._tasks[partition] = asyncio.create_task(
                self._run(partition), name=f"projector-{partition}"
            )

    async def revoked(self, partitions: frozenset[int]) -> None:
        """Ownership: another projector has these partitions now."""
        gone = sorted(partitions & self._tasks.keys())
        await _cancelled([self._tasks.pop(partition) for partition in gone])
        for partition in gone:
            self._projectors.pop(partition, None)
            self._stopped.discard(partition)
            self._figures.forget(partition)

    async def _run(self, partition: int) -> None:
        while True:
            projector = PartitionProjector(self._log, self._views, partition, self._figures)
            self._projectors[partition] = projector
            self._stopped.discard(partition)
            try:
                await projector.run()
            except Exception:
                # A defect of ours: the other partitions go on, and this one is tried again.
                _logger.exception("the projection of partition %d failed", partition)
                self._figures.stop(partition, stopped=True)
                self._stopped.add(partition)
                await asyncio.sleep(_RESTART_S)
            else:
                self._stopped.add(partition)
                return

    # -- looking after them -----------------------------------------------------------------------

    async def _care(self, once: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await once()

    async def _look(self) -> None:
        """Find partitions whose stored watermark is not what it should be."""
        running = {p: each for p, each in self._projectors.items() if p not in self._stopped}
        try:
            stored = await self._views.watermarks(running)
        except ViewsUnavailable as error:
            _logger.debug("%s", error)
            return
        for partition, projector in running.items():
            if projector.expected not in (None, stored[partition]):
                projector.look()

    async def _measure(self) -> None:
        """Tell how far each partition's views are behind the log."""
        projectors = list(self._projectors.values())
        for start in range(0, len(projectors), _LAG_TOGETHER):
            lot = projectors[start : start + _LAG_TOGETHER]
            await asyncio.gather(*(self._measure_one(projector) for projector in lot))

    async def _measure_one(self, projector: PartitionProjector) -> None:
        try:
            end = await self._log.end_offset(projector.partition)
        except LogError as error:
            _logger.debug("partition %d: %s", projector.partition, error)
            return
        applied = projector.expected
        if projector.partition in self._tasks:
            behind = end if applied is None else end - 1 - applied.offset
            self._figures.lag(projector.partition, max(0, behind))


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    wanted = list(tasks)
    for task in wanted:
        task.cancel()
    for outcome in await asyncio.gather(*wanted, return_exceptions=True):
        if isinstance(outcome, Exception):
            _logger.error("a task of the projector failed", exc_info=outcome)
