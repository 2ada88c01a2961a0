"""What a game declares about itself: the one object that a game package exports as GAME."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from engine.core.cards import Card, Deck
from engine.core.facts import CORE_FACTS, OptionValue
from engine.core.prompts import Prompt
from engine.core.refusals import Refusal
from engine.core.state import GameState, Holding, has_evolver
from engine.core.visibility import Fact, Seat

if TYPE_CHECKING:
    from engine.core.position import Positions
    from engine.core.table import Me, Table

S = TypeVar("S", bound=GameState)

Rule = Coroutine[tuple[Prompt, ...], object, None]
Phrases = Mapping[str, tuple[str, str]]
"""Key to (English, Chinese); see engine.core.text for the keys."""


class OptionSpec(msgspec.Struct, frozen=True):
    """A choice made when a match is created. The first value need not be the default."""

    id: str
    values: tuple[str, ...]
    default: str
    summary: str
    summary_zh: str


class Game(Generic[S]):
    """A game: its size, options, facts, state, cards, wording and its two rules.

    setup: from MatchStarted to the first turn. turn: one whole turn; it must record a fact of the
    type `checkpoint` first, and may not depend on anything but the state before that fact. Both end
    the match with MatchOver. board: whatever the game's own rules must know about its map. measure:
    the number of a seat that its standing answers to prompts of a kind are compared with.
    decks: the base deck first; the others are named like the expansion whose matches have them.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002  # the word that everything else uses
        name: str,
        name_zh: str,
        seats_low: int,
        seats_high: int,
        revision: int,
        state: type[S],
        facts: tuple[type[Fact], ...],
        checkpoint: type[Fact],
        setup: Callable[[Table[S]], Rule],
        turn: Callable[[Table[S]], Rule],
        me: Callable[[Table[S], Seat, Holding], Me[S]],
        decks: tuple[Deck[Me[S]], ...] = (),
        options: tuple[OptionSpec, ...] = (),
        presets: Mapping[str, Mapping[str, str]] | None = None,
        default_preset: str = "",
        expansions: tuple[str, ...] = (),
        phrases: Phrases | None = None,
        board: object = None,
        measure: Callable[[S, Seat, str], int] | None = None,
        positions: Positions | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.name_zh = name_zh
        self.seats_low = seats_low
        self.seats_high = seats_high
        self.revision = revision
        self.state = state
        self.facts = facts
        self.checkpoint = checkpoint
        self.setup = setup
        self.turn = turn
        self.me = me
        self.decks = decks
        self.options = options
        self.presets: Mapping[str, Mapping[str, str]] = presets or {}
        self.default_preset = default_preset
        self.expansions = expansions
        self.phrases: Phrases = phrases or {}
        self.board = board
        self.measure: Callable[[S, Seat, str], int] = measure or (lambda _, __, ___: 0)
        self.positions = positions
        self.cards: dict[str, Card[Me[S]]] = {}
        for deck in decks:
            assert not self.cards.keys() & deck.cards.keys(), "one card id in two decks"
            self.cards.update(deck.cards)
        for deck in decks[1:]:
            assert deck.name in expansions, f"deck {deck.name} belongs to no expansion"
        self._check()

    def _check(self) -> None:
        assert self.checkpoint in self.facts, "the checkpoint is one of the game's facts"
        for fact_type in self.facts:
            assert has_evolver(fact_type), f"{fact_type.__qualname__} has no evolve function"
        tags = [str(each.__struct_config__.tag) for each in fact_types(self)]
        assert len(tags) == len(frozenset(tags)), "two facts with one tag"
        for preset in self.presets:
            self.resolve_options(preset, {})

    def decks_of(self, expansions: tuple[str, ...]) -> tuple[Deck[Me[S]], ...]:
        """The decks of a match that was created with these expansions: the base deck and theirs."""
        return tuple(
            [deck for deck in self.decks if deck is self.decks[0] or deck.name in expansions]
        )

    def asks(self, kind: str) -> bool:
        """Whether seats may be asked prompts of this kind: the game or a card has words for it."""
        card_id, _, name = kind.partition(".")
        card = self.cards.get(card_id)
        return f"prompt.{kind}" in self.phrases or (card is not None and name in card.asks)

    def resolve_options(self, preset: str, chosen: Mapping[str, str]) -> tuple[OptionValue, ...]:
        """Every option with its value, sorted by id: defaults, then the preset, then what was
        chosen.

        Raises Refusal UNKNOWN_OPTION or BAD_OPTION_VALUE, with the legal ones.
        """
        values = {spec.id: spec.default for spec in self.options}
        preset = preset or self.default_preset
        if preset and preset not in self.presets:
            raise Refusal(
                "UNKNOWN_OPTION", "preset", detail=preset, legal=tuple(sorted(self.presets))
            )
        specs = {spec.id: spec for spec in self.options}
        for option, value in (*self.presets.get(preset, {}).items(), *chosen.items()):
            spec = specs.get(option)
            if spec is None:
                raise Refusal(
                    "UNKNOWN_OPTION", "options", detail=option, legal=tuple(sorted(specs))
                )
            if value not in spec.values:
                detail = f"{option}={value}"
                raise Refusal(
                    "BAD_OPTION_VALUE", f"options.{option}", detail=detail, legal=spec.values
                )
            values[option] = value
        return tuple(OptionValue(id=each, value=values[each]) for each in sorted(values))


AnyGame = Game[GameState]


def fact_types(game: Game[S]) -> tuple[type[Fact], ...]:
    """Every type of fact that a match of this game may hold: the core's, then the game's, each
    sorted by tag.
    """
    return (*_by_tag(CORE_FACTS), *_by_tag(game.facts))


def _by_tag(types: tuple[type[Fact], ...]) -> list[type[Fact]]:
    return sorted(types, key=lambda each: str(each.__struct_config__.tag))


class MatchOver(Exception):  # how a rule ends the match from any depth
    """Raised by a rule: the match is over. No winners: everybody lost."""

    def __init__(self, winners: tuple[Seat, ...], reason: str) -> None:
        self.winners = winners
        self.reason = reason
        super().__init__(reason)
