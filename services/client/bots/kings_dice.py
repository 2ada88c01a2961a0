"""What a result of the dice is worth to a monster, in points, and which dice to roll again.

A result is worth the sum over its faces of what so many of a face are worth, so the expectation
after one more roll is the sum of the faces' expectations: exact, without going through all rolls.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import comb
from typing import Final

from engine.games.kings.faces import FACES, NUMBERS, Face
from engine.games.kings.state import HEARTS_AT_START, OUTSIDE, KingsState, Monster

Worth = tuple[float, ...]
"""What 0, 1, 2, … dice of a face are worth."""

POINTS_TO_WIN: Final = 20
_WINNING: Final = 8.0
_KILL: Final = 2.5
_SET: Final = 3
_ENERGY: Final = 0.5
_ENERGY_OF_THE_RICH: Final = 0.25
_RICH: Final = 9
_TOKEN: Final = 0.8
_TOKYO: Final = 1.0
# A monster with so few hearts had better stay out of Tokyo.
_FRAIL: Final = 4


def worths(table: KingsState, monster: Monster) -> Mapping[Face, Worth]:
    """For each face, what any number of it among the table's dice is worth to this monster now."""
    counts = range(len(table.dice) + 1)
    missing = POINTS_TO_WIN - monster.points
    numbers = {face: _number_worth(NUMBERS[face], missing, len(counts)) for face in NUMBERS}
    each = _ENERGY if monster.energy < _RICH else _ENERGY_OF_THE_RICH
    return {
        **numbers,
        "heart": _heart_worth(monster, counts),
        "energy": tuple([each * count for count in counts]),
        "smash": _smash_worth(table, monster, counts),
    }


def worth_of(dice: Sequence[Face], worth: Mapping[Face, Worth]) -> float:
    """What these dice are worth as they lie."""
    return sum(worth[face][dice.count(face)] for face in FACES)


def best_reroll(dice: Sequence[Face], worth: Mapping[Face, Worth]) -> tuple[int, ...]:
    """The dice (by index from 0) that are best rolled again, all dice of a face or none."""
    shown = [face for face in FACES if face in dice]
    counts = {face: dice.count(face) for face in shown}
    fresh = [_expected_by_rolled(worth[face], 0, len(dice)) for face in FACES]
    more = [_expected_by_rolled(worth[face], counts[face], len(dice)) for face in shown]
    gains = [
        [kept - without for kept, without in zip(kept_by, fresh[FACES.index(face)], strict=False)]
        for face, kept_by in zip(shown, more, strict=True)
    ]
    bases = [sum(column) for column in zip(*fresh, strict=True)]
    best: tuple[int, ...] = ()
    best_value = worth_of(dice, worth)
    for keeps in product((True, False), repeat=len(shown)):
        rolled = len(dice) - sum([counts[f] for f, keep in zip(shown, keeps, strict=True) if keep])
        if not rolled:
            continue
        kept_gains = [gain[rolled] for gain, keep in zip(gains, keeps, strict=True) if keep]
        value = bases[rolled] + sum(kept_gains)
        if value > best_value:
            kept = [face for face, keep in zip(shown, keeps, strict=True) if keep]
            best = tuple([index for index, face in enumerate(dice) if face not in kept])
            best_value = value
    return best


def _expected_by_rolled(worth: Worth, kept: int, dice: int) -> list[float]:
    """What a face is worth on average when so many of it are kept and 0, 1, 2, … dice rolled."""
    return [
        sum([chance * worth[kept + more] for more, chance in enumerate(_chances(rolled))])
        for rolled in range(dice - kept + 1)
    ]


@cache
def _chances(rolled: int) -> tuple[float, ...]:
    """How likely 0, 1, 2, … of a face are among so many dice."""
    ways = 6**rolled
    return tuple([comb(rolled, n) * 5 ** (rolled - n) / ways for n in range(rolled + 1)])


def heart_worth(hearts: int) -> float:
    """What one heart more is worth to a monster that has so many."""
    if hearts <= _FRAIL:
        return 1.1
    return 0.6 if hearts <= 7 else 0.25


@cache
def _number_worth(value: int, missing: int, size: int) -> Worth:
    points = [value + count - _SET if count >= _SET else 0 for count in range(size)]
    return tuple([each + (_WINNING if each >= max(missing, 1) else 0.0) for each in points])


def _heart_worth(monster: Monster, counts: range) -> Worth:
    if monster.place != OUTSIDE:
        return (0.0,) * len(counts)
    missing = max(HEARTS_AT_START - monster.hearts, 0)
    tokens = monster.poison + monster.shrink
    steps = [_TOKEN] * tokens + [heart_worth(monster.hearts + more) for more in range(missing)]
    return tuple([sum(steps[:count]) for count in counts])


def _smash_worth(table: KingsState, monster: Monster, counts: range) -> Worth:
    is_outside = monster.place == OUTSIDE
    rivals = [each for each in table.monsters if each.alive and each.seat != monster.seat]
    hit = [each.hearts for each in rivals if (each.place != OUTSIDE) == is_outside]
    # The fewer rivals there are, the more of their loss is one's own gain.
    per_heart = 0.2 + 0.6 / max(len(rivals), 1)
    kill = _WINNING if len(rivals) == 1 else _KILL
    conquest = 0.0
    if is_outside:
        conquest = _TOKYO if monster.hearts > _FRAIL else -_TOKYO
    worth = [0.0]
    for count in counts[1:]:
        harm = sum([min(count, hearts) * per_heart for hearts in hit])
        worth.append(harm + kill * sum([count >= hearts for hearts in hit]) + conquest)
    return tuple(worth)
