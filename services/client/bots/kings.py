"""What a sensible monster does in a King game: rules of thumb, one roll of look-ahead.

It knows the prompt and what its seat may see of the table, nothing else; a prompt that it has no
opinion about gets its default. Random bots lose to it clearly; strong players do not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine import Answer, MatchState, Option, Prompt, Seat, check_answer
from engine.games.kings.faces import FACES, Face
from engine.games.kings.state import OUTSIDE, KingsState, Monster
from services.client.bots.kings_cards import gain_of_purchase, is_free, worth_of_card
from services.client.bots.kings_dice import (
    POINTS_TO_WIN,
    best_reroll,
    worth_of,
    worths,
)

_POINTS_PER_START: Final = 2
# So many hearts each monster outside takes from one in Tokyo until its next turn, by experience.
_HARM_PER_RIVAL: Final = 1.1
_RESERVE: Final = 2
_HEARTS_WORRY: Final = 5
_SWEEP_ENERGY: Final = 9
_CHARGE_MAX: Final = 4
# A change of dice that costs energy or a card must be worth more than that.
_CHANGE_WORTH: Final = 1.2


class KingsAdvice:
    """See the module."""

    def advise(self, prompt: Prompt, state: MatchState) -> Answer:
        """The answer to a prompt of a King game."""
        table = state.table
        if prompt.concealed or not isinstance(table, KingsState):
            return prompt.default
        consider = _ADVICE.get(prompt.kind)
        if consider is None:
            return prompt.default
        answer = consider(_Sight(prompt, state, table, table.monster(prompt.seat)))
        if answer is None or check_answer(prompt, answer) is not None:
            return prompt.default
        return answer

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """Hearts for energy, when hearts are short."""
        table = state.table
        is_short = isinstance(table, KingsState) and table.monster(seat).hearts <= _HEARTS_WORRY
        return actions[0].id if is_short else None


class _Sight:
    """What the bot looks at while it decides."""

    __slots__ = ("game", "monster", "options", "prompt", "table")

    def __init__(
        self, prompt: Prompt, state: MatchState, table: KingsState, monster: Monster
    ) -> None:
        self.prompt = prompt
        self.game = state.game
        self.table = table
        self.monster = monster
        self.options = prompt.options

    def unwanted(self) -> tuple[int, ...]:
        """The dice (by index from 0) that are best rolled again."""
        return best_reroll(self.table.dice, worths(self.table, self.monster))

    def pick(self, wanted: str) -> Answer | None:
        """This option, if it is offered."""
        return Answer(picks=(wanted,)) if any(each.id == wanted for each in self.options) else None

    def best(
        self, worth: Callable[[Option], float], *, options: Sequence[Option] | None = None
    ) -> tuple[Option, float] | None:
        """The option that is worth most, the first one among equals."""
        among = self.options if options is None else options
        if not among:
            return None
        found = max(among, key=worth)
        return found, worth(found)


# -- dice ------------------------------------------------------------------------------------------


def _reroll(sight: _Sight) -> Answer:
    offered = [each.id for each in sight.options]
    picks = [f"die:{index + 1}" for index in sight.unwanted()]
    return Answer(picks=tuple([each for each in picks if each in offered][: sight.prompt.high]))


def _reroll_some(sight: _Sight) -> Answer:
    """Offered dice that are better rolled again; as many as must be, where none is."""
    offered = [each.id for each in sight.options]
    wanted = [f"die:{index + 1}" for index in sight.unwanted()]
    unwanted = tuple([each for each in offered if each in wanted])
    return Answer(picks=unwanted or tuple(offered[: sight.prompt.low]))


def _use_between_rolls(sight: _Sight) -> Answer | None:
    """A card that gives a roll, while two dice or more are better rolled again."""
    again = sight.unwanted()
    if len(again) < 2 and not _would_reroll_own_threes(sight, again):
        return None
    return Answer(picks=(sight.options[0].id,))


def _would_reroll_own_threes(sight: _Sight, again: Sequence[int]) -> bool:
    free = [each for each in sight.options if each.subject == "use:background_dweller"]
    return bool(free) and any(sight.table.dice[index] == "three" for index in again)


def _best_change(sight: _Sight, faces: Sequence[Face]) -> tuple[int, Face, float]:
    """The die (from 1), the face to turn it to, and what that is worth more."""
    worth = worths(sight.table, sight.monster)
    dice = list(sight.table.dice)
    now = worth_of(dice, worth)
    best: tuple[int, Face, float] = (1, dice[0] if dice else faces[0], 0.0)
    for index, old in enumerate(dice):
        if old in dice[:index]:
            continue
        for face in faces:
            value = worth_of([*dice[:index], face, *dice[index + 1 :]], worth) - now
            if value > best[2]:
                best = (index + 1, face, value)
    return best


def _change_dice(sight: _Sight) -> Answer | None:
    for option in sight.options:
        match option.subject.removeprefix("use:"):
            case "background_dweller":
                is_worth_it = _would_reroll_own_threes(sight, sight.unwanted())
            case "herd_culler":
                is_worth_it = _best_change(sight, ("one",))[2] > 0
            case _:
                is_worth_it = _best_change(sight, FACES)[2] > _CHANGE_WORTH
        if is_worth_it:
            return Answer(picks=(option.id,))
    return None


def _die_to_one(sight: _Sight) -> Answer | None:
    die, _, _ = _best_change(sight, ("one",))
    return sight.pick(f"die:{die}")


def _die_to_any(sight: _Sight) -> Answer | None:
    die, _, _ = _best_change(sight, FACES)
    return sight.pick(f"die:{die}")


def _face_of_die(sight: _Sight) -> Answer | None:
    # The die was chosen just before, by the same reasoning on the same dice.
    _, face, _ = _best_change(sight, FACES)
    return sight.pick(face)


def _probe(sight: _Sight) -> Answer | None:
    """Spoil the die that is worth most to the active monster, if it is worth much."""
    active = sight.table.monster(sight.table.active)
    worth = worths(sight.table, active)
    dice = list(sight.table.dice)
    now = worth_of(dice, worth)

    def loss(option: Option) -> float:
        index = int(option.id.rpartition(":")[2]) - 1
        return now - worth_of([*dice[:index], *dice[index + 1 :]], worth)

    found = sight.best(loss)
    if found is None or found[1] < 1:
        return None
    return Answer(picks=(found[0].id,))


def _use_hearts(sight: _Sight) -> Answer | None:
    """Own tokens first while healthy, else own hearts first; others' only where one must."""
    low, high = sight.prompt.low, sight.prompt.high
    order = ["hearts", "poison", "shrink"] if sight.monster.hearts <= 4 else ["shrink", "poison"]
    ranked = sorted(
        range(len(sight.options)),
        key=lambda index: _rank(sight.options[index].id, [*order, "hearts"]),
    )
    amounts = [0] * len(sight.options)
    total = 0
    for index in ranked:
        is_own = not sight.options[index].id.startswith("ray:")
        limit = high if is_own else low
        amounts[index] = max(min(sight.prompt.limits[index], limit - total), 0)
        total += amounts[index]
    return Answer(amounts=tuple(amounts)) if low <= total <= high else None


