"""Actions at any time: whoever is asked, with the open questions put anew where they changed."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    ActionsOffered,
    ActionTaken,
    Answer,
    Answered,
    AnyGame,
    ChanceDrawn,
    Fact,
    Option,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
    RebuildMismatch,
    Refusal,
    Seat,
    SeatActions,
    Session,
    decode_state,
    derive_seed,
    encode_state,
    fold,
    redact,
)
from engine.core.session import ACTIONS_PER_TURN_MAX
from tests.engine.acting import Acting
from tests.engine.coffers import COFFERS, CoffersState, CoinsSpent, ShieldRaised
from tests.engine.playing import random_answer

GAME = cast("AnyGame", COFFERS)
SEED = derive_seed(b"master", "k1", "coffers")
ANN, BEN, CID = Seat(1), Seat(2), Seat(3)
PURSES = {ANN: "use:1", BEN: "use:4", CID: "use:7"}
WHISTLES = {ANN: "use:2", BEN: "use:5", CID: "use:8"}
YES = Answer(picks=("yes",))


class Play(Acting):
    """A match of Coffers in play."""

    def __init__(self, *, seats: int = 3, revision: int = 3) -> None:
        super().__init__(GAME, SEED, seats=seats, revision=revision)

    def answer_all(self, answer: Answer) -> None:
        for prompt in self.session.waiting:
            self.answer(prompt.seat, answer)

    def chest(self, seat: Seat) -> tuple[int, int]:
        chest = cast("CoffersState", self.session.state.table).chests[seat - 1]
        return chest.coins, chest.shields


def tags(facts: tuple[Fact, ...]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def test_what_a_seat_may_do_is_said_once_and_seen_by_all() -> None:
    play = Play()
    offered = [fact for fact in play.facts if isinstance(fact, ActionsOffered)]
    both = (Option("use:4", "use:purse"), Option("use:5", "use:whistle"))
    assert [fact.seat for fact in offered] == [ANN, BEN, CID]
    assert play.session.actions[1] == SeatActions(BEN, both)
    assert play.session.state.actions_of(BEN) == both
    assert play.session.state.actions_of(Seat(9)) == ()
    for viewer in (None, ANN, CID):
        view = fold(redact(fact, viewer) for fact in play.facts)
        assert view.actions == play.session.actions
        assert decode_state(encode_state(view)) == view


def test_a_seat_that_is_not_asked_acts_and_the_question_stays_as_it_was() -> None:
    play = Play()
    before = play.asked()
    facts = play.act(BEN, PURSES[BEN])
    assert facts == (ActionTaken(BEN, "use:4"), CoinsSpent(BEN, 1), ShieldRaised(BEN))
    assert play.asked() == before == [("p1", 1, "spend")]
    assert play.chest(BEN) == (2, 1)
    play.answer(ANN, Answer(number=3))
    play.check()


def test_a_question_that_has_changed_is_put_anew() -> None:
    play = Play()
    facts = play.act(ANN, PURSES[ANN])
    assert tags(facts[3:]) == ["PromptsWithdrawn", "Prompted"]
    assert cast("PromptsWithdrawn", facts[3]).prompt_ids == ("p1",)
    (prompt,) = play.session.waiting
    assert (prompt.id, prompt.kind, prompt.high) == ("p2", "spend", 2)
    with pytest.raises(Refusal, match="PROMPT_CLOSED"):
        play.session.answer("p1", ANN, Answer(number=0))
    play.check()
    play.answer(ANN, Answer(number=2))
    assert play.chest(ANN) == (0, 1)
    play.check()


def test_a_question_that_has_no_reason_any_more_is_not_put() -> None:
    play = Play()
    play.act(ANN, PURSES[ANN])
    facts = play.act(ANN, PURSES[ANN])
    assert tags(facts[3:]) == ["PromptsWithdrawn", *["Prompted"] * 3]
    assert {kind for _, _, kind in play.asked()} == {"vote"}
    play.check()


def test_open_answers_of_others_are_kept() -> None:
    play = Play()
    play.answer(ANN, Answer(number=0))
    play.answer(BEN, YES)
    before = play.asked()
    assert tags(play.act(CID, PURSES[CID])) == ["ActionTaken", "CoinsSpent", "ShieldRaised"]
    play.act(BEN, PURSES[BEN])
    assert play.asked() == before
    play.check()
    play.answer(ANN, YES)
    play.answer(CID, YES)
    assert {kind for _, _, kind in play.asked()} == {"hide"}
    play.check()


def test_secret_questions_are_always_put_anew() -> None:
    """Else everybody would learn from a question that stays that it has not changed."""
    play = Play()
    play.answer(ANN, Answer(number=0))
    play.answer_all(YES)
    play.answer(BEN, Answer(number=1))
    assert len(play.session.waiting) == 2
    facts = play.act(CID, WHISTLES[CID])
    assert tags(facts) == ["ActionTaken", "PromptsWithdrawn", *["PromptedInSecret"] * 3]
    assert [seat for _, seat, _ in play.asked()] == [1, 2, 3]
    play.check()
    play.answer_all(Answer(number=0))
    play.check()


def test_several_actions_at_several_questions_of_a_turn() -> None:
    play = Play()
    play.act(BEN, PURSES[BEN])
    play.act(ANN, PURSES[ANN])
    play.act(BEN, PURSES[BEN])
    play.check()
    play.answer(ANN, Answer(number=1))
    play.act(CID, WHISTLES[CID])
    play.answer(ANN, YES)
    play.act(CID, PURSES[CID])
    play.check()
    play.answer_all(YES)
    play.act(CID, PURSES[CID])
    play.check()
    assert [play.chest(each) for each in (ANN, BEN, CID)] == [(1, 1), (1, 2), (1, 2)]


def test_what_has_passed_is_not_decided_again() -> None:
    """The bowl found a coin in the chest; that it is spent at the next question is too late."""
    play = Play()
    play.answer(ANN, Answer(number=2))
    play.answer_all(YES)
    assert {kind for _, _, kind in play.asked()} == {"hide"}
    play.act(ANN, PURSES[ANN])
    assert play.chest(ANN) == (0, 1)
    play.check()
    play.act(BEN, PURSES[BEN])
    play.check()
    play.answer_all(Answer(number=0))
    play.answer_all(YES)
    assert play.chest(ANN) == (1, 1)
    play.act(BEN, PURSES[BEN])
    play.check()


def test_actions_before_and_after_what_passes() -> None:
    """In one turn: at the votes, so that the bowl is held out, and after that."""
    play = Play()
    play.answer(ANN, Answer(number=2))
    play.act(ANN, PURSES[ANN])
    play.act(CID, WHISTLES[CID])
    play.answer_all(YES)
    assert play.chest(ANN) == (1, 1)
    play.check()
    play.act(ANN, PURSES[ANN])
    play.act(CID, PURSES[CID])
    assert play.chest(ANN) == (0, 2)
    play.check()


def test_actions_of_a_turn_have_an_end() -> None:
    """Also where they cost nothing; the next turn has its own."""
    play = Play()
    for _ in range(ACTIONS_PER_TURN_MAX - 1):
        play.act(BEN, WHISTLES[BEN])
    facts = play.act(BEN, WHISTLES[BEN])
    assert facts[-1] == ActionsOffered(BEN, ())
    with pytest.raises(Refusal, match="ACTION_NOT_OFFERED"):
        play.session.take_action(BEN, WHISTLES[BEN])
    play.act(CID, WHISTLES[CID])
    play.check()
    play.answer(ANN, Answer(number=0))
    play.answer_all(YES)
    play.answer_all(Answer(number=0))
    assert play.session.state.actions_of(BEN)
    play.check()


def test_a_standing_answer_goes_on_after_an_action() -> None:
    play = Play()
    play.facts += play.session.set_standing_answer(ANN, "vote", YES).facts
    play.act(ANN, PURSES[ANN])
    facts = play.act(ANN, PURSES[ANN])
    assert Answered in {type(fact) for fact in facts}
    assert [seat for _, seat, _ in play.asked()] == [2, 3]
    play.check()


def test_what_is_not_offered_is_refused_and_changes_nothing() -> None:
    play = Play()
    for _ in range(3):
        play.act(BEN, PURSES[BEN])
    before = encode_state(play.session.state)
    for seat, action in (
        (BEN, PURSES[BEN]),
        (BEN, PURSES[CID]),
        (BEN, ""),
        (BEN, "use:99"),
        (Seat(7), "use:1"),
    ):
        with pytest.raises(Refusal, match="ACTION_NOT_OFFERED") as refusal:
            play.session.take_action(seat, action)
        assert refusal.value.legal == (("use:5",) if seat == BEN else ())
    assert encode_state(play.session.state) == before
    play.check()


def test_actions_need_a_running_match() -> None:
    session, _ = Session.create(GAME, match_id="m1", host="host", seats=2, seed=SEED)
    with pytest.raises(Refusal, match="MATCH_NOT_STARTED"):
        session.take_action(ANN, "use:1")
    play = Play()
    play.act(BEN, PURSES[BEN])
    play.facts += play.session.abandon().facts
    assert play.session.state.actions == ()
    with pytest.raises(Refusal, match="MATCH_FINISHED"):
        play.session.take_action(BEN, "use:5")
    play.check()


@pytest.mark.parametrize(
    ("revision", "cards"), [(1, []), (2, ["purse"]), (3, ["purse", "whistle"])]
)
def test_a_match_keeps_the_actions_of_its_revision(revision: int, cards: list[str]) -> None:
    play = Play(revision=revision)
    offered = [each.subject for each in play.session.state.actions_of(BEN)]
    assert offered == [f"use:{card}" for card in cards]
    play.answer(ANN, Answer(number=0))
    play.check()


def forged(change: str) -> list[Fact]:
    """A log in which an action is not what the rules would have made of it."""
    play = Play()
    play.act(ANN, PURSES[ANN])
    facts = play.facts
    at = next(i for i, fact in enumerate(facts) if isinstance(fact, ActionTaken))
    match change:
        case "another seat":
            facts[at] = ActionTaken(BEN, "use:1")
        case "not offered":
            facts[at] = ActionTaken(ANN, "use:7")
        case "nothing came of it":
            del facts[at + 1 : at + 3]
        case "not said":
            del facts[at]
        case "not withdrawn":
            del facts[at + 3]
        case "withdrawn for nothing":
            del facts[at : at + 3]
        case "not put anew":
            del facts[at + 4 :]
        case "never offered":
            facts = [each for each in facts if not isinstance(each, ActionsOffered)]
    return facts


@pytest.mark.parametrize(
    "change",
    [
        "another seat",
        "not offered",
        "nothing came of it",
        "not said",
        "not withdrawn",
        "withdrawn for nothing",
        "not put anew",
        "never offered",
    ],
)
def test_a_log_that_says_otherwise_is_found(change: str) -> None:
    with pytest.raises(RebuildMismatch):
        Session.verify_rules(forged(change), game=GAME)


def test_a_chance_is_drawn_once() -> None:
    """Running the turn again draws nothing again, and an action moves no later draw."""
    quiet, busy = Play(), Play()
    for _ in range(3):
        for play in (quiet, busy):
            if play.session.waiting[0].kind == "spend":
                play.answer(ANN, Answer(number=0))
        busy.act(CID, WHISTLES[CID])
        for play in (quiet, busy):
            play.answer_all(YES)
        busy.act(CID, WHISTLES[CID])
        for play in (quiet, busy):
            play.answer_all(Answer(number=0))
    draws = [
        [fact for fact in play.facts if isinstance(fact, ChanceDrawn)] for play in (quiet, busy)
    ]
    assert draws[0] == draws[1]
    assert len(draws[0]) == 3
    busy.check()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_play_with_actions_can_be_rebuilt_at_every_step(seed: int) -> None:
    """And what was rebuilt goes on as the live session does."""
    dice = Random(seed)
    play = Play(seats=dice.randint(2, 5))
    while play.session.waiting:
        play.check()
        if dice.random() < 0.1:
            play.session = Session.rebuild(play.facts, seed=SEED, game=GAME)
        if play.session.actions and dice.random() < 0.4:
            chosen = dice.choice(play.session.actions)
            play.act(chosen.seat, dice.choice(chosen.actions).id)
        else:
            prompt = dice.choice(play.session.waiting)
            play.answer(prompt.seat, random_answer(prompt, dice))
        _check_questions(play)
    assert play.session.state.status == "finished"
    play.check()


def _check_questions(play: Play) -> None:
    """Every question is closed once, by an answer or by being withdrawn; no id comes twice."""
    put: list[str] = []
    closed: list[str] = []
    for fact in play.facts:
        if isinstance(fact, Prompted):
            put.append(fact.prompt.id)
        elif isinstance(fact, PromptedInSecret):
            put.append(fact.prompt_id)
        elif isinstance(fact, PromptsWithdrawn):
            closed += fact.prompt_ids
        elif isinstance(fact, Answered):
            closed.append(fact.prompt_id)
    assert len(set(put)) == len(put)
    assert len(set(closed)) == len(closed)
    still = {prompt.id for prompt in play.session.waiting}
    assert set(put) - set(closed) == still
