"""The 66 power cards of the base game, 64 different ones: 48 to keep, 18 to discard.

The modules hold them in printed order. Effects are those of the 2016 printing; where the first
edition differs, its effect stands beside it under `card_text_edition=first`.
"""

from engine.games.kings.tokyo.cards import (  # isort: skip  # printed order
    keeps_acid_to_extra,
    keeps_fire_to_herd,
    keeps_child_to_mimic,
    keeps_nova_to_probe,
    keeps_rapid_to_wings,
    discards,
)
from engine.games.kings.tokyo.cards.deck import BASE

__all__ = [
    "BASE",
    "discards",
    "keeps_acid_to_extra",
    "keeps_child_to_mimic",
    "keeps_fire_to_herd",
    "keeps_nova_to_probe",
    "keeps_rapid_to_wings",
]