def _rank(wanted: str, order: Sequence[str]) -> int:
    return order.index(wanted) if wanted in order else len(order)


# -- Tokyo and hearts ------------------------------------------------------------------------------


def _yield(sight: _Sight) -> Answer | None:
    return sight.pick("stay" if _is_safe_in_tokyo(sight) else "yield")


def _is_safe_in_tokyo(sight: _Sight) -> bool:
    monster = sight.monster
    rivals = [each for each in sight.table.monsters if each.alive and each.place == OUTSIDE]
    harm = _HARM_PER_RIVAL * len(rivals)
    if monster.points >= POINTS_TO_WIN - _POINTS_PER_START:
        return monster.hearts > harm
    return monster.hearts > harm + _RESERVE


def _prevent(sight: _Sight) -> Answer | None:
    """What costs nothing always; what costs energy when hearts are short."""
    for option in sight.options:
        if sight.monster.hearts <= _HEARTS_WORRY or is_free(option.subject.removeprefix("use:")):
            return Answer(picks=(option.id,))
    return None


def _before_end(sight: _Sight) -> Answer | None:
    if sight.monster.hearts <= _HEARTS_WORRY and sight.options:
        return Answer(picks=(sight.options[0].id,))
    return None


# -- cards -----------------------------------------------------------------------------------------


def _buy(sight: _Sight) -> Answer | None:
    wares = [each for each in sight.options if each.subject.startswith("ware:")]

    def gain(option: Option) -> float:
        _, card, price = option.subject.split(":")
        return gain_of_purchase(sight.game, sight.table, sight.monster, card, int(price))

    found = sight.best(gain, options=wares)
    if found is not None and found[1] > 0:
        return Answer(picks=(found[0].id,))
    if sight.monster.energy >= _SWEEP_ENERGY:
        return sight.pick("sweep")
    return None


def _best_model(sight: _Sight) -> Answer | None:
    def worth(option: Option) -> float:
        card = option.subject.split(":")[1]
        return worth_of_card(sight.game, sight.table, sight.monster, card)

    found = sight.best(worth)
    return None if found is None else Answer(picks=(found[0].id,))


def _change_model(sight: _Sight) -> Answer | None:
    """Only a copy of nothing is worth changing."""
    own = sight.table.held_by(sight.monster.seat)
    ids = [each.id for each in sight.table.holdings]
    idle = [each for each in own if each.card == sight.prompt.cause and each.copies not in ids]
    return _best_model(sight) if idle else None


def _charge(sight: _Sight) -> Answer:
    amount = min(max(sight.prompt.low, _CHARGE_MAX), sight.prompt.high)
    return Answer(number=amount)


_Consider = Callable[[_Sight], Answer | None]
_ADVICE: Final[Mapping[str, _Consider]] = {
    "reroll": _reroll,
    "roll_action": _use_between_rolls,
    "change_dice": _change_dice,
    "use_hearts": _use_hearts,
    "yield_tokyo": _yield,
    "prevent_loss": _prevent,
    "before_end": _before_end,
    "buy": _buy,
    "opportunist.buy": _buy,
    "background_dweller.dice": _reroll_some,
    "battery_monster.charge": _charge,
    "herd_culler.die": _die_to_one,
    "mimic.model": _best_model,
    "mimic.change": _change_model,
    "plot_twist.die": _die_to_any,
    "plot_twist.face": _face_of_die,
    "psychic_probe.die": _probe,
    "stretchy.die": _die_to_any,
    "stretchy.face": _face_of_die,
}
