"""King of Tokyo with an expansion that only tests know."""

from __future__ import annotations

from typing import cast

from engine import Deck, Game, Me
from engine.games.kings.cards import KingDeck
from engine.games.kings.state import KingsState
from engine.games.kings.tokyo.game import GAME


def with_expansion(deck: KingDeck) -> Game[KingsState]:
    """The game with one more deck, and the expansion of that name."""
    return Game(
        id=GAME.id,
        name=GAME.name,
        name_zh=GAME.name_zh,
        seats_low=GAME.seats_low,
        seats_high=GAME.seats_high,
        revision=GAME.revision,
        state=GAME.state,
        facts=GAME.facts,
        checkpoint=GAME.checkpoint,
        setup=GAME.setup,
        turn=GAME.turn,
        me=GAME.me,
        decks=(*GAME.decks, cast("Deck[Me[KingsState]]", deck)),
        options=GAME.options,
        presets=GAME.presets,
        default_preset=GAME.default_preset,
        expansions=(*GAME.expansions, deck.name),
        phrases=GAME.phrases,
        board=GAME.board,
    )
