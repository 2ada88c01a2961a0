"""The random bot gives a legal answer to every prompt, from the prompt alone."""

from hypothesis import given
from hypothesis import strategies as st

from engine import (
    Answer,
    MatchState,
    Option,
    Prompt,
    PromptId,
    Seat,
    check_answer,
    empty_state,
)
from services.client.bots import GreedyBot, RandomBot

NOTHING_KNOWN = empty_state()


@st.composite
def selects(draw: st.DrawFn) -> Prompt:
    options = draw(st.integers(1, 8))
    low = draw(st.integers(0, options))
    high = draw(st.integers(low, options))
    ids = tuple(Option(f"o{number}") for number in range(options))
    return Prompt(id=PromptId("p1"), seat=Seat(1), kind="k", low=low, high=high, options=ids)


@st.composite
def numbers(draw: st.DrawFn) -> Prompt:
    low = draw(st.integers(-5, 5))
    high = draw(st.integers(low, low + 9))
    return Prompt(id=PromptId("p1"), seat=Seat(1), kind="k", form="number", low=low, high=high)


@st.composite
def allocations(draw: st.DrawFn) -> Prompt:
    limits = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=5)))
    high = draw(st.integers(0, sum(limits)))
    low = draw(st.integers(0, high))
    ids = tuple(Option(f"o{number}") for number in range(len(limits)))
    return Prompt(
        id=PromptId("p1"),
        seat=Seat(1),
        kind="k",
        form="allocate",
        low=low,
        high=high,
        options=ids,
        limits=limits,
    )


@given(st.one_of(selects(), numbers(), allocations()), st.text(max_size=8))
def test_every_answer_of_the_random_bot_is_legal(prompt: Prompt, seed: str) -> None:
    assert check_answer(prompt, RandomBot(seed).answer(prompt, NOTHING_KNOWN)) is None


@given(st.lists(selects(), min_size=1, max_size=5))
def test_one_seed_gives_one_row_of_answers(prompts: list[Prompt]) -> None:
    first, second = RandomBot("seed"), RandomBot("seed")
    for prompt in prompts:
        assert first.answer(prompt, NOTHING_KNOWN) == second.answer(prompt, NOTHING_KNOWN)


class _Advice:
    def advise(self, prompt: Prompt, state: MatchState) -> Answer | None:
        return Answer(number=7) if prompt.kind == "known" else None

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        return None


def test_a_greedy_bot_follows_its_advice_and_falls_back_on_chance() -> None:
    bot = GreedyBot(_Advice(), "seed")
    known = Prompt(id=PromptId("p1"), seat=Seat(1), kind="known", form="number", low=0, high=9)
    other = Prompt(id=PromptId("p2"), seat=Seat(1), kind="other", form="number", low=3, high=3)
    assert bot.answer(known, NOTHING_KNOWN) == Answer(number=7)
    assert bot.answer(other, NOTHING_KNOWN) == Answer(number=3)
