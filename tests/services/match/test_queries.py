"""Queries: answered from the read model; play does not need it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis.asyncio import Redis

from diceledger.match.v1 import match_pb2
from engine import MatchState, state_hash
from services.common.errors import ApiError
from services.common.factcodec import state_from_any
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.redis_server import RedisServer
from services.common.redis_store import connect_redis
from services.projector import Projector
from tests.services.match.serving import (
    GAME,
    LIMITS,
    Process,
    begin,
    play_out,
    process,
    refused,
)


@dataclass
class Whole:
    """A match process, a projector and a Redis."""

    match: Process
    redis: RedisServer
    projector: Projector


@pytest.fixture
async def whole(log: SqliteLog, tmp_path: Path) -> AsyncIterator[Whole]:
    """All of them, on one log."""
    server = RedisServer(tmp_path / "redis")
    await server.start()
    redis: Redis = connect_redis(server.url, connect_timeout_s=0.5, command_timeout_s=2)
    projector = Projector(log=log, redis=redis, metrics=Metrics("projector"))
    await projector.start()
    limits = LIMITS.__class__(views_wait_s=1.0)
    async with process(log, redis=redis, limits=limits) as running:
        yield Whole(running, server, projector)
    await projector.close()
    await redis.aclose()
    await server.stop()


async def _get(player: object, match_id: str, position: str = "") -> match_pb2.GetMatchResponse:
    request = match_pb2.GetMatchRequest(match_id=match_id, position=position)
    response: match_pb2.GetMatchResponse = await player.call("GetMatch", request)  # type: ignore[attr-defined]  # a Player
    return response


async def test_each_viewer_gets_its_own_view(whole: Whole) -> None:
    """GetMatch after a receipt shows that commit or later, as the caller may see it."""
    match = await begin(whole.match)
    ann, bob = match.players
    (prompt,) = await ann.prompts(match.match_id)
    receipt = (await ann.answer(match.match_id, prompt.prompt_id, "keep")).receipt
    views = {}
    for player, seat in ((ann, 1), (bob, 2), (whole.match.player("zoe"), 0)):
        view = await _get(player, match.match_id, receipt.position)
        assert view.viewer_seat == seat
        assert view.summary.sequence == receipt.sequence
        assert view.summary.status == match_pb2.MATCH_STATUS_RUNNING
        assert view.summary.host == "ann"
        assert [s.asked for s in view.summary.seats] == [False, True]
        assert [p.seat for p in view.prompts] == ([2] if seat == 2 else [])
        state = state_from_any(view.state)
        assert isinstance(state, MatchState)
        assert state_hash(state) == view.state_hash
        assert view.position
        views[seat] = view
    assert len({view.state.value for view in views.values()}) == 3
    (prompt,) = await bob.prompts(match.match_id)
    assert views[2].prompts[0] == prompt


async def test_a_finished_match(whole: Whole) -> None:
    """Winners are named, and everybody sees the same."""
    match = await begin(whole.match)
    last = await play_out(match)
    (partition,) = {p for p in (0, 1) if match.match_id in _live(whole, p)}
    position = f"{partition}:{await whole.match.node.log.end_offset(partition) - 1}"
    views = [await _get(p, match.match_id, position) for p in match.players]
    assert views[0].summary.sequence == last
    assert views[0].summary.status == match_pb2.MATCH_STATUS_FINISHED
    assert views[0].summary.winners
    assert views[0].state == views[1].state


def _live(whole: Whole, partition: int) -> set[str]:
    return set(whole.match.node._owners[partition]._matches)


async def test_lists(whole: Whole) -> None:
    """Newest first, by status, of the caller, page by page."""
    ann = whole.match.player("ann")
    running = await begin(whole.match)
    lobbies = [await ann.create() for _ in range(5)]
    await _get(ann, lobbies[-1].match_id, lobbies[-1].receipt.position)
    for lobby in lobbies:
        await _get(ann, lobby.match_id, lobby.receipt.position)
    lobby_status = match_pb2.MATCH_STATUS_LOBBY
    seen: list[str] = []
    token = ""
    while True:
        request = match_pb2.ListMatchesRequest(status=lobby_status, page_size=2, page_token=token)
        page = await ann.call("ListMatches", request)
        seen += [summary.match_id for summary in page.matches]
        token = page.next_page_token
        if not token:
            break
    assert sorted(seen) == sorted(lobby.match_id for lobby in lobbies)
    mine = await ann.call("ListMatches", match_pb2.ListMatchesRequest(mine=True))
    assert [summary.match_id for summary in mine.matches] == [running.match_id]
    everything = await ann.call("ListMatches", match_pb2.ListMatchesRequest())
    assert len(everything.matches) == 6


async def test_bad_queries(whole: Whole) -> None:
    """Each is refused with its reason."""
    ann = whole.match.player("ann")
    get, listing = match_pb2.GetMatchRequest, match_pb2.ListMatchesRequest
    cases = {
        "BAD_MATCH_ID": ("GetMatch", get(match_id="x")),
        "MATCH_NOT_FOUND": ("GetMatch", get(match_id="a" * 26)),
        "BAD_POSITION": ("GetMatch", get(match_id="a" * 26, position="here")),
        "BAD_POSITION partition": ("GetMatch", get(match_id="a" * 26, position="99:1")),
        "VIEWS_BEHIND": ("GetMatch", get(match_id="a" * 26, position="0:99999")),
        "BAD_PAGE_SIZE": ("ListMatches", listing(page_size=201)),
        "BAD_PAGE_TOKEN": ("ListMatches", listing(page_token="next please")),
        "BAD_REQUEST": ("ListMatches", listing(status=9)),  # type: ignore[arg-type]  # no such status
    }
    for name, (method, request) in cases.items():
        with pytest.raises(ApiError) as error:
            await ann.call(method, request)
        assert refused(error) == name.partition(" ")[0]


async def test_redis_is_down(whole: Whole) -> None:
    """Queries say UNAVAILABLE; matches are played on."""
    match = await begin(whole.match)
    await whole.redis.stop()
    with pytest.raises(ApiError) as error:
        await _get(match.players[0], match.match_id)
    assert refused(error) == "VIEWS_UNAVAILABLE"
    with pytest.raises(ApiError) as error:
        await match.players[0].call("ListMatches", match_pb2.ListMatchesRequest())
    assert refused(error) == "VIEWS_UNAVAILABLE"
    await play_out(match)


async def test_games(here: Process) -> None:
    """The catalogue, with options in the caller's language."""
    ann = here.player("ann")
    response = await ann.call("ListGames", match_pb2.ListGamesRequest())
    games = {game.game: game for game in response.games}
    assert games["king_of_tokyo"].seats_high == 6
    assert GAME not in games
