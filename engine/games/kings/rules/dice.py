"""Rolling: the turn's dice, rerolls, dice thrown for cards (NOTES 1.3 and 1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.core.prompts import Option
from engine.core.visibility import Seat
from engine.games.kings.board import KingTable
from engine.games.kings.faces import FACES, Face
from engine.games.kings.facts import DiceRerolled, DiceRolled, DiceThrown
from engine.games.kings.proposals import (
    DICE,
    ROLLS,
    ChangeWindow,
    LastRollDone,
    RollWindow,
    ThrownDice,
)


def draw_faces(table: KingTable, count: int) -> tuple[Face, ...]:
    """So many fair dice."""
    return tuple([FACES[value] for value in table.chance("die", 6, count)]) if count else ()


def reroll(table: KingTable, seat: Seat, dice: Sequence[int], cause: str, *, by: Seat) -> None:
    """Roll some of the turn's dice (counted from 1) again."""
    faces = draw_faces(table, len(dice))
    table.record(DiceRerolled(seat, tuple(dice), faces, by, cause))


_DICE_MAX: Final = 16
_DIE_OPTIONS: Final = {
    face: tuple([Option(f"die:{n}", f"die:{n}:{face}") for n in range(1, _DICE_MAX + 1)])
    for face in FACES
}


def die_options(faces: Sequence[Face], wanted: Face | None = None) -> tuple[Option, ...]:
    """The dice as options "die:1", …; only those that show the wanted face."""
    return tuple(
        [
            _DIE_OPTIONS[face][index]
            for index, face in enumerate(faces)
            if wanted is None or face == wanted
        ]
    )


def die_number(option: str) -> int:
    """The die that an option of die_options means."""
    return int(option.rpartition(":")[2])


async def roll_dice(table: KingTable, seat: Seat) -> None:
    """First roll, rerolls and additional rolls; then the others', then the owner's changes."""
    monster = table.state.monster(seat)
    count = max(table.stat(DICE, seat) - monster.shrink - table.state.fewer_dice, 0)
    table.record(DiceRolled(seat, draw_faces(table, count)))
    await _reroll_until_content(table, seat, table.stat(ROLLS, seat) - 1)
    await table.announce(LastRollDone(seat), first=_after(table, seat))
    await table.offer(ChangeWindow(seat), "change_dice")


def _after(table: KingTable, seat: Seat) -> Seat:
    return Seat(seat % table.seats + 1)


async def _reroll_until_content(table: KingTable, seat: Seat, rolls_left: int) -> None:
    while table.state.dice:
        window = await table.offer(RollWindow(seat, rolls_left), "roll_action")
        rolls_left = 0 if window is None else window.rolls_left
        if rolls_left == 0:
            return
        dice = table.state.dice
        options = die_options(dice)
        answer = await table.ask(
            seat, "reroll", high=len(dice), options=options, cause=f"rolls_left_{rolls_left}"
        )
        if not answer.picks:
            return
        reroll(table, seat, sorted([die_number(pick) for pick in answer.picks]), "roll", by=seat)
        rolls_left -= 1


async def throw_dice(table: KingTable, seat: Seat, count: int, cause: str) -> tuple[Face, ...]:
    """Dice for a card, apart from the turn's own; their owner may use cards on them."""
    faces = draw_faces(table, count)
    table.record(DiceThrown(seat, faces, cause))
    thrown = await table.offer(ThrownDice(seat, faces, cause), "change_thrown_dice", first=seat)
    return faces if thrown is None else thrown.faces
