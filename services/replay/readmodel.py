"""Compares what Redis shows of a match with the fold of the log, for every viewer."""

from collections.abc import Awaitable, Callable
from typing import Final

from engine import encode_state
from services.common.log.port import Position
from services.common.verify import Check, CheckStatus
from services.common.viewfold import EVERYTHING
from services.common.views import MatchRow, Views, ViewsError
from services.replay.recorded import RecordedMatch

WAIT_S: Final = 3.0
# The match may go on while it is compared; then it is read again, so often at most.
_ATTEMPTS: Final = 5


async def check_read_model(
    views: Views, match: RecordedMatch, reload: Callable[[], Awaitable[RecordedMatch]]
) -> Check:
    """The check `read_model`; waits up to WAIT_S until the views hold the match's last commit.

    `reload` reads the match again, up to its newest commit.
    """
    try:
        for _ in range(_ATTEMPTS):
            position = Position(match.partition, match.commits[-1].offset)
            await views.wait_for(position, WAIT_S)
            row = await views.read_match(match.match_id)
            if row is None:
                return _failed(0, "Redis has no such match, though it got past its last commit")
            if row.sequence <= len(match.commits):
                return _compared(match, row)
            match = await reload()
    except ViewsError as error:
        return Check("read_model", CheckStatus.NOT_APPLICABLE, 0, 0, f"not compared: {error}")
    return Check("read_model", CheckStatus.NOT_APPLICABLE, 0, 0, "the match goes on too fast")


def _compared(match: RecordedMatch, row: MatchRow) -> Check:
    if row.parked:
        return _failed(row.sequence, f"the projection stands still: {row.parked}")
    at = row.sequence
    if at < len(match.commits):
        return _failed(at, f"Redis is at commit {at} of {len(match.commits)}")
    if row.hash != match.last.hash:
        return _failed(at, "Redis has another hash of the last commit")
    fold = match.fold(at)
    compared = 0
    for state, viewers in fold.groups:
        right = encode_state(state)
        for viewer in viewers:
            if viewer == EVERYTHING:
                continue
            if row.state(viewer) != right:
                who = f"seat {viewer}" if viewer else "spectators"
                return _failed(at, f"the state that Redis shows to {who} is not the log's")
            compared += 1
    if set(row.states) - {viewer for _, group in fold.groups for viewer in group}:
        return _failed(at, "Redis has a view for a seat that the match does not have")
    return Check("read_model", CheckStatus.PASSED, compared)


def _failed(sequence: int, finding: str) -> Check:
    return Check("read_model", CheckStatus.FAILED, 0, sequence, finding)
