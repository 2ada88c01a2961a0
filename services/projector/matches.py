"""The folds of one partition's matches, and the rows that they become in Redis.

Pure: commits in, rows out. What is written when is `partition`'s business.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from engine import MatchState, encode_state
from services.common.commits import ParsedCommit
from services.common.viewfold import EVERYTHING, SPECTATOR, MatchFold
from services.common.views import MatchRow, SeatSummary, Summary

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Match:
    """One unfinished match."""

    created_ms: int
    fold: MatchFold = field(default_factory=MatchFold)
    # The last commit that is in the fold, and its offset.
    commit: ParsedCommit | None = None
    offset: int = -1
    parked: str = ""


class Matches:
    """Folds the admitted commits of one partition; holds the matches that are not finished."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._matches: dict[str, _Match] = {}
        # What changed and was not taken yet: matches that go on, matches that are over.
        self._changed: dict[str, _Match] = {}
        self._finished: dict[str, _Match] = {}
        self._parked: set[str] = set()

    @property
    def parked(self) -> int:
        """How many matches are parked."""
        return len(self._parked)

    def apply(self, offset: int, commit: ParsedCommit) -> None:
        """Fold one admitted commit. A commit that cannot be folded parks its match for good."""
        match_id = commit.match_id
        match = self._matches.get(match_id)
        if match is None:
            match = self._matches[match_id] = _Match(commit.recorded_at_ms)
        if match.parked:
            if commit.final:
                self._finish(match_id)
            return
        try:
            match.fold.apply(commit.facts(), final=commit.final)
        except Exception as error:
            # Whatever is wrong with this match, the others go on (reliability.md, F33); be it a
            # fact of newer software: the next start of one that knows it takes the match up again.
            self._park(match, offset, commit, error)
        else:
            match.commit = commit
        match.offset = offset
        self._changed[match_id] = match
        if commit.final:
            self._finish(match_id)

    def _finish(self, match_id: str) -> None:
        """Keep the match only until its row has been taken."""
        del self._matches[match_id]
        match = self._changed.pop(match_id, None)
        if match is not None:
            self._finished[match_id] = match

    def _park(self, match: _Match, offset: int, commit: ParsedCommit, error: Exception) -> None:
        # The error's text may hold facts that are secret: its type is told, no more.
        match.parked = f"commit {commit.sequence} cannot be folded: {type(error).__name__}"
        self._parked.add(commit.match_id)
        _logger.error(
            "match %s of partition %d is parked: %s (offset %d)",
            commit.match_id,
            self._partition,
            match.parked,
            offset,
        )

    def waiting(self, *, finished_only: bool) -> int:
        """How many matches changed since they were last taken."""
        return len(self._finished) + (0 if finished_only else len(self._changed))

    def take(
        self, *, after: int = -1, also: Iterable[str] = (), finished_only: bool = False
    ) -> list[MatchRow]:
        """The rows of what changed since it was last taken, by commits past the offset `after`.

        Matches in `also` are given whatever their offset.
        """
        wanted = frozenset(also)
        taken = list(self._finished.items())
        self._finished.clear()
        if not finished_only:
            taken += self._changed.items()
            self._changed.clear()
        return [
            _row(match_id, match)
            for match_id, match in taken
            if match.offset > after or match_id in wanted
        ]

    def discard(self, keep: Collection[str]) -> None:
        """Forget that anything changed, but for the matches in `keep`."""
        for changes in (self._finished, self._changed):
            for match_id in [each for each in changes if each not in keep]:
                del changes[match_id]


def _row(match_id: str, match: _Match) -> MatchRow:
    commit = match.commit
    if commit is None:
        # Not even the first commit could be folded: there is nothing to show but that.
        summary = Summary(match_id, "", "lobby", 0, created_ms=match.created_ms)
        return MatchRow(
            match_id, 0, b"", match.offset, "lobby", summary, {SPECTATOR: b""}, match.parked
        )
    states: dict[int, bytes] = {}
    for state, viewers in match.fold.groups:
        shown = [viewer for viewer in viewers if viewer != EVERYTHING]
        if shown:
            states |= dict.fromkeys(shown, encode_state(state))
    public = match.fold.state(SPECTATOR)
    return MatchRow(
        match_id=match_id,
        sequence=commit.sequence,
        hash=commit.hash,
        offset=match.offset,
        status=public.status,
        summary=_summary(match_id, match.created_ms, commit, public),
        states=states,
        parked=match.parked,
    )


def _summary(match_id: str, created_ms: int, commit: ParsedCommit, state: MatchState) -> Summary:
    asked = {prompt.seat for prompt in state.prompts}
    players = {int(player.seat): player for player in state.players}
    seats = tuple(
        SeatSummary(seat, players[seat].player, players[seat].name, seat in asked)
        if seat in players
        else SeatSummary(seat)
        for seat in range(1, state.seats + 1)
    )
    return Summary(
        match_id=match_id,
        game=state.game,
        status=state.status,
        sequence=commit.sequence,
        seats=seats,
        host=state.host,
        winners=tuple(state.winners),
        created_ms=created_ms,
        deadline_ms=commit.deadline_ms,
    )
