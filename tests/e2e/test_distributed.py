"""Twenty matches at once through two match processes, a real Kafka and a real Redis."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from services.common.broker import KafkaBroker
from tests.support.cluster import arena_on, check_all, cluster
from tests.support.history import counted_commits
from tests.support.rawlog import kafka_records

pytestmark = pytest.mark.asyncio(loop_scope="session")

MATCHES = 20


async def test_twenty_matches_of_two_to_six_bots(
    kafka_broker: KafkaBroker, tmp_path: Path, fresh_name: Callable[[str], str]
) -> None:
    data, topic = tmp_path / "data", fresh_name("e2e")
    async with (
        cluster(data, kafka_broker.bootstrap, topic) as running,
        arena_on(running) as arena,
    ):
        played = await arena.play(MATCHES, hashes=True)
        assert len(played) == MATCHES
        assert {len(match.subjects) for match in played} == {2, 3, 4, 5, 6}
        await check_all(running, arena, played)
        records = await asyncio.to_thread(kafka_records, running.kafka, running.topic)
        commits = list(counted_commits(records))
        # Nothing but these matches is in the log, and both processes wrote their share.
        assert {each.header.match_id for each in commits} == {each.match_id for each in played}
        writers = {each.header.writer.partition(".")[0] for each in commits}
        assert writers == {"match-1", "match-2"}
