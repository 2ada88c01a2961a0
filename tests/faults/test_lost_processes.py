"""Processes killed and frozen while matches run: nothing acknowledged is lost, all matches end.

Afterwards a separate checker compares what the clients were told with the raw log, every state is
compared with the replay, and the read model with the fold.
"""

import asyncio

import pytest

from services.cli.supervisor import Distributed
from tests.support.arena import Arena
from tests.support.cluster import check_all, flush_redis, freeze

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.faults]

MATCHES = 10
# What a client may see while a process is lost: each says that sending again is safe.
LOST = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED NOT_APPLIED")


def _only_retriable(arena: Arena) -> None:
    assert [seen for seen in arena.failures if not seen.startswith(LOST)] == []


async def test_kill_9_of_a_match_process(running: Distributed, arena: Arena) -> None:
    victim = running.members["match-1"]
    playing = asyncio.create_task(arena.play(MATCHES, hashes=True))
    assert await arena.reached(250, playing)
    await victim.kill()
    try:
        played = await playing
    finally:
        await running.start("match-1")
    assert arena.failures, "nobody noticed"
    _only_retriable(arena)
    await check_all(running, arena, played)


async def test_kill_9_of_the_one_that_took_over(running: Distributed, arena: Arena) -> None:
    """One process after the other: the survivor of the first kill is the second victim."""
    first = asyncio.create_task(arena.play(MATCHES))
    assert await arena.reached(100, first)
    await running.members["match-2"].kill()
    # It takes its share back while matches go on.
    await running.start("match-2")
    second = asyncio.create_task(arena.play(MATCHES))
    assert await arena.reached(100, second)
    await running.members["match-1"].kill()
    await running.start("match-1")
    played = [*await first, *await second]
    _only_retriable(arena)
    await check_all(running, arena, played)


async def test_a_match_process_frozen_for_longer_than_its_session(
    running: Distributed, arena: Arena
) -> None:
    frozen = running.members["match-2"]
    playing = asyncio.create_task(arena.play(MATCHES, hashes=True))
    assert await arena.reached(250, playing)
    await freeze(frozen)
    played = await playing
    assert arena.failures, "nobody noticed"
    _only_retriable(arena)
    assert frozen.is_running
    await check_all(running, arena, played)


async def test_kill_9_of_the_projector(running: Distributed, arena: Arena) -> None:
    playing = asyncio.create_task(arena.play(MATCHES))
    assert await arena.reached(150, playing)
    await running.members["projector"].kill()
    await asyncio.sleep(1)
    await running.start("projector")
    played = await playing
    assert [seen for seen in arena.failures if "VIEWS" in seen] == [], "playing needs no views"
    await check_all(running, arena, played)


async def test_a_projector_frozen_for_longer_than_its_session(
    running: Distributed, arena: Arena
) -> None:
    projector = running.members["projector"]
    playing = asyncio.create_task(arena.play(MATCHES))
    assert await arena.reached(150, playing)
    await freeze(projector)
    await check_all(running, arena, await playing)


async def test_redis_flushed_while_matches_run_and_after(
    running: Distributed, arena: Arena
) -> None:
    playing = asyncio.create_task(arena.play(MATCHES))
    assert await arena.reached(150, playing)
    await flush_redis(running)
    played = await playing
    await check_all(running, arena, played)
    await flush_redis(running)
    await check_all(running, arena, played)
