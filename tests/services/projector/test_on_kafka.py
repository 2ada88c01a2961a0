"""The projector on a real Kafka: partitions shared out by a group, taken over, none left behind."""

from collections.abc import AsyncIterator, Callable

import pytest
from redis.asyncio import Redis

from services.common.log.kafka import KafkaLog
from services.common.log.kafka_client import KafkaOptions, create_topic
from services.common.log.kafka_ownership import KafkaOwnership
from services.common.metrics import Metrics
from services.common.redis_server import RedisServer
from services.projector import Projector
from services.replay import ReplayNode
from services.replay.recorded import Library
from tests.services.projector.checking import assert_equal, caught_up, soon, views_of
from tests.services.projector.recording import Recorder

PARTITIONS = 4
GAME = "king_of_tokyo"


@pytest.fixture
async def kafka_log(kafka_options: KafkaOptions) -> AsyncIterator[KafkaLog]:
    """A log on a topic of its own."""
    await create_topic(kafka_options, partitions=PARTITIONS)
    log = KafkaLog(kafka_options)
    await log.start()
    yield log
    await log.close()


async def test_partitions_are_shared_out_and_taken_over(
    kafka_log: KafkaLog,
    kafka_options: KafkaOptions,
    fresh_name: Callable[[str], str],
    redis: Redis,
    server: RedisServer,
) -> None:
    views = views_of(redis, kafka_log)
    recorder = Recorder(kafka_log)
    group = fresh_name("projectors")
    projectors = [
        Projector(
            log=kafka_log,
            redis=redis,
            metrics=Metrics("projector"),
            ownership=KafkaOwnership(kafka_options, address=f"none:{number}", group=group),
            look_s=0.1,
        )
        for number in (1, 2)
    ]
    for projector in projectors:
        await projector.start()
    try:

        async def shared_out() -> bool:
            mine, others = (projector.partitions for projector in projectors)
            return bool(mine and others and len(mine | others) == PARTITIONS)

        await soon(shared_out, 30)
        for number in range(6):
            await recorder.play(await recorder.create(f"m{number}", GAME, 3), 15 * number)
        await caught_up(views, kafka_log, 30)
        await assert_equal(views, recorder.matches.values())
        await projectors.pop().close()
        for match in recorder.matches.values():
            await recorder.play(match, 10)
        await redis.flushall()
        await caught_up(views, kafka_log, 60)
        await assert_equal(views, recorder.matches.values())
        await server.kill()
        for match in recorder.matches.values():
            await recorder.play(match, 5)
        await server.start()
        await caught_up(views, kafka_log, 60)
        await assert_equal(views, recorder.matches.values())
    finally:
        for projector in projectors:
            await projector.close()


async def test_the_replay_service_reads_from_kafka(kafka_log: KafkaLog, redis: Redis) -> None:
    recorder = Recorder(kafka_log)
    matches = [await recorder.create(f"m{number}", GAME, 2) for number in range(3)]
    node = ReplayNode(log=kafka_log, redis=redis, metrics=Metrics("replay"))
    await node.start()
    try:
        library = Library(kafka_log, node._indexes)
        for answers in (3, 5, 300):
            for match in matches:
                await recorder.play(match, answers)
                found = await library.find(match.match_id, match.partition, timeout=20)
                assert [p.offset for p in found.commits] == match.offsets
                assert found.last.hash == match.commits[-1].hash
                assert found.whole() == match.session.state
    finally:
        await node.close()
