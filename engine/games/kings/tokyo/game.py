"""King of Tokyo as the catalogue finds it."""

from __future__ import annotations

from typing import Final, cast

from engine.core.cards import Deck
from engine.core.game import Game
from engine.core.table import Me
from engine.games.kings.facts import KINGS_FACTS, TurnBegan
from engine.games.kings.me import king_me
from engine.games.kings.phrases import KINGS_PHRASES
from engine.games.kings.state import KingsState
from engine.games.kings.tokyo.cards import BASE
from engine.games.kings.tokyo.facts import TokyoLaid, TokyoState
from engine.games.kings.tokyo.options import DEFAULT_PRESET, OPTIONS, PRESETS
from engine.games.kings.tokyo.phrases import TOKYO_PHRASES
from engine.games.kings.tokyo.places import TokyoBoard
from engine.games.kings.tokyo.position import TokyoPositions
from engine.games.kings.tokyo.turn import measure, play_turn, set_up

GAME: Final[Game[KingsState]] = Game(
    id="king_of_tokyo",
    name="King of Tokyo",
    name_zh="东京之王",
    seats_low=2,
    seats_high=6,
    revision=2,
    state=TokyoState,
    facts=(TokyoLaid, *KINGS_FACTS),
    checkpoint=TurnBegan,
    setup=set_up,
    turn=play_turn,
    me=king_me,
    decks=(cast("Deck[Me[KingsState]]", BASE),),
    options=OPTIONS,
    presets=PRESETS,
    default_preset=DEFAULT_PRESET,
    phrases={**KINGS_PHRASES, **TOKYO_PHRASES},
    board=TokyoBoard(),
    measure=measure,
    positions=TokyoPositions(),
)
