"""Until when open prompts may be answered: who gets time, and who does not."""

from collections.abc import Sequence

import pytest

from engine import (
    ActionTaken,
    Answer,
    Answered,
    Fact,
    Prompt,
    Prompted,
    PromptedInSecret,
    PromptId,
    PromptsWithdrawn,
    Seat,
    StandingAnswer,
    StandingAnswerSet,
    Step,
)
from services.match.deadlines import next_deadline_ms

NOW, TIMEOUT_S, DUE = 1_000_000, 60, 1_005_000
FRESH = NOW + TIMEOUT_S * 1000
ANN, BOB = Seat(1), Seat(2)
ACTS = ActionTaken(ANN, "use:1")


def asks(number: int, seat: Seat, kind: str = "buy") -> Prompt:
    return Prompt(id=PromptId(f"p{number}"), seat=seat, kind=kind)


def put(*prompts: Prompt) -> list[Fact]:
    return [Prompted(prompt.seat, prompt) for prompt in prompts]


def in_secret(prompt: Prompt) -> Fact:
    return PromptedInSecret(prompt.seat, prompt.id, prompt.kind, prompt.form, "", prompt)


def gone(*prompts: Prompt) -> PromptsWithdrawn:
    return PromptsWithdrawn(tuple(prompt.id for prompt in prompts))


def answered(prompt: Prompt) -> Answered:
    return Answered(prompt.seat, prompt.id, Answer())


def deadline(
    before: Sequence[Prompt],
    facts: Sequence[Fact],
    waiting: Sequence[Prompt],
    *,
    due: int = DUE,
    timeout_s: int = TIMEOUT_S,
) -> int:
    step = Step(tuple(facts), tuple(waiting))
    return next_deadline_ms(step, before, due, now_ms=NOW, timeout_s=timeout_s)


P1, P2 = asks(1, ANN), asks(2, BOB)


@pytest.mark.parametrize(
    ("before", "facts", "waiting"),
    [
        # One of two has answered; a standing answer answers nothing.
        ([P1, P2], [answered(P1)], [P2]),
        ([P1], [StandingAnswerSet(ANN, StandingAnswer(ANN, "keep", Answer()))], [P1]),
        # An action leaves everything as it was.
        ([P2], [ACTS], [P2]),
        ([P1], [ACTS], [P1]),
        # It puts the same questions anew, to the actor or to another, in secret or not.
        ([P1], [ACTS, gone(P1), *put(asks(3, ANN))], [asks(3, ANN)]),
        ([P2], [ACTS, gone(P2), *put(asks(3, BOB))], [asks(3, BOB)]),
        (
            [P2],
            [ACTS, gone(P2), in_secret(asks(3, BOB))],
            [asks(3, BOB)],
        ),
        ([P1, P2], [ACTS, gone(P2), *put(asks(3, BOB))], [P1, asks(3, BOB)]),
        # Nobody gets time by changing what oneself is asked.
        ([P1], [ACTS, gone(P1), *put(asks(3, ANN, "yield"))], [asks(3, ANN, "yield")]),
        # What was put anew stays so when somebody else's standing answer follows.
        (
            [P1, P2],
            [ACTS, gone(P1, P2), *put(asks(3, ANN), asks(4, BOB)), answered(asks(3, ANN))],
            [asks(4, BOB)],
        ),
    ],
)
def test_what_keeps_the_deadline(
    before: list[Prompt], facts: list[Fact], waiting: list[Prompt]
) -> None:
    """Nothing new is asked, or an action put the same questions anew."""
    assert deadline(before, facts, waiting) == DUE


@pytest.mark.parametrize(
    ("before", "facts", "waiting"),
    [
        # The next question, even if it is of the same kind to the same seat.
        ([P1], [answered(P1), *put(asks(3, ANN))], [asks(3, ANN)]),
        # After the start.
        ([], put(P1), [P1]),
        # An action makes somebody else be asked, or something else of somebody else.
        ([P1], [ACTS, gone(P1), *put(asks(3, BOB))], [asks(3, BOB)]),
        ([P2], [ACTS, gone(P2), *put(asks(3, BOB, "yield"))], [asks(3, BOB, "yield")]),
        ([P2], [ACTS, gone(P2), *put(asks(3, ANN))], [asks(3, ANN)]),
        ([P2], [ACTS, *put(asks(3, ANN))], [P2, asks(3, ANN)]),
        # What a standing answer leads on to is a question in its own right.
        (
            [P1],
            [ACTS, gone(P1), *put(asks(3, ANN)), answered(asks(3, ANN)), *put(asks(4, ANN))],
            [asks(4, ANN)],
        ),
    ],
)
def test_what_is_given_time_of_its_own(
    before: list[Prompt], facts: list[Fact], waiting: list[Prompt]
) -> None:
    """Something new is asked."""
    assert deadline(before, facts, waiting) == FRESH


def test_no_deadline() -> None:
    """Without a time limit, and when nothing is asked any more."""
    assert deadline([P1], [ACTS], [P1], timeout_s=0, due=0) == 0
    assert deadline([P1], [answered(P1)], []) == 0
    # None stood: whoever is asked has the whole time.
    assert deadline([P1], [ACTS], [P1], due=0) == FRESH
