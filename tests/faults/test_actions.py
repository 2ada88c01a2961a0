"""Processes lost while seats act at any time: each action that was acknowledged counts once."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from services.cli.supervisor import Distributed
from tests.support.arena import Arena, Played
from tests.support.cluster import check_all, freeze
from tests.support.healer import Healer, check_actions
from tests.support.rawlog import kafka_records

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.faults]

MATCHES = 10
# So many actions are begun before the fault: all but one of them may still be under way.
BEFORE = 5


async def test_kill_9_of_a_match_process_while_seats_act(
    running: Distributed, arena: Arena
) -> None:
    playing = asyncio.create_task(arena.play(MATCHES, hashes=True, bot_of=Healer))
    assert await arena.reached(0, playing, actions=BEFORE), "nobody acted"
    since = time.monotonic()
    await running.members["match-1"].kill()
    try:
        played = await playing
    finally:
        await running.start("match-1")
    assert arena.failures, "nobody noticed"
    await _check(running, arena, played, since)


async def test_a_match_process_frozen_while_seats_act(running: Distributed, arena: Arena) -> None:
    frozen = running.members["match-2"]
    playing = asyncio.create_task(arena.play(MATCHES, hashes=True, bot_of=Healer))
    assert await arena.reached(0, playing, actions=BEFORE), "nobody acted"
    since = time.monotonic()
    await freeze(frozen)
    played = await playing
    assert arena.failures, "nobody noticed"
    assert frozen.is_running
    await _check(running, arena, played, since)


async def _check(
    running: Distributed, arena: Arena, played: Sequence[Played], since: float
) -> None:
    await check_all(running, arena, played)
    records = await asyncio.to_thread(kafka_records, running.kafka, running.topic)
    check_actions(records, played, since)
