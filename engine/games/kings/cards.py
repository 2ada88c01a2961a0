"""How a King card is written down: one call for its data and wording, functions for its
behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.core.cards import Card, Deck, Stat, Under
from engine.games.kings.me import KingMe

EVERYWHERE: Final = ("S-BGA", "S-CSV", "S-BGA1", "S-GO", "S-JAVA")
"""The sources that hold every base card."""

FIRST: Final[Under] = ("card_text_edition", "first")
SECOND: Final[Under] = ("card_text_edition", "2016")

KingCard = Card[KingMe]
KingDeck = Deck[KingMe]
Addend = int | Callable[[KingMe], int]


def keep(
    deck: KingDeck,
    id: str,  # noqa: A002  # the word that cards use
    name: str,
    name_zh: str,
    *,
    cost: int,
    text: str,
    text_zh: str,
    copies: int = 1,
    tokens: int = 0,
    adds: Mapping[Stat, Addend] | None = None,
    cost_first: int | None = None,
    tokens_first: int | None = None,
    text_first: tuple[str, str] | None = None,
    asks: Mapping[str, tuple[str, str]] | None = None,
    sources: tuple[str, ...],
    since: int = 0,
) -> KingCard:
    """A card that stays in front of its owner. cost_first, tokens_first, text_first: in the first
    edition. sources: codes of where it is printed (tests/scenarios/README.md lists them). since:
    the revision of the rules that brought it.
    """
    return deck.add(
        Card(
            id=id,
            name=name,
            name_zh=name_zh,
            kind="keep",
            cost=cost,
            copies=copies,
            text=text,
            text_zh=text_zh,
            sources=sources,
            since=since,
            adds=adds,
            tokens=tokens,
            cost_under={} if cost_first is None else {FIRST: cost_first},
            tokens_under={} if tokens_first is None else {FIRST: tokens_first},
            text_under={} if text_first is None else {FIRST: text_first},
            asks=asks,
        )
    )


def discard(
    deck: KingDeck,
    id: str,  # noqa: A002  # the word that cards use
    name: str,
    name_zh: str,
    *,
    cost: int,
    text: str,
    text_zh: str,
    copies: int = 1,
    text_first: tuple[str, str] | None = None,
    asks: Mapping[str, tuple[str, str]] | None = None,
    sources: tuple[str, ...],
    since: int = 0,
) -> KingCard:
    """A card that works once, when it is bought. The rest as for `keep`."""
    return deck.add(
        Card(
            id=id,
            name=name,
            name_zh=name_zh,
            kind="discard",
            cost=cost,
            copies=copies,
            text=text,
            text_zh=text_zh,
            sources=sources,
            since=since,
            text_under={} if text_first is None else {FIRST: text_first},
            asks=asks,
        )
    )
