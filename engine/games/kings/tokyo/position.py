"""Positions of King of Tokyo, written down as in the rule notes: hearts, energy, points, places,
cards with their tokens, what is for sale, the order of the deck.

Everything is laid with ordinary facts. Seats are A, B, C, … in turn order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

import msgspec

from engine.core.position import BadPosition, letter_of
from engine.core.state import GameState, Holding
from engine.core.visibility import NOBODY, Fact, Hidden, Seat
from engine.games.kings.faces import FACES
from engine.games.kings.facts import (
    CardBought,
    CardCopied,
    CardRevealed,
    EnergyGained,
    FirstPlayerChosen,
    HeartsGained,
    HeartsLost,
    MonsterEliminated,
    MonsterMoved,
    PointsGained,
    TokensPut,
)
from engine.games.kings.state import HEARTS_AT_START, MARKET_SIZE, OUTSIDE, KingsState, Monster
from engine.games.kings.tokyo.cards import BASE
from engine.games.kings.tokyo.facts import TokyoLaid
from engine.games.kings.tokyo.places import BAY_OPEN_FROM, TOKYO_BAY, TOKYO_CITY

_CAUSE: Final = "position"
_HEARTS_MAX: Final = 12
_NUMBER_MAX: Final = 999
_DIE: Final = "die"
_DECK: Final = "power deck"
_FIRST: Final = "first player"
_SHORT: Final = {"1": "one", "2": "two", "3": "three"}


class CardAt(msgspec.Struct, frozen=True, kw_only=True):
    """A keep card in front of a monster.

    tokens: what lies on it (None: as when just bought). copies: for a copying card, the model as
    "jets of B". paid: what its owner paid (None: the printed cost).
    """

    card: str
    tokens: int | None = None
    copies: str = ""
    paid: int | None = None


class MonsterAt(msgspec.Struct, frozen=True, kw_only=True):
    """One monster. place: outside, tokyo_city or tokyo_bay. out: eliminated."""

    hearts: int = HEARTS_AT_START
    energy: int = 0
    points: int = 0
    place: str = OUTSIDE
    poison: int = 0
    shrink: int = 0
    cards: tuple[CardAt, ...] = ()
    out: bool = False


class TableAt(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in the middle.

    market: cards for sale. deck: the cards on top, in the order in which they will come. deck_ends:
    there are no cards below those. discard: the discard pile.
    """

    market: tuple[str, ...] = ()
    deck: tuple[str, ...] = ()
    deck_ends: bool = False
    discard: tuple[str, ...] = ()


class TokyoPositions:
    """See engine.core.position.Positions."""

    player: type[msgspec.Struct] = MonsterAt
    table: type[msgspec.Struct] = TableAt
    scripts: Mapping[str, str] = {"roll": _DIE, "reveal": _DECK, "begins": _FIRST}
    at_setup: tuple[str, ...] = ("deck",)

    def lay(
        self,
        players: Sequence[msgspec.Struct],
        table: msgspec.Struct,
        *,
        turn: Seat,
        options: Mapping[str, str],
    ) -> tuple[Fact, ...]:
        """The facts that make the position. Raises BadPosition."""
        monsters = cast("Sequence[MonsterAt]", players)
        middle = cast("TableAt", table)
        _check_cards(monsters, middle)
        for seat, each in enumerate(monsters, 1):
            _check_monster(letter_of(Seat(seat)), each)
        _check_places(monsters)
        if monsters[turn - 1].out:
            raise BadPosition(("turn",), f"{letter_of(turn)} is out of the game")
        facts: list[Fact] = [TokyoLaid(len(monsters), HEARTS_AT_START, _deck_of(monsters, middle))]
        facts += _discards(middle)
        facts += _holdings(monsters, options)
        for seat, each in enumerate(monsters, 1):
            facts += _monster(Seat(seat), each)
        for slot, card in enumerate(middle.market):
            facts.append(CardRevealed(slot, card, slot + 1))
        facts.append(FirstPlayerChosen(turn))
        return tuple(facts)

    def prepared(self, table: msgspec.Struct) -> Mapping[str, Sequence[str]]:
        """The cards on top of the deck come as they are written."""
        return {_DECK: cast("TableAt", table).deck}

    def look(self, state: GameState) -> tuple[Sequence[MonsterAt], TableAt]:
        """The table as it would be written down now."""
        kings = cast("KingsState", state)
        monsters = [_look_at(kings, each) for each in kings.monsters]
        middle = TableAt(
            market=tuple([slot.card for slot in kings.market if slot.card]),
            deck=kings.deck,
            discard=kings.discard,
        )
        return monsters, middle

    def values(self, state: GameState, domain: str, words: Sequence[str]) -> tuple[int, ...]:
        """Faces as numbers, cards as places in the deck, seats as they sit."""
        kings = cast("KingsState", state)
        if domain == _DIE:
            return tuple([_face(index, word) for index, word in enumerate(words)])
        if domain == _FIRST:
            return tuple([_place(kings, index, word) for index, word in enumerate(words)])
        return _deck_values(kings, words)


