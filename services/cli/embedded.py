"""The embedded mode: every service in this process, on one SQLite file and a Redis of our own.

Used by `up`, by `demo` and by tests. Only the adapters of log and Redis differ from the
distributed mode.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.cli.datadir import DataDir, TokenMaker
from services.cli.runtime import (
    MATCH_SERVICE,
    REPLAY_SERVICE,
    Node,
    Serving,
    first_of,
    load_games,
    log_errors,
    serving,
)
from services.common.log.sqlite import LocalOwnership, SqliteLog
from services.common.metrics import Metrics
from services.common.redis_server import RedisServer
from services.common.redis_store import redis_client
from services.common.settings import Address, Settings
from services.match.node import MatchNode
from services.projector import Projector
from services.replay import ReplayNode

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Embedded:
    """A running embedded set-up. One address serves matches and replays alike."""

    # Where gRPC listens, "host:port".
    address: str
    metrics_address: str
    data_dir: Path
    # Makes tokens: token("ann", "player", name="Ann").
    token: TokenMaker
    redis_server: RedisServer
    serving: Serving

    async def failed(self) -> str:
        """Wait until the set-up can no longer do its work; return the reason, a sentence."""
        return await first_of(self._redis_ended, self.serving.failed)

    async def _redis_ended(self) -> str:
        code = await self.redis_server.wait()
        return (
            f"Redis ended unexpectedly (exit code {code}); "
            f"see {self.data_dir / 'redis' / 'redis.log'}."
        )


@contextlib.asynccontextmanager
async def embedded(
    data_dir: Path, *, port: int = 0, metrics_port: int = 0, partitions: int | None = None
) -> AsyncIterator[Embedded]:
    """Run everything on `data_dir` for the length of the block, on the loopback interface only.

    Port 0 means any free one; `partitions` counts for a new directory only (default 8). Raises
    StartupError with one sentence. Call it from the main thread: Redis lives as long as that.
    """
    load_games()
    async with contextlib.AsyncExitStack() as stack:
        data = stack.enter_context(DataDir(data_dir))
        keys, secret = data.key_ring(), data.token_secret()
        redis_server = RedisServer(data.redis)
        stack.push_async_callback(redis_server.stop)
        await redis_server.start()
        redis = await stack.enter_async_context(redis_client(redis_server.url))
        log = SqliteLog(data.log_file, partitions=partitions)
        stack.push_async_callback(log.close)
        with log_errors():
            await log.start()
        metrics = Metrics("embedded").with_process_figures()

        def build(settings: Settings) -> Sequence[Node]:
            return (
                Projector(log=log, redis=redis, metrics=metrics),
                ReplayNode(settings=settings, log=log, redis=redis, metrics=metrics),
                MatchNode(
                    settings=settings,
                    log=log,
                    ownership=LocalOwnership(log.partitions, str(settings.advertise)),
                    redis=redis,
                    keys=keys,
                    metrics=metrics,
                ),
            )

        wanted = Settings(
            node="embedded",
            listen=Address(_LOOPBACK, port),
            metrics_listen=Address(_LOOPBACK, metrics_port),
            partitions=log.partitions,
            redis_url=redis_server.url,
            token_secret=secret,
            drain_s=2,
        )
        services = (MATCH_SERVICE, REPLAY_SERVICE)
        served = await stack.enter_async_context(serving(wanted, metrics, services, build))
        yield Embedded(
            address=str(served.settings.listen),
            metrics_address=str(served.settings.metrics_listen),
            data_dir=data.path,
            token=TokenMaker(secret),
            redis_server=redis_server,
            serving=served,
        )
