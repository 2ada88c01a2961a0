"""What may be done at any time, in King of Tokyo, with all cards around it.

Random play seldom brings the one card that acts at any time together with the others, so these
matches begin in positions where several seats have it, or copy it. DICELEDGER_MATCHES=n plays more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from random import Random

import msgspec
from hypothesis import given

from engine import (
    ActionTaken,
    AnyGame,
    ChanceDrawn,
    ChanceDrawnInSecret,
    Fact,
    MatchStarted,
    PromptsWithdrawn,
    Seat,
    Session,
    Step,
    derive_seed,
    empty_state,
    evolve,
    fold,
    redact,
)
from engine.core.bench import Bench
from engine.games.kings.tokyo.position import CardAt, MonsterAt, TableAt
from tests.engine.playing import eager_answer, option_sets, random_answer
from tests.laws.test_random_play import GAME, check_questions, check_table, matches, seeds

SEED = derive_seed(b"tests", "k", "actions")
QUESTIONS_MAX = 250
_CHANCE = (ChanceDrawn, ChanceDrawnInSecret)


def acting_cards(game: AnyGame) -> list[str]:
    """The keep cards that let their owner act at any time."""
    return [
        each.id
        for each in game.cards.values()
        if any(hook.kind == "anytime" for hook in each.hooks)
    ]


class Laid:
    """A match that began in a position with many cards, some of which act at any time."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        seats = self.dice.randint(2, 6)
        options = option_sets(GAME, self.dice) if seed % 3 else {}
        facts = _seated(seats, options)
        players = _players(seats, self.dice)
        created = {each.id: each.value for each in fold(facts).options}
        assert GAME.positions is not None
        facts += GAME.positions.lay(players, TableAt(), turn=Seat(1), options=created)
        self.laid = len(facts)
        self.begin = fold(facts)
        draws = Random(seed + 1)
        self.session, step = Session.lay(
            facts,
            seed=SEED,
            game=GAME,
            chance=lambda _, __, bound, count: tuple(draws.randrange(bound) for _ in range(count)),
        )
        self.facts = [*facts, *step.facts]
        self.eagerness = self.dice.choice((0.1, 0.5, 0.9))

    def next(self) -> Callable[[Session], Step]:
        """Act or answer."""
        if self.session.actions and self.dice.random() < self.eagerness:
            seat, actions = msgspec.structs.astuple(self.dice.choice(self.session.actions))
            action = self.dice.choice(actions).id
            return lambda session: session.take_action(seat, action)
        prompt = self.dice.choice(self.session.waiting)
        policy = eager_answer if self.dice.random() < 0.3 else random_answer
        answer = policy(prompt, self.dice)
        return lambda session: session.answer(prompt.id, prompt.seat, answer)

    def go_on(self) -> None:
        """Do it."""
        self.facts += self.next()(self.session).facts


def _seated(seats: int, options: dict[str, str]) -> list[Fact]:
    session, step = Session.create(
        GAME, match_id="laid", host="host", seats=seats, options=options, seed=SEED
    )
    facts = list(step.facts)
    for seat in range(1, seats + 1):
        facts += session.join(f"p{seat}", f"Kaiju {seat}", b"entropy" * 3).facts
    return [*facts, MatchStarted()]


def _players(seats: int, dice: Random) -> list[MonsterAt]:
    acting = acting_cards(GAME)
    others = [
        each.id
        for each in GAME.cards.values()
        if each.kind == "keep" and each.id not in (*acting, "mimic")
    ]
    dice.shuffle(others)
    players: list[MonsterAt] = []
    for index in range(seats):
        cards = [CardAt(card=others.pop()) for _ in range(dice.randint(0, 3))]
        if index == 0:
            cards += [CardAt(card=each) for each in acting]
        elif index == 1:
            cards.append(CardAt(card="mimic", copies=f"{acting[0]} of A"))
        dice.shuffle(cards)
        hearts, energy = dice.randint(3, 9), dice.randint(2, 12)
        players.append(MonsterAt(hearts=hearts, energy=energy, cards=tuple(cards)))
    return players


def test_there_is_such_a_card() -> None:
    assert acting_cards(GAME)


@matches
@given(seeds)
def test_acting_at_any_time_never_breaks_a_match(seed: int) -> None:
    """Legal questions, sound numbers, no card lost; and the fold is the live state."""
    laid = Laid(seed)
    for _ in range(QUESTIONS_MAX):
        if not laid.session.waiting:
            break
        check_questions(laid.session)
        check_table(laid.session)
        bench = Bench(GAME, laid.session.state, lambda *_: ())
        assert bench.table.actions() == laid.session.actions
        laid.go_on()
        assert fold(laid.facts) == laid.session.state


@matches
@given(seeds)
def test_a_rebuilt_match_equals_the_live_one_and_goes_on_like_it(seed: int) -> None:
    """From the turn's beginning at every question, from the match's now and then."""
    laid = Laid(seed)
    checkpoint, start, seen = laid.begin, laid.laid, laid.laid
    for number in range(QUESTIONS_MAX):
        for index in range(seen, len(laid.facts)):
            if isinstance(laid.facts[index], GAME.checkpoint):
                checkpoint, start = fold(laid.facts[start:index], checkpoint), index
        seen = len(laid.facts)
        again = Session.resume(checkpoint, laid.facts[start:], seed=SEED, game=GAME)
        assert again.state == laid.session.state
        assert again.waiting == laid.session.waiting
        if not laid.session.waiting:
            break
        if number % 25 == 0:
            whole = Session.resume(laid.begin, laid.facts[laid.laid :], seed=SEED, game=GAME)
            assert whole.state == again.state
        command = laid.next()
        facts = command(laid.session).facts
        laid.facts += facts
        # What is drawn is scripted in one and follows from the seed in the other.
        assert _up_to_chance(command(again).facts) == _up_to_chance(facts)


def _up_to_chance(facts: tuple[Fact, ...]) -> list[Fact]:
    return list(takewhile(lambda fact: not isinstance(fact, _CHANCE), facts))


@matches
@given(seeds)
def test_views_agree_on_what_may_be_done(seed: int) -> None:
    """Every viewer sees the same actions and, but for secret questions, the same open ones."""
    laid = Laid(seed)
    views = {viewer: empty_state() for viewer in (None, Seat(1), Seat(2))}
    seen = 0
    for _ in range(QUESTIONS_MAX):
        if not laid.session.waiting:
            break
        for viewer, view in views.items():
            for fact in laid.facts[seen:]:
                view = evolve(view, redact(fact, viewer))
            views[viewer] = view
            assert view.actions == laid.session.actions
            assert [each.id for each in view.prompts] == [each.id for each in laid.session.waiting]
        seen = len(laid.facts)
        laid.go_on()


def test_these_matches_do_act() -> None:
    """The laws above are not idle: questions are put anew, and vanish."""
    counts: Counter[str] = Counter()
    for seed in range(12):
        laid = Laid(seed)
        for _ in range(QUESTIONS_MAX):
            if not laid.session.waiting:
                break
            laid.go_on()
        counts.update(type(fact).__name__ for fact in laid.facts)
    assert counts[ActionTaken.__name__] > 50
    assert counts[PromptsWithdrawn.__name__] > 10
