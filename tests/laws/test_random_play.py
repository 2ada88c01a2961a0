"""Laws that hold in every match, whatever is answered. DICELEDGER_MATCHES=n plays more of them."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from random import Random
from typing import cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import (
    ActionTaken,
    Answer,
    Answered,
    ChanceDrawn,
    Fact,
    Hidden,
    MatchState,
    Prompted,
    PromptedInSecret,
    Seat,
    Session,
    check_answer,
    decode_state,
    describe_fact,
    describe_prompt,
    empty_state,
    encode_state,
    evolve,
    find_game,
    fold,
    has_hidden,
    redact,
    state_hash,
)
from engine.core.bench import Bench
from engine.games.kings.facts import DeckPeeked
from engine.games.kings.proposals import HEARTS_MAX
from engine.games.kings.state import OUTSIDE, KingsState
from tests.engine.playing import Match, eager_answer, option_sets, random_answer

GAME = find_game("king_of_tokyo")
MATCHES = int(os.environ.get("DICELEDGER_MATCHES", "25"))

matches = settings(
    max_examples=MATCHES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 2**32 - 1)


def new_match(seed: int) -> Match:
    random = Random(seed)
    options = option_sets(GAME, random) if seed % 3 else None
    return Match(seats=random.randint(2, 6), seed=seed, options=options)


def finished(seed: int) -> Match:
    match = new_match(seed)
    match.play(eager_answer if seed % 2 else random_answer)
    return match


def table_of(state: MatchState) -> KingsState:
    return cast("KingsState", state.table)


@matches
@given(seeds)
def test_random_legal_answers_never_crash_or_loop(seed: int) -> None:
    """At every question: a legal default, enough options, and sound numbers on the table."""
    match = new_match(seed)
    policy = eager_answer if seed % 2 else random_answer
    while match.session.waiting:
        check_questions(match.session)
        check_table(match.session)
        match.answer_one(policy)
    assert match.session.state.status == "finished"


def check_questions(session: Session) -> None:
    """The default is legal, and there are as many options as may be chosen."""
    for prompt in session.waiting:
        assert check_answer(prompt, prompt.default) is None, prompt
        assert prompt.form != "select" or len(prompt.options) >= prompt.high, prompt


def check_table(session: Session) -> None:
    """One monster at a place, numbers within their bounds, every card of the deck somewhere."""
    state = table_of(session.state)
    bench = Bench(GAME, session.state, lambda *_: ())
    places = Counter(each.place for each in state.monsters if each.place != OUTSIDE)
    assert all(count == 1 for count in places.values()), places
    for monster in state.monsters:
        assert monster.energy >= 0
        assert monster.points >= 0
        # Hearts above the maximum are cut only after the loss that a bigger body costs.
        loses_two = bench.table.options["even_bigger_loss"] == "lose_two"
        most = HEARTS_MAX.high if loses_two else bench.table.stat(HEARTS_MAX, monster.seat)
        assert 0 <= monster.hearts <= most
        assert min(monster.poison, monster.shrink) >= 0
        assert monster.alive or not (monster.energy or state.held_by(monster.seat))
    held = Counter(each.card for each in state.holdings)
    on_sale = Counter(slot.card for slot in state.market if slot.card)
    total = held + on_sale + Counter(state.deck) + Counter(state.discard)
    assert total == Counter(GAME.decks[0].ids())


@matches
@given(seeds)
def test_a_rebuilt_session_equals_the_live_one_at_every_question(seed: int) -> None:
    match = new_match(seed)
    policy = eager_answer if seed % 2 else random_answer
    checkpoint, start, seen = empty_state(), 0, 0
    while match.session.waiting:
        for index in range(seen, len(match.facts)):
            if isinstance(match.facts[index], GAME.checkpoint):
                checkpoint, start = fold(match.facts[start:index], checkpoint), index
        seen = len(match.facts)
        if start:
            again = Session.resume(checkpoint, match.facts[start:], seed=match.seed, game=GAME)
            assert again.state == match.session.state
            assert again.waiting == match.session.waiting
        match.answer_one(policy)
    whole = Session.rebuild(match.facts, seed=None)
    assert whole.state == match.session.state == fold(match.facts)
    Session.verify_rules(match.facts)


@matches
@given(seeds)
def test_every_view_folds_and_knows_no_more_than_it_may(seed: int) -> None:
    match = finished(seed)
    seats = len(table_of(match.session.state).monsters)
    for viewer in (None, *(Seat(each) for each in range(1, seats + 1))):
        view = empty_state()
        for fact in match.facts:
            shown = redact(fact, viewer)
            view = evolve(view, shown)
            if isinstance(fact, DeckPeeked):
                top = table_of(view).tops[fact.position].card
                assert isinstance(top, Hidden) == (viewer != fact.seat) or top == fact.card
        assert decode_state(encode_state(view)) == view
        assert table_of(view).monsters == table_of(match.session.state).monsters


@matches
@given(seeds)
def test_public_chance_never_depends_on_a_hidden_card(seed: int) -> None:
    """While somebody knows the top of the deck, draws below it must not be public."""
    state = empty_state()
    for fact in finished(seed).facts:
        if isinstance(fact, ChanceDrawn) and fact.domain == "power deck":
            assert not table_of(state).tops
        state = evolve(state, fact)


@matches
@given(seeds)
def test_facts_and_states_survive_their_encoding(seed: int) -> None:
    match = finished(seed)
    for fact in match.facts:
        for viewer in (None, Seat(1)) if has_hidden(type(fact)) else (None,):
            shown = redact(fact, viewer)
            assert msgspec.msgpack.decode(msgspec.msgpack.encode(shown), type=type(fact)) == shown
    state = match.session.state
    assert decode_state(encode_state(state)) == state
    assert state_hash(decode_state(encode_state(state))) == state_hash(state)


@matches
@given(seeds)
def test_everything_has_words_in_both_languages(seed: int) -> None:
    match = finished(seed)
    state = empty_state()
    for fact in match.facts:
        state = evolve(state, fact)
        for locale in ("en", "zh"):
            for viewer in (None, Seat(1)):
                describe_fact(state, redact(fact, viewer), locale)
            if isinstance(fact, Prompted | PromptedInSecret) and not isinstance(
                fact.prompt, Hidden
            ):
                text = describe_prompt(state, fact.prompt, locale)
                assert text.title.endswith(("?", "？", ")", "）")), (fact.prompt.kind, text.title)
                assert all(text.option_labels)


def digest(count: int) -> str:
    """Hashes of some finished matches, for comparison between processes."""
    return " ".join(state_hash(finished(seed).session.state).hex() for seed in range(count))


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_state_hashes_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    program = "from tests.laws.test_random_play import digest; print(digest(6))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest(6)


def test_the_engine_touches_neither_clock_nor_randomness_nor_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import random
    import time

    def forbidden(*_: object, **__: object) -> object:
        raise AssertionError("the engine asked the outside world")

    plans = [_recorded_answers(seed) for seed in range(4)]
    for module, names in (
        (time, ("time", "time_ns", "monotonic", "perf_counter", "sleep")),
        (random, ("random", "randint", "choice", "shuffle", "getrandbits")),
        (os, ("urandom", "getenv", "getpid", "stat", "listdir")),
        (builtins, ("open", "input")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, forbidden)
    for seed, answers in enumerate(plans):
        match = new_match(seed)
        for seat, said in answers:
            if isinstance(said, ActionTaken):
                match.session.take_action(seat, said.action)
            else:
                match.session.answer(said.prompt_id, seat, cast("Answer", said.answer))
        assert match.session.state.status == "finished"


def _recorded_answers(seed: int) -> list[tuple[Seat, Answered | ActionTaken]]:
    return [
        (fact.seat, fact)
        for fact in finished(seed).facts
        if isinstance(fact, Answered | ActionTaken)
    ]


@matches
@given(seeds)
def test_turns_are_numbered_and_belong_to_living_monsters(seed: int) -> None:
    facts: list[Fact] = finished(seed).facts
    turns = [fact for fact in facts if isinstance(fact, GAME.checkpoint)]
    numbers = [fact.turn for fact in turns]  # type: ignore[attr-defined]  # a checkpoint has one
    assert all(after == before + 1 for before, after in pairwise(numbers))
