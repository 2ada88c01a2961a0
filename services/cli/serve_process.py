"""One service process of the distributed mode: match, projector or replay on Kafka and Redis."""

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Literal

from redis.asyncio import Redis

from services.cli.runtime import (
    MATCH_SERVICE,
    REPLAY_SERVICE,
    Node,
    Serving,
    calm_collector,
    load_games,
    log_errors,
    run_until,
    serving,
    stop_requested,
)
from services.cli.topics_kafka import kafka_options
from services.common.keys import KeyRing, load_key_ring
from services.common.log import Log
from services.common.log.kafka import KafkaLog
from services.common.log.kafka_ownership import KafkaOwnership
from services.common.logging import configure_logging
from services.common.metrics import Metrics
from services.common.redis_store import redis_client
from services.common.settings import Settings, load_settings, misspelt_variables

Role = Literal["match", "projector", "replay"]
_SERVICES = {"match": (MATCH_SERVICE,), "projector": (), "replay": (REPLAY_SERVICE,)}
_PROJECTOR_GROUP = "projector-views"

_log = logging.getLogger("diceledger.process")


async def run_process(role: Role) -> None:
    """Run the service until it is told to stop. Raises StartupError with one sentence."""
    settings = load_settings(role)
    configure_logging(
        settings.log_level,
        "console" if settings.log_format == "console" else "json",
        process=f"{role}/{settings.node_name}",
    )
    for wrong, likely in misspelt_variables(os.environ).items():
        _log.warning("%s is no setting; did you mean %s?", wrong, likely)
    with stop_requested() as stop:
        async with service_process(role, settings) as served:
            calm_collector()
            actual = served.settings
            _log.info("serving on %s, metrics on %s", actual.listen, actual.metrics_listen)
            await run_until(stop, served.failed)
            _log.info("stopping: draining for up to %d s", settings.drain_s)
    _log.info("stopped")


@contextlib.asynccontextmanager
async def service_process(role: Role, settings: Settings) -> AsyncIterator[Serving]:
    """Run the service for the length of the block. Raises StartupError with one sentence."""
    load_games()
    metrics = Metrics(role).with_process_figures()
    keys = None
    if settings.master_keys is not None:
        keys = load_key_ring(settings.master_keys, settings.master_key_id)
    async with contextlib.AsyncExitStack() as stack:
        redis = await stack.enter_async_context(redis_client(settings.redis_url))
        log = KafkaLog(kafka_options(settings), partitions=settings.partitions)
        stack.push_async_callback(log.close)
        with log_errors():
            await log.start()

        # A replay process owns nothing.
        groups = {"match": settings.owners_group, "projector": _PROJECTOR_GROUP}
        owning: list[KafkaOwnership] = []

        def build(actual: Settings) -> list[Node]:
            if role in groups:
                owning.append(_ownership(actual, groups[role], metrics))
            return [_node(role, actual, log, redis, keys, metrics, owning)]

        served = await stack.enter_async_context(serving(settings, metrics, _SERVICES[role], build))
        yield replace(served, others=owning)


def _node(
    role: Role,
    settings: Settings,
    log: Log,
    redis: Redis,
    keys: KeyRing | None,
    metrics: Metrics,
    owning: Sequence[KafkaOwnership],
) -> Node:
    # Each service is loaded only by the process that runs it.
    if role == "match":
        from services.match.node import MatchNode

        assert keys is not None, "the settings of a match process name its keys"
        (ownership,) = owning
        return MatchNode(
            settings=settings,
            log=log,
            ownership=ownership,
            redis=redis,
            keys=keys,
            metrics=metrics,
        )
    if role == "projector":
        from services.projector import Projector

        (ownership,) = owning
        return Projector(log=log, redis=redis, metrics=metrics, ownership=ownership)
    from services.replay import ReplayNode

    return ReplayNode(settings=settings, log=log, redis=redis, metrics=metrics)


def _ownership(settings: Settings, group: str, metrics: Metrics) -> KafkaOwnership:
    return KafkaOwnership(
        kafka_options(settings),
        group=group,
        address=str(settings.advertise),
        session_timeout_ms=settings.session_timeout_ms,
        on_given_up=metrics.given_up.inc,
    )
