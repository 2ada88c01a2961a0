"""Looking at matches: answered from the read model, by any process, without a word to the owner."""

import asyncio
import hashlib
from typing import Final

from diceledger.match.v1 import match_pb2
from engine import MatchState, Seat, catalogue, decode_state
from services.common.auth import Caller
from services.common.errors import Locale, refuse
from services.common.factcodec import state_to_any
from services.common.log import Position
from services.common.prompts_wire import actions_to_wire, game_to_wire, prompt_to_wire
from services.common.viewpages import BadPageToken
from services.common.views import (
    MatchRow,
    Status,
    Summary,
    Views,
    ViewsBehind,
    ViewsError,
    ViewsRebuilding,
)

_PAGE_DEFAULT: Final = 50
_PAGE_MAX: Final = 200
_STATUSES: Final[dict[Status, match_pb2.MatchStatus.ValueType]] = {
    "lobby": match_pb2.MATCH_STATUS_LOBBY,
    "running": match_pb2.MATCH_STATUS_RUNNING,
    "finished": match_pb2.MATCH_STATUS_FINISHED,
}


class Queries:
    """GetMatch, ListMatches and ListGames."""

    def __init__(self, views: Views, wait_s: float) -> None:
        """`wait_s`: how long a query waits until the views have got to its position."""
        self._views = views
        self._wait_s = wait_s

    def list_games(self, locale: Locale) -> match_pb2.ListGamesResponse:
        """The catalogue."""
        games = [game_to_wire(game, locale) for game in catalogue().values()]
        return match_pb2.ListGamesResponse(games=games)

    async def get_match(
        self, request: match_pb2.GetMatchRequest, caller: Caller, locale: Locale
    ) -> match_pb2.GetMatchResponse:
        """One match as the caller may see it. Raises ApiError."""
        position = _position(request.position)
        try:
            if position is not None:
                await self._views.wait_for(position, self._wait_s)
            row = await self._read(request.match_id)
        except ViewsError as error:
            raise _refused(error) from error
        except ValueError as error:
            raise refuse("BAD_POSITION", field="position") from error
        if row is None:
            raise refuse("MATCH_NOT_FOUND")
        if row.parked:
            raise refuse("MATCH_FROZEN")
        response = _match(row, caller, locale)
        if row.watermark is not None:
            partition = self._views.partition_of(request.match_id)
            response.position = str(Position(partition, row.watermark.offset))
        return response

    async def _read(self, match_id: str) -> MatchRow | None:
        """The row; views that are just being built are given the same time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_s
        while True:
            try:
                return await self._views.read_match(match_id)
            except ViewsRebuilding:
                if loop.time() >= deadline:
                    raise
            await asyncio.sleep(0.05)

    async def list_matches(
        self, request: match_pb2.ListMatchesRequest, caller: Caller
    ) -> match_pb2.ListMatchesResponse:
        """Matches, newest first. Raises ApiError."""
        if not 0 <= request.page_size <= _PAGE_MAX:
            raise refuse("BAD_PAGE_SIZE", field="page_size")
        wanted = {wire: status for status, wire in _STATUSES.items()}.get(request.status)
        if request.status and wanted is None:
            raise refuse("BAD_REQUEST", "There is no such status.", field="status")
        try:
            page = await self._views.list_matches(
                status=wanted,
                player=caller.subject if request.mine else "",
                page_size=request.page_size or _PAGE_DEFAULT,
                page_token=request.page_token,
            )
        except BadPageToken as error:
            raise refuse("BAD_PAGE_TOKEN", field="page_token") from error
        except ViewsError as error:
            raise _refused(error) from error
        return match_pb2.ListMatchesResponse(
            matches=[_summary(summary) for summary in page.matches],
            next_page_token=page.next_token,
        )


def _refused(error: ViewsError) -> Exception:
    if isinstance(error, ViewsBehind | ViewsRebuilding):
        return refuse("VIEWS_BEHIND")
    return refuse("VIEWS_UNAVAILABLE")


def _position(token: str) -> Position | None:
    if not token:
        return None
    try:
        return Position.parse(token)
    except ValueError as error:
        raise refuse("BAD_POSITION", field="position") from error


def _match(row: MatchRow, caller: Caller, locale: Locale) -> match_pb2.GetMatchResponse:
    seat = row.summary.seat_of(caller.subject)
    encoded = row.state(seat or None)
    state = decode_state(encoded)
    return match_pb2.GetMatchResponse(
        summary=_summary(row.summary),
        viewer_seat=seat,
        state=state_to_any(state),
        # The view is the canonical encoding itself.
        state_hash=hashlib.sha256(encoded).digest(),
        prompts=_prompts(state, seat, locale, row.summary.deadline_ms),
        actions=actions_to_wire(state, state.actions_of(Seat(seat)), locale),
    )


def _prompts(
    state: MatchState, seat: int, locale: Locale, deadline_ms: int
) -> list[match_pb2.Prompt]:
    return [
        prompt_to_wire(state, prompt, locale, deadline_ms=deadline_ms)
        for prompt in state.prompts
        if seat and prompt.seat == seat and not prompt.concealed
    ]


def _summary(summary: Summary) -> match_pb2.MatchSummary:
    return match_pb2.MatchSummary(
        match_id=summary.match_id,
        game=summary.game,
        status=_STATUSES[summary.status],
        sequence=summary.sequence,
        seats=[
            match_pb2.SeatInfo(seat=s.seat, name=s.name, player=s.player, asked=s.asked)
            for s in summary.seats
        ],
        host=summary.host,
        winners=summary.winners,
    )
