"""What tests need of tiny games whose seats act at any time: their cards, and matches in play."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from engine import Answer, AnyGame, Card, Deck, Fact, Me, Seat, Session, fold

M = TypeVar("M", bound=Me[Any])


def add_card(deck: Deck[M], card_id: str, name: str, name_zh: str) -> Card[M]:
    """A card that is kept; what it does is hung onto it."""
    return deck.add(
        Card(
            id=card_id,
            name=name,
            name_zh=name_zh,
            kind="keep",
            cost=0,
            copies=5,
            text=name,
            text_zh=name_zh,
            sources=("test",),
        )
    )


class Acting:
    """A match in play, with all of its facts."""

    def __init__(self, game: AnyGame, seed: bytes, *, seats: int, revision: int) -> None:
        self._game, self._seed = game, seed
        step = Session.create(game, match_id="m1", host="host", seats=seats, seed=seed)[1]
        facts: list[Fact] = [msgspec.structs.replace(step.facts[0], revision=revision)]
        self.session = Session.rebuild(facts, seed=seed, game=game)
        for each in range(seats):
            facts += self.session.join(f"player{each}", f"Name{each}").facts
        self.facts = [*facts, *self.session.start().facts]

    def act(self, seat: Seat, action: str) -> tuple[Fact, ...]:
        step = self.session.take_action(seat, action)
        assert step.waiting == self.session.waiting
        self.facts += step.facts
        return step.facts

    def answer(self, seat: Seat, answer: Answer) -> tuple[Fact, ...]:
        prompt = next(each for each in self.session.waiting if each.seat == seat)
        step = self.session.answer(prompt.id, seat, answer)
        self.facts += step.facts
        return step.facts

    def asked(self) -> list[tuple[str, int, str]]:
        return [(each.id, each.seat, each.kind) for each in self.session.waiting]

    def check(self) -> None:
        """The log alone tells the same story, from its start and from the turn's."""
        state = self.session.state
        assert fold(self.facts) == state
        assert self.session.facts == len(self.facts)
        again = Session.rebuild(self.facts, seed=self._seed, game=self._game)
        assert (again.state, again.waiting) == (state, self.session.waiting)
        Session.verify_rules(self.facts, game=self._game)
