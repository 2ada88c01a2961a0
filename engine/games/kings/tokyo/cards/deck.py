"""The base deck, filled by the modules beside this one."""

from __future__ import annotations

from typing import Final

from engine.games.kings.cards import KingDeck

BASE: Final = KingDeck("base")
