"""Answers that seats leave behind for a kind of question: which may be left, when one is due."""

from __future__ import annotations

from typing import Final

from engine.core.facts import Answered
from engine.core.game import AnyGame
from engine.core.prompts import Answer, check_answer
from engine.core.refusals import Refusal
from engine.core.state import MatchState
from engine.core.visibility import Seat

_PER_SEAT_MAX: Final = 32


def standing_answer(game: AnyGame, match: MatchState) -> tuple[Answered, Answer] | None:
    """The first open question to which a seat has left an answer that is legal now."""
    assert match.table is not None
    for prompt in match.prompts:
        for standing in match.standing:
            if (standing.seat, standing.kind) != (prompt.seat, prompt.kind):
                continue
            measure = game.measure(match.table, prompt.seat, prompt.kind)
            wanted = not standing.below or measure < standing.below
            if wanted and check_answer(prompt, standing.answer) is None:
                return Answered(prompt.seat, prompt.id, standing.answer), standing.answer
    return None


def check_standing(match: MatchState, seat: Seat, kind: str, below: int) -> None:
    """Refuse (BAD_STANDING_ANSWER) what cannot be left behind."""
    if not 1 <= seat <= match.seats:
        raise _bad("seat", "no such seat", "没有这个座位")
    if not 1 <= len(kind) <= 64 or not kind.isprintable():
        raise _bad("kind", "no such kind of question", "没有这种问题")
    if not 0 <= below <= 1_000:
        raise _bad("below", "from 0 to 1000", "须为 0 到 1000")
    own = [each.kind for each in match.standing if each.seat == seat]
    if kind not in own and len(own) >= _PER_SEAT_MAX:
        raise _bad("kind", "too many of them", "数量过多")


def _bad(field: str, detail: str, detail_zh: str) -> Refusal:
    return Refusal("BAD_STANDING_ANSWER", field, detail=detail, detail_zh=detail_zh)
