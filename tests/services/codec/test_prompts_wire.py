"""Questions and answers on the wire: complete, in words, and back again."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diceledger.match.v1 import match_pb2
from engine import Answer, AnyGame, Form, Option, Prompt, PromptId, Refusal, Seat
from services.common.prompts_wire import (
    answer_from_wire,
    answer_to_wire,
    game_to_wire,
    prompt_from_wire,
    prompt_to_wire,
    wire_field,
)
from tests.engine.high_roll import HIGH_ROLL
from tests.services.codec.makers import NUMBERS

GAME = cast("AnyGame", HIGH_ROLL)
IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
ANSWERS = st.one_of(
    st.lists(IDS, max_size=4).map(lambda picks: Answer(picks=tuple(picks))),
    NUMBERS.map(lambda number: Answer(number=number)),
    st.lists(NUMBERS, min_size=1, max_size=4).map(lambda amounts: Answer(amounts=tuple(amounts))),
)
SELECT = Prompt(
    id=PromptId("p7"),
    seat=Seat(2),
    kind="yield_tokyo",
    low=1,
    high=1,
    options=(Option("yes"), Option("w", "card:wings")),
    default=Answer(picks=("yes",)),
    cause="claws",
)
NUMBER = Prompt(
    id=PromptId("p8"),
    seat=Seat(1),
    kind="how_many",
    form="number",
    low=-2,
    high=5,
    default=Answer(number=0),
)
ALLOCATE = Prompt(
    id=PromptId("p9"),
    seat=Seat(3),
    kind="share",
    form="allocate",
    low=2,
    high=2,
    options=(Option("a"), Option("b")),
    limits=(2, 0),
    default=Answer(amounts=(2, 0)),
)


@given(ANSWERS)
def test_an_answer_comes_back_as_it_went(answer: Answer) -> None:
    wire = match_pb2.Answer.FromString(answer_to_wire(answer).SerializeToString())
    assert answer_from_wire(wire) == answer


@pytest.mark.parametrize("form", ["select", "allocate"])
def test_an_empty_answer_keeps_its_form(form: Form) -> None:
    wire = answer_to_wire(Answer(), form)
    assert wire.WhichOneof("form") == {"select": "selection", "allocate": "allocation"}[form]
    assert answer_from_wire(wire) == Answer()


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (Answer(picks=("a",)), "number"),
        (Answer(number=0), "select"),
        (Answer(), "number"),
        (Answer(picks=("a",), number=1), None),
        (Answer(picks=("a",), amounts=(1,)), "select"),
    ],
)
def test_an_answer_of_another_form_is_not_sent(answer: Answer, form: Form | None) -> None:
    with pytest.raises(ValueError):
        answer_to_wire(answer, form)


def test_an_answer_without_form_is_refused_by_name() -> None:
    with pytest.raises(Refusal) as caught:
        answer_from_wire(match_pb2.Answer())
    assert (caught.value.reason, caught.value.field) == ("ILLEGAL_ANSWER", "answer")


def test_a_pick_without_id_is_refused_by_its_place() -> None:
    wire = match_pb2.Answer(selection=match_pb2.Selection(options=["a", ""]))
    with pytest.raises(Refusal) as caught:
        answer_from_wire(wire)
    assert caught.value.field == "answer.selection.options[1]"


def test_fields_of_refusals_are_named_as_in_the_request() -> None:
    assert wire_field("answer.picks") == "answer.selection.options"
    assert wire_field("answer.amounts") == "answer.allocation.amounts"
    assert wire_field("seats") == "seats"


@pytest.mark.parametrize("prompt", [SELECT, NUMBER, ALLOCATE])
def test_a_prompt_comes_back_as_it_went(prompt: Prompt) -> None:
    wire = prompt_to_wire(GAME, prompt)
    assert prompt_from_wire(match_pb2.Prompt.FromString(wire.SerializeToString())) == prompt


def test_a_prompt_says_all_that_is_needed_to_answer_it() -> None:
    wire = prompt_to_wire(GAME, ALLOCATE, deadline_ms=99)
    assert (wire.form, wire.low, wire.high) == (match_pb2.PROMPT_FORM_ALLOCATE, 2, 2)
    assert [(each.option, each.limit) for each in wire.options] == [("a", 2), ("b", 0)]
    assert list(wire.default_answer.allocation.amounts) == [2, 0]
    assert (wire.deadline_ms, wire.title) == (99, "share")


def test_a_prompt_speaks_the_language_of_the_asked() -> None:
    yes = [prompt_to_wire(GAME, SELECT, locale).options[0].label for locale in ("en", "zh")]
    assert yes == ["yes", "是"]


def test_a_concealed_prompt_is_never_sent() -> None:
    concealed = Prompt(id=PromptId("p1"), seat=Seat(1), kind="secret", concealed=True)
    with pytest.raises(ValueError):
        prompt_to_wire(GAME, concealed)


def test_a_form_of_the_future_is_not_guessed() -> None:
    with pytest.raises(ValueError):
        prompt_from_wire(match_pb2.Prompt(prompt_id="p1"))


def test_a_game_tells_its_options() -> None:
    info = game_to_wire(GAME, "zh")
    assert (info.game, info.seats_low, info.seats_high) == (
        GAME.id,
        GAME.seats_low,
        GAME.seats_high,
    )
    assert [each.option for each in info.options] == [each.id for each in GAME.options]
    assert [each.summary for each in info.options] == [each.summary_zh for each in GAME.options]
    assert list(info.presets) == sorted(GAME.presets)
