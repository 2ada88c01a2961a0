"""Losing hearts, from whatever cause: ways out, what follows, elimination (NOTES 1.8)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.core.game import MatchOver
from engine.core.state import Holding
from engine.core.visibility import NOBODY, Seat
from engine.games.kings.board import KingTable, board_of
from engine.games.kings.facts import CardDiscarded, HeartsLost, MonsterEliminated
from engine.games.kings.proposals import (
    Assault,
    Dying,
    HeartsWereLost,
    Loss,
    Wounded,
    ZeroReached,
)
from engine.games.kings.rules.market import copies_end
from engine.games.kings.state import OUTSIDE


class Aftermath(NamedTuple):
    """wounded: living monsters that really lost hearts to smashes. held: losses waiting for a yield
    decision.
    """

    wounded: tuple[Seat, ...]
    held: tuple[Loss, ...]


async def assault(
    table: KingTable,
    source: Seat,
    losses: Iterable[Loss],
    *,
    smashes: int = 0,
    by_dice: bool = False,
) -> Aftermath:
    """One monster hurts others (or itself) at once; cards may add to it."""
    proposal = Assault(source=source, by_dice=by_dice, smashes=smashes, losses=tuple(losses))
    changed = table.adjust(proposal)
    if changed is None:
        return Aftermath((), ())
    return await lose_hearts(table, changed.losses, source=source, by_dice=by_dice)


async def lose_hearts(
    table: KingTable, losses: Iterable[Loss], *, source: Seat = NOBODY, by_dice: bool = False
) -> Aftermath:
    """One event that costs hearts: every victim's ways out, then all losses, then what follows from
    them.

    Raises MatchOver when at most one monster is left.
    """
    due: list[Loss] = []
    held: list[Loss] = []
    for loss in _in_turn_order(table, losses, source or table.state.active):
        remaining = await _ways_out(table, loss)
        if remaining is not None:
            (held if remaining.held else due).append(remaining)
    if not due:
        return Aftermath((), tuple(held))
    lost = [_apply(table, loss) for loss in due]
    wounded = [
        loss.target
        for loss, amount in zip(due, lost, strict=True)
        if await _follow_up(table, loss, amount)
    ]
    dead = [
        loss.target
        for loss, amount in zip(due, lost, strict=True)
        if amount and table.state.monster(loss.target).hearts == 0
    ]
    if dead:
        await _eliminate(table, dead, source, by_dice=by_dice)
    return Aftermath(tuple(wounded), tuple(held))


def _in_turn_order(table: KingTable, losses: Iterable[Loss], dealer: Seat) -> list[Loss]:
    due = [loss for loss in losses if loss.amount > 0 and _may_lose(table, loss.target)]
    if len(due) < 2:
        return due
    return sorted(due, key=lambda loss: (loss.target - dealer - 1) % table.seats)


def _may_lose(table: KingTable, seat: Seat) -> bool:
    """A monster that has fallen to 0 hearts loses no more, and has no way out of that: it is dying,
    or comes back (in the first revision it was asked, and could fall once more).
    """
    monster = table.state.monster(seat)
    return monster.alive and (monster.hearts > 0 or table.match.revision < 2)


async def _ways_out(table: KingTable, loss: Loss) -> Loss | None:
    """What is left of a loss after automatic protection and its victim's decisions (NOTES
    1.8.2).
    """
    remaining = table.adjust(loss, first=loss.target)
    if remaining is None or remaining.held:
        return remaining
    if table.state.monster(loss.target).guarded:
        return None
    remaining = await table.offer(remaining, "prevent_loss", first=loss.target)
    if remaining is None or table.state.monster(loss.target).guarded:
        return None
    return remaining


def _apply(table: KingTable, loss: Loss) -> int:
    amount = min(loss.amount, table.state.monster(loss.target).hearts)
    if amount > 0:
        table.record(HeartsLost(loss.target, amount, loss.source, loss.cause))
    return amount


async def _follow_up(table: KingTable, loss: Loss, amount: int) -> bool:
    """What follows for one victim; True when it lives and was wounded by smashes."""
    if amount == 0:
        return False
    if table.state.monster(loss.target).hearts == 0:
        await table.announce(ZeroReached(loss.target, loss.source), first=loss.source)
        await table.announce(Dying(loss.target, loss.source), first=loss.target)
        return False
    await table.announce(HeartsWereLost(loss.target, amount, loss.source), first=loss.target)
    if not loss.wounds:
        return False
    await table.announce(Wounded(loss.target, loss.source), first=loss.source)
    return True


async def _eliminate(table: KingTable, dead: list[Seat], by: Seat, *, by_dice: bool) -> None:
    """Take monsters out of the game in turn order; NOTES 1.8.5 and 1.8.6."""
    gone: list[Holding] = []
    for seat in dead:
        if not table.state.monster(seat).alive:
            continue
        for holding in table.state.held_by(seat):
            gone.append(holding)
            table.record(CardDiscarded(seat, holding.card, holding.id, "eliminated"))
        table.record(MonsterEliminated(seat, by, OUTSIDE))
        board_of(table).monster_gone(table, by_dice=by_dice)
    living = table.state.living()
    if not living:
        raise MatchOver((), "nobody_left")
    if len(living) == 1:
        raise MatchOver(living, "last_survivor")
    for holding in gone:
        if not holding.copies:
            await copies_end(table, holding, holding.card)
