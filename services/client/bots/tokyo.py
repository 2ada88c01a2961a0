"""What a sensible monster does in King of Tokyo: simple rules of thumb, no look-ahead.

It reads the prompt and the table of `engine.games.kings`; every prompt that it does not know is
answered by its default. Random bots lose to it clearly; strong players do not.
"""

from collections import Counter

from engine import Answer, MatchState, Prompt
from engine.games.kings.state import KingsState, Monster

# Below so many hearts a monster outside heals before anything else …
_HEARTS_WORRY = 6
# … and leaves Tokyo when wounded there.
_HEARTS_FLEE = 5
# With so many points two turns in Tokyo win the match: stay while it is not deadly.
_POINTS_NEAR_WIN = 15
_HEARTS_LAST_STAND = 3
_HEARTS_MAX = 10
_ENERGY_HOARD = 9
_NUMBERS = ("three", "two", "one")


class TokyoAdvice:
    """Keep what scores, heals or hits; stay in Tokyo while healthy; buy the dearest card."""

    def advise(self, prompt: Prompt, state: MatchState) -> Answer:
        """The answer to a prompt of King of Tokyo."""
        table = state.table
        if not isinstance(table, KingsState):
            return prompt.default
        monster = table.monster(prompt.seat)
        match prompt.kind:
            case "reroll":
                return _reroll(prompt, table, monster)
            case "yield_tokyo":
                return _yield(prompt, monster)
            case "buy":
                return _buy(prompt, monster)
            case "before_losing_hearts" | "lose_hearts":
                return _escape(prompt, monster)
            case _:
                return prompt.default


def _reroll(prompt: Prompt, table: KingsState, monster: Monster) -> Answer:
    kept = _worth_keeping(table, monster)
    picks = []
    # Subjects say what the dice show: "die:3:smash".
    for option in prompt.options:
        face = option.subject.rpartition(":")[2]
        if kept[face] > 0:
            kept[face] -= 1
        else:
            picks.append(option.id)
    return Answer(picks=tuple(picks[: prompt.high]))


def _worth_keeping(table: KingsState, monster: Monster) -> Counter[str]:
    """How many dice of each face to keep."""
    faces = Counter(str(face) for face in table.dice)
    kept: Counter[str] = Counter()
    is_outside = monster.place == "outside"
    if is_outside and monster.hearts < _HEARTS_WORRY:
        kept["heart"] = min(faces["heart"], _HEARTS_MAX - monster.hearts)
    if _targets(table, monster):
        kept["smash"] = faces["smash"]
    if monster.energy < _ENERGY_HOARD:
        kept["energy"] = faces["energy"]
    best = max(_NUMBERS, key=lambda face: (min(faces[face], 3), _NUMBERS.index(face) == 0))
    # A pair becomes a set often enough; a pair of ones is not worth the dice.
    if faces[best] >= (3 if best == "one" else 2):
        kept[best] = faces[best]
    return kept


def _targets(table: KingsState, monster: Monster) -> list[Monster]:
    """Whom this monster's smashes hit."""
    is_outside = monster.place == "outside"
    return [
        each
        for each in table.monsters
        if each.alive and each.seat != monster.seat and (each.place != "outside") == is_outside
    ]


def _yield(prompt: Prompt, monster: Monster) -> Answer:
    limit = _HEARTS_LAST_STAND if monster.points >= _POINTS_NEAR_WIN else _HEARTS_FLEE
    wanted = "yield" if monster.hearts <= limit else "stay"
    if any(option.id == wanted for option in prompt.options):
        return Answer(picks=(wanted,))
    return prompt.default


def _buy(prompt: Prompt, monster: Monster) -> Answer:
    """The dearest card: cost follows strength well enough. Sweeping is for the rich."""
    wares = [option for option in prompt.options if option.subject.startswith("ware:")]
    if wares:
        dearest = max(wares, key=lambda option: int(option.subject.rpartition(":")[2]))
        return Answer(picks=(dearest.id,))
    if monster.energy >= _ENERGY_HOARD and any(o.id == "sweep" for o in prompt.options):
        return Answer(picks=("sweep",))
    return prompt.default


def _escape(prompt: Prompt, monster: Monster) -> Answer:
    """Use a card against a blow while hearts are short."""
    if monster.hearts <= _HEARTS_WORRY and prompt.low == 0 and prompt.options:
        return Answer(picks=(prompt.options[0].id,))
    return prompt.default
