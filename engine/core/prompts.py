"""Questions to players, their answers, and whether an answer is legal.

A prompt carries every legal answer, so a client needs no rules code.
"""

from __future__ import annotations

from typing import Literal, NewType

import msgspec

from engine.core.refusals import Refusal
from engine.core.visibility import Seat

PromptId = NewType("PromptId", str)
"""p1, p2, …, counted per match."""

Form = Literal["select", "number", "allocate"]


class Option(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that may be picked. The subject ("card:wings", "die:3:smash", "seat:2") is for text
    look-up.
    """

    id: str
    subject: str = ""


class Answer(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="answer", tag_field="type"
):
    """select: picks (order kept, no repeats); number: number; allocate: amounts in the order of the
    options.
    """

    picks: tuple[str, ...] = ()
    number: int | None = None
    amounts: tuple[int, ...] = ()


PASS = Answer()


class Prompt(msgspec.Struct, frozen=True, gc=False, tag="prompt", tag_field="type"):
    """A question to one seat.

    select: `low` to `high` different options; number: a whole number from `low` to `high`;
    allocate: distribute `low` to `high` over the options, each at most its limit. `default` is
    always legal and stands in when time is over. `concealed` is set in a view whose viewer may not
    see what is asked (options are then left out).
    """

    # No omit_defaults: see GameState.

    id: PromptId
    seat: Seat
    kind: str
    form: Form = "select"
    low: int = 0
    high: int = 1
    options: tuple[Option, ...] = ()
    limits: tuple[int, ...] = ()
    default: Answer = PASS
    cause: str = ""
    concealed: bool = False


class StandingAnswer(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    tag="standing_answer",
    tag_field="type",
):
    """A seat wants all its prompts of a kind answered so, unasked.

    below: only while the game's measure for such prompts (energy, hearts, …) is below it; 0:
    always. Where the answer is not legal the seat is asked.
    """

    seat: Seat
    kind: str
    answer: Answer
    below: int = 0


class SeatActions(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="seat_actions", tag_field="type"
):
    """What a seat may do whenever the match waits: at least one action."""

    seat: Seat
    actions: tuple[Option, ...]


def check_answer(prompt: Prompt, answer: Answer) -> Refusal | None:
    """None when the answer is legal; else the refusal (ILLEGAL_ANSWER) that says what would be."""
    if prompt.form == "select":
        return _check_select(prompt, answer)
    if prompt.form == "number":
        return _check_number(prompt, answer)
    return _check_allocate(prompt, answer)


def _illegal(field: str, detail: str, detail_zh: str, legal: tuple[str, ...] = ()) -> Refusal:
    return Refusal("ILLEGAL_ANSWER", field, detail=detail, detail_zh=detail_zh, legal=legal)


def _check_select(prompt: Prompt, answer: Answer) -> Refusal | None:
    picks = answer.picks
    if answer.number is not None or answer.amounts:
        return _illegal("answer.picks", "options are to be picked", "应选择选项", _ids(prompt))
    if not prompt.low <= len(picks) <= prompt.high:
        wanted = f"pick {prompt.low} to {prompt.high} options"
        wanted_zh = f"须选择 {prompt.low} 到 {prompt.high} 项"
        return _illegal("answer.picks", wanted, wanted_zh, _ids(prompt))
    if picks:
        legal = _ids(prompt)
        for pick in picks:
            if pick not in legal:
                unknown = "an option is picked that is not offered"
                return _illegal("answer.picks", unknown, "选择了未提供的选项", legal)
        if len(picks) > 1 and len(frozenset(picks)) != len(picks):
            return _illegal("answer.picks", "an option is picked twice", "同一选项选了两次", legal)
    return None


def _ids(prompt: Prompt) -> tuple[str, ...]:
    return tuple([option.id for option in prompt.options])


def _check_number(prompt: Prompt, answer: Answer) -> Refusal | None:
    if answer.picks or answer.amounts or answer.number is None:
        return _illegal("answer.number", "a number is wanted", "须给出一个数")
    if not prompt.low <= answer.number <= prompt.high:
        wanted = f"a number from {prompt.low} to {prompt.high} is wanted"
        return _illegal("answer.number", wanted, f"须给出 {prompt.low} 到 {prompt.high} 的一个数")
    return None


def _check_allocate(prompt: Prompt, answer: Answer) -> Refusal | None:
    legal = _ids(prompt)
    if answer.picks or answer.number is not None:
        return _illegal("answer.amounts", "amounts are wanted", "须给出数量", legal)
    if len(answer.amounts) != len(prompt.options):
        wanted = "one amount for each option is wanted"
        return _illegal("answer.amounts", wanted, "每个选项须给出一个数量", legal)
    for amount, limit in zip(answer.amounts, prompt.limits, strict=True):
        if not 0 <= amount <= limit:
            outside = "an amount is below 0 or over its limit"
            return _illegal("answer.amounts", outside, "数量小于 0 或超过上限", legal)
    if not prompt.low <= sum(answer.amounts) <= prompt.high:
        wanted = f"distribute {prompt.low} to {prompt.high}"
        return _illegal("answer.amounts", wanted, f"须分配 {prompt.low} 到 {prompt.high}", legal)
    return None
