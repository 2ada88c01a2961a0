"""The six faces of a die, in the order in which chance numbers them."""

from __future__ import annotations

from typing import Final, Literal

Face = Literal["one", "two", "three", "heart", "energy", "smash"]

ONE: Final[Face] = "one"
TWO: Final[Face] = "two"
THREE: Final[Face] = "three"
HEART: Final[Face] = "heart"
ENERGY: Final[Face] = "energy"
SMASH: Final[Face] = "smash"

FACES: Final[tuple[Face, ...]] = (ONE, TWO, THREE, HEART, ENERGY, SMASH)
NUMBERS: Final[dict[Face, int]] = {ONE: 1, TWO: 2, THREE: 3}
