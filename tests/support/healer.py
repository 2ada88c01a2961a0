"""A bot that makes actions at any time happen, and a check of what came of them."""

from collections.abc import Iterable, Sequence

from engine import Answer, MatchState, Option, Prompt, Seat
from engine.games.kings.state import KingsState
from tests.support.arena import Played
from tests.support.history import RawRecord, counted_commits

CARD = "rapid_healing"


class Healer:
    """Sweeps cards away until somebody has Rapid Healing, and acts whenever it may."""

    def __init__(self, seed: str) -> None:
        """It leaves nothing to chance."""

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        """See `hunt`."""
        return hunt(prompt, state)

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """Always, whoever is asked."""
        return actions[0].id


def hunt(prompt: Prompt, state: MatchState) -> Answer:
    """What somebody answers who wants energy, and the card for it."""
    table = state.table
    assert isinstance(table, KingsState), "only King games know the card"
    picks: list[str] = []
    if prompt.kind == "reroll":
        picks = [each.id for each in prompt.options if not each.subject.endswith("energy")]
    elif prompt.kind == "buy" and all(each.card != CARD for each in table.holdings):
        it = [each.id for each in prompt.options if CARD in each.subject]
        picks = (it or [each.id for each in prompt.options if each.subject == "sweep"])[:1]
    return Answer(picks=tuple(picks)) if picks else prompt.default


def check_actions(records: Iterable[RawRecord], played: Sequence[Played], fault_s: float) -> None:
    """The actions in the log are those that the seats were told of, each once; some of them were
    taken before the fault, some after (monotonic seconds).
    """
    known = {match.match_id for match in played}
    in_log = [
        (each.header.match_id, each.cause.request_id, each.header.sequence)
        for each in counted_commits(records)
        if each.cause.command == "action" and each.header.match_id in known
    ]
    told = [
        (match.match_id, command.request_id, command.receipt.sequence)
        for match in played
        for command in match.actions
        if command.receipt is not None
    ]
    assert sorted(in_log) == sorted(told)
    ended = [command.ended_s for match in played for command in match.actions if command.receipt]
    assert min(ended, default=fault_s) < fault_s, "nobody acted before"
    assert max(ended) > fault_s, "nobody acted afterwards"