# -- checks ----------------------------------------------------------------------------------------


def _check_number(path: tuple[str | int, ...], value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadPosition(path, f"{value} is not between {low} and {high}")


def _check_monster(letter: str, monster: MonsterAt) -> None:
    if monster.out:
        if monster != MonsterAt(out=True, hearts=monster.hearts):
            raise BadPosition((letter,), f"{letter} is out of the game and has nothing any more")
        return
    _check_number((letter, "hearts"), monster.hearts, 1, _HEARTS_MAX)
    for field in ("energy", "points", "poison", "shrink"):
        _check_number((letter, field), getattr(monster, field), 0, _NUMBER_MAX)
    for index, card in enumerate(monster.cards):
        path = (letter, "cards", index)
        if BASE.cards[card.card].kind != "keep":
            raise BadPosition(path, f"{card.card} is not a card that is kept")
        _check_number(path, card.tokens or 0, 0, _NUMBER_MAX)
        _check_number(path, card.paid or 0, 0, _NUMBER_MAX)


def _check_places(monsters: Sequence[MonsterAt]) -> None:
    places = (OUTSIDE, TOKYO_CITY, TOKYO_BAY)
    taken: dict[str, str] = {}
    living = sum([not each.out for each in monsters])
    for seat, monster in enumerate(monsters, 1):
        letter = letter_of(Seat(seat))
        path = (letter, "place")
        place = monster.place
        if place not in places:
            raise BadPosition(path, f"there is no place {place!r}", places)
        if place == OUTSIDE:
            continue
        if place in taken:
            raise BadPosition(path, f"{place} is taken by {taken[place]} already")
        if place == TOKYO_BAY and living < BAY_OPEN_FROM:
            raise BadPosition(path, f"the Bay is closed with fewer than {BAY_OPEN_FROM} monsters")
        taken[place] = letter
    if living < 2:
        raise BadPosition((), "at least two monsters must be in the game")


def _named(
    monsters: Sequence[MonsterAt], table: TableAt
) -> Iterable[tuple[tuple[str | int, ...], str]]:
    for seat, monster in enumerate(monsters, 1):
        for index, card in enumerate(monster.cards):
            yield (letter_of(Seat(seat)), "cards", index), card.card
    for field in ("market", "deck", "discard"):
        for index, name in enumerate(getattr(table, field)):
            yield (field, index), name


def _check_cards(monsters: Sequence[MonsterAt], table: TableAt) -> None:
    counted: Counter[str] = Counter()
    for path, name in _named(monsters, table):
        if name not in BASE.cards:
            raise BadPosition(path, f"there is no card {name!r}", tuple(BASE.cards))
        counted[name] += 1
        copies = BASE.cards[name].copies
        if counted[name] > copies:
            times = "one" if copies == 1 else str(copies)
            raise BadPosition(path, f"there is only {times} of {name} in the game")
    if len(table.market) > MARKET_SIZE:
        raise BadPosition(("market",), f"at most {MARKET_SIZE} cards are for sale")


# -- laying ----------------------------------------------------------------------------------------


def _deck_of(monsters: Sequence[MonsterAt], table: TableAt) -> tuple[str, ...]:
    """The face-down cards before anything is dealt."""
    if not table.deck_ends:
        return BASE.ids()
    return tuple(sorted([name for _, name in _named(monsters, table)]))


def _discards(table: TableAt) -> list[Fact]:
    """A card from the deck that is not kept: the fact that brings it to the discard pile."""
    return [
        CardBought(Seat(1), name, 0, -1, 0, kept=False, holding=0, counter=0)
        for name in table.discard
    ]


def _holdings(monsters: Sequence[MonsterAt], options: Mapping[str, str]) -> list[Fact]:
    facts: list[Fact] = []
    laid: list[tuple[Holding, CardAt, tuple[str | int, ...]]] = []
    for number, monster in enumerate(monsters, 1):
        seat = Seat(number)
        for index, each in enumerate(monster.cards):
            card = BASE.cards[each.card]
            tokens = card.tokens_in(options) if each.tokens is None else each.tokens
            paid = card.cost_in(options) if each.paid is None else each.paid
            holding = Holding(
                id=len(laid) + 1, seat=seat, card=each.card, counter=tokens, paid=paid
            )
            laid.append((holding, each, (letter_of(seat), "cards", index)))
            if paid:
                facts.append(EnergyGained(seat, paid, _CAUSE))
            facts.append(
                CardBought(
                    seat, each.card, paid, -1, 0, kept=True, holding=holding.id, counter=tokens
                )
            )
    for holding, each, path in laid:
        if each.copies:
            model = _model([other for other, _, _ in laid], each.copies, path)
            fresh = BASE.cards[model.card].tokens_in(options)
            tokens = fresh if each.tokens is None else each.tokens
            facts.append(CardCopied(holding.seat, holding.id, model.id, model.card, tokens))
    return facts


def _model(holdings: Sequence[Holding], written: str, path: tuple[str | int, ...]) -> Holding:
    card, _, letter = written.partition(" of ")
    for each in holdings:
        if each.card == card and letter_of(each.seat) == letter:
            return each
    legal = tuple([_written(each) for each in holdings])
    raise BadPosition(path, f"there is no card {written!r} on the table to copy", legal)


def _written(holding: Holding) -> str:
    return f"{holding.card} of {letter_of(holding.seat)}"


def _monster(seat: Seat, monster: MonsterAt) -> list[Fact]:
    if monster.out:
        return [MonsterEliminated(seat, NOBODY, OUTSIDE)]
    facts: list[Fact] = []
    more = monster.hearts - HEARTS_AT_START
    if more > 0:
        facts.append(HeartsGained(seat, more, _CAUSE))
    if more < 0:
        facts.append(HeartsLost(seat, -more, NOBODY, _CAUSE))
    if monster.energy:
        facts.append(EnergyGained(seat, monster.energy, _CAUSE))
    if monster.points:
        facts.append(PointsGained(seat, monster.points, _CAUSE))
    for token in ("poison", "shrink"):
        if amount := getattr(monster, token):
            facts.append(TokensPut(seat, token, amount, _CAUSE))
    if monster.place != OUTSIDE:
        facts.append(MonsterMoved(seat, monster.place, _CAUSE))
    return facts


# -- looking ---------------------------------------------------------------------------------------


def _look_at(state: KingsState, monster: Monster) -> MonsterAt:
    return MonsterAt(
        hearts=monster.hearts,
        energy=monster.energy,
        points=monster.points,
        place=monster.place,
        poison=monster.poison,
        shrink=monster.shrink,
        out=not monster.alive,
        cards=tuple([_look_at_card(state, each) for each in state.held_by(monster.seat)]),
    )


def _look_at_card(state: KingsState, holding: Holding) -> CardAt:
    model = next((each for each in state.holdings if each.id == holding.copies), None)
    return CardAt(
        card=holding.card,
        tokens=holding.counter,
        copies="" if model is None else _written(model),
        paid=holding.paid,
    )


# -- scripted draws --------------------------------------------------------------------------------


def _face(index: int, word: str) -> int:
    for number, face in enumerate(FACES):
        if face == _SHORT.get(word, word):
            return number
    raise BadPosition((index,), f"a die has no face {word!r}", (*FACES, *_SHORT))


def _place(state: KingsState, index: int, word: str) -> int:
    letters = tuple([letter_of(each.seat) for each in state.monsters])
    if word not in letters:
        raise BadPosition((index,), f"there is no player {word!r}", letters)
    return letters.index(word)


def _deck_values(state: KingsState, words: Sequence[str]) -> tuple[int, ...]:
    unseen = list(state.deck)
    for top in state.tops:
        assert not isinstance(top.card, Hidden), "a scripted table hides nothing"
        unseen.remove(top.card)
    values: list[int] = []
    for index, word in enumerate(words):
        if word not in unseen:
            legal = tuple(dict.fromkeys(unseen))
            raise BadPosition((index,), f"{word!r} is not among the cards of the deck", legal)
        values.append(unseen.index(word))
    return tuple(values)
