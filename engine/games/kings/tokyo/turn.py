"""Setting up and one whole turn, step by step (NOTES 1.0 to 1.12)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Final

from engine.core.game import MatchOver
from engine.core.prompts import Answer, Option, Prompt
from engine.core.visibility import NOBODY, Seat
from engine.games.kings.board import KingTable
from engine.games.kings.faces import NUMBERS, SMASH
from engine.games.kings.facts import (
    FirstPlayerChosen,
    FirstPlayerRolled,
    SmashesAdded,
    TokensRemoved,
    TurnBegan,
)
from engine.games.kings.proposals import (
    HEARTS_MAX,
    SMASHES,
    SMASHES_ON_SMASH,
    Aim,
    Assault,
    BonusPaid,
    EndWindow,
    HeartsSpent,
    HeartUse,
    HeartUses,
    Loss,
    NumberScored,
    ResolutionBegan,
    SaleTime,
    SmashesResolved,
    StartEnded,
    TurnEnding,
    TurnStarted,
)
from engine.games.kings.rules.dice import draw_faces, roll_dice
from engine.games.kings.rules.gains import POINTS_TO_WIN, gain_energy, gain_points, heal
from engine.games.kings.rules.losses import assault, lose_hearts
from engine.games.kings.rules.market import buy_step, lay_market
from engine.games.kings.state import HEARTS_AT_START, OUTSIDE, ExtraTurn, KingsState
from engine.games.kings.tokyo.facts import TokyoLaid
from engine.games.kings.tokyo.places import (
    ask_to_yield,
    enter_step,
    is_two_player_energy,
    targets_of,
)

StepRule = Callable[[KingTable, Seat], Coroutine[tuple[Prompt, ...], tuple[Answer, ...], None]]

_DICE_AT_START: Final = 6
_POINTS_IN_TOKYO: Final = 2
_SET: Final = 3


# -- setting up ------------------------------------------------------------------------------------


async def set_up(table: KingTable) -> None:
    """Everybody outside, three cards of the match's decks for sale, and who begins."""
    match = table.match
    decks = table.game.decks_of(match.expansions)
    cards = tuple(sorted([card for deck in decks for card in deck.ids(match.revision)]))
    table.record(TokyoLaid(table.seats, HEARTS_AT_START, cards))
    lay_market(table)
    seats = tuple(Seat(each) for each in range(1, table.seats + 1))
    if table.options["first_player_rule"] == "random":
        (index,) = table.chance("first player", len(seats))
        table.record(FirstPlayerChosen(seats[index]))
        return
    while len(seats) > 1:
        seats = _most_smashes(table, seats)
    table.record(FirstPlayerChosen(seats[0]))


def _most_smashes(table: KingTable, seats: tuple[Seat, ...]) -> tuple[Seat, ...]:
    """Those of the seats that roll the most smashes (NOTES 2.8: ties roll again)."""
    smashes: list[int] = []
    for seat in seats:
        faces = draw_faces(table, _DICE_AT_START)
        table.record(FirstPlayerRolled(seat, faces))
        smashes.append(faces.count(SMASH))
    best = max(smashes)
    return tuple([seat for seat, count in zip(seats, smashes, strict=True) if count == best])


# -- the turn --------------------------------------------------------------------------------------


async def play_turn(table: KingTable) -> None:
    """One whole turn. A monster that dies in its own turn acts no more (B48)."""
    extra = next_turn(table.state)
    seat = extra.seat
    begin_turn(table, extra)
    for step in STEPS:
        table.moment()
        await step(table, seat)
        if not table.state.monster(seat).alive or table.state.cut_short:
            break
    await end_turn(table, seat)


def next_turn(state: KingsState) -> ExtraTurn:
    """Who is next: extra turns of the active seat, then of others, then the order (NOTES 1.12.5,
    S30).
    """
    living = state.living()
    waiting = [extra for extra in state.extra_turns if extra.seat in living]
    if waiting:
        return min(waiting, key=lambda extra: (extra.seat != state.active, extra.rank))
    if not state.turn:
        return ExtraTurn(seat=state.first, cause="")
    return ExtraTurn(seat=state.clockwise(state.round_seat)[0], cause="")


def begin_turn(table: KingTable, extra: ExtraTurn) -> None:
    """Record the checkpoint; it may depend on nothing but the state before it."""
    state = table.state
    waiting = list(state.extra_turns)
    if extra.cause:
        waiting.remove(extra)
    living = state.living()
    table.record(
        TurnBegan(
            seat=extra.seat,
            turn=state.turn + 1,
            cause=extra.cause,
            fewer_dice=extra.fewer_dice,
            round_seat=state.round_seat if extra.cause else extra.seat,
            extra_turns=tuple([each for each in waiting if each.seat in living]),
        )
    )


async def start(table: KingTable, seat: Seat) -> None:
    """Start effects in the order of NOTES 1.2."""
    await table.announce(TurnStarted(seat))
    if table.state.monster(seat).place != OUTSIDE:
        if is_two_player_energy(table):
            gain_energy(table, seat, 1, "starting_in_tokyo")
        else:
            gain_points(table, seat, _POINTS_IN_TOKYO, "starting_in_tokyo")
        await table.announce(BonusPaid(seat))
    if table.options["poison_timing"] == "own_turn_start":
        await suffer_poison(table, seat)
    if table.state.monster(seat).alive:
        await table.announce(StartEnded(seat))


async def suffer_poison(table: KingTable, seat: Seat) -> None:
    """All tokens are one loss; nobody deals it (S10, S14)."""
    monster = table.state.monster(seat)
    if monster.alive and monster.poison:
        await lose_hearts(table, [Loss(target=seat, amount=monster.poison, cause="poison")])


async def roll(table: KingTable, seat: Seat) -> None:
    """Roll, reroll, then the smashes that cards add are fixed (NOTES 1.3 to 1.5)."""
    await roll_dice(table, seat)
    added = table.stat(SMASHES, seat)
    if added:
        table.record(SmashesAdded(seat, added))
    if table.state.count(SMASH):
        added = table.stat(SMASHES_ON_SMASH, seat)
        if added:
            table.record(SmashesAdded(seat, added))


async def resolve(table: KingTable, seat: Seat) -> None:
    """Combinations first, then every kind of face, in the player's order (NOTES 1.6)."""
    await table.announce(ResolutionBegan(seat))
    for group in await _resolution_order(table, seat):
        if not table.state.monster(seat).alive:
            return
        await _RESOLVERS[group](table, seat)
    if not table.state.count(SMASH) and table.has_replacements(Assault):
        await resolve_smashes(table, seat)


async def _resolution_order(table: KingTable, seat: Seat) -> tuple[str, ...]:
    state = table.state
    dice = state.dice
    groups = tuple([face for face in NUMBERS if dice.count(face) >= _SET])
    groups += tuple([face for face in ("heart", "energy") if face in dice])
    if state.count(SMASH):
        groups += (SMASH,)
    if len(groups) < 2 or table.options["dice_resolution_order"] == "fixed":
        return groups
    answer = await table.ask(
        seat,
        "resolution_order",
        low=len(groups),
        high=len(groups),
        options=tuple([Option(group, f"group:{group}:{state.count(group)}") for group in groups]),
        default=Answer(picks=groups),
    )
    return answer.picks


async def _resolve_ones(table: KingTable, seat: Seat) -> None:
    await _resolve_number(table, seat, "one")


async def _resolve_twos(table: KingTable, seat: Seat) -> None:
    await _resolve_number(table, seat, "two")


async def _resolve_threes(table: KingTable, seat: Seat) -> None:
    await _resolve_number(table, seat, "three")


async def _resolve_number(table: KingTable, seat: Seat, face: str) -> None:
    """Three of a number give that many points, each further one 1 more."""
    number = next(each for each in NUMBERS if each == face)
    count = table.state.dice.count(number)
    gain_points(table, seat, NUMBERS[number] + count - _SET, f"set_of_{face}")
    await table.announce(NumberScored(seat, number, count))


async def resolve_hearts(table: KingTable, seat: Seat) -> None:
    """Heart dice heal or remove tokens, outside only; cards may know more uses (NOTES 1.6.3)."""
    hearts = table.state.dice.count("heart")
    own = _own_heart_uses(table, seat)
    offered = table.adjust(HeartUses(seat, hearts, own))
    uses = tuple([use for use in (offered.uses if offered else ()) if use.limit > 0])
    if not uses:
        return
    if len(uses) == 1 and uses == own[:1] and uses[0].id == "hearts":
        heal(table, seat, min(hearts, uses[0].limit), "heart_dice", by=seat)
        return
    low = min(hearts, sum([use.limit for use in own]))
    high = min(hearts, sum([use.limit for use in uses]))
    answer = await table.ask(
        seat,
        "use_hearts",
        form="allocate",
        low=low,
        high=high,
        options=tuple([Option(use.id, use.subject) for use in uses]),
        limits=tuple([use.limit for use in uses]),
        default=Answer(amounts=_greedily(uses, low)),
    )
    for use, amount in zip(uses, answer.amounts, strict=True):
        if amount:
            await _spend_hearts(table, seat, use, amount)


def _own_heart_uses(table: KingTable, seat: Seat) -> tuple[HeartUse, ...]:
    monster = table.state.monster(seat)
    if monster.place != OUTSIDE:
        return ()
    limits = {
        "hearts": table.stat(HEARTS_MAX, seat) - monster.hearts,
        "poison": monster.poison,
        "shrink": monster.shrink,
    }
    return tuple(
        [
            HeartUse(id=use, subject=f"hearts:{use}", limit=limit, target=seat)
            for use, limit in limits.items()
            if limit > 0
        ]
    )


def _greedily(uses: tuple[HeartUse, ...], total: int) -> tuple[int, ...]:
    amounts: list[int] = []
    for use in uses:
        amounts.append(min(use.limit, total))
        total -= amounts[-1]
    return tuple(amounts)


async def _spend_hearts(table: KingTable, seat: Seat, use: HeartUse, amount: int) -> None:
    if use.provider:
        await table.announce(HeartsSpent(seat, use, amount))
    elif use.id == "hearts":
        heal(table, seat, amount, "heart_dice", by=seat)
    else:
        table.record(TokensRemoved(seat, use.id, amount, "heart_dice"))


async def _resolve_energy(table: KingTable, seat: Seat) -> None:
    gain_energy(table, seat, table.state.dice.count("energy"), "energy_dice")


async def resolve_smashes(table: KingTable, seat: Seat) -> None:
    """Hit everybody in reach, then those in Tokyo stay or yield (NOTES 1.6.5, 1.7, 1.9).

    Also runs without smashes: cards may do damage by themselves, which then wounds nobody.
    """
    state = table.state
    if not state.monster(seat).alive:
        return
    smashes = state.count(SMASH)
    aim = table.adjust(Aim(seat, targets_of(state, seat)))
    targets = () if aim is None else aim.targets
    aftermath = await assault(
        table,
        seat,
        [
            Loss(target=each, source=seat, amount=smashes, cause="smash", wounds=smashes > 0)
            for each in targets
        ],
        smashes=smashes,
        by_dice=True,
    )
    if smashes:
        await table.announce(SmashesResolved(seat, smashes, targets))
    await ask_to_yield(table, aftermath)


_RESOLVERS: Final[dict[str, StepRule]] = {
    "one": _resolve_ones,
    "two": _resolve_twos,
    "three": _resolve_threes,
    "heart": resolve_hearts,
    "energy": _resolve_energy,
    "smash": resolve_smashes,
}


async def enter_tokyo(table: KingTable, seat: Seat) -> None:
    """NOTES 1.10."""
    enter_step(table, seat)


async def buy(table: KingTable, seat: Seat) -> None:
    """NOTES 1.11."""
    await buy_step(table, seat)


STEPS: Final[tuple[StepRule, ...]] = (start, roll, resolve, enter_tokyo, buy)


async def end_turn(table: KingTable, seat: Seat) -> None:
    """End effects, poison, then: has somebody won? (NOTES 1.12)"""
    table.moment()
    if not table.state.cut_short:
        await _sell(table, seat)
        await table.announce(TurnEnding(seat))
        if table.options["poison_timing"] == "own_turn_end":
            await suffer_poison(table, seat)
    winner = winner_by_points(table, seat)
    if winner:
        raise MatchOver((winner,), "twenty_points")


async def _sell(table: KingTable, seat: Seat) -> None:
    """Sales, then what their energy may be spent on before the end effects: nobody waits between.

    In the first revision that was asked before the sales too, and only after those that paid.
    """
    if not table.state.monster(seat).alive:
        return
    is_first = table.match.revision < 2
    if is_first:
        await table.offer(EndWindow(seat), "before_end")
    before = table.state
    await table.announce(SaleTime(seat))
    after = table.state
    if after.holdings is before.holdings:
        return
    if not is_first or after.monster(seat).energy > before.monster(seat).energy:
        await table.offer(EndWindow(seat), "before_end")


def winner_by_points(table: KingTable, seat: Seat) -> Seat:
    """Who is alive with 20 points: the active monster first, then clockwise (NOTES 2.11, 2.12)."""
    state = table.state
    enough = [each.seat for each in state.monsters if each.points >= POINTS_TO_WIN and each.alive]
    if seat in enough:
        return seat
    if not enough or table.options["vp_win_check"] == "own_turn_end":
        return NOBODY
    return next(each for each in state.clockwise(seat) if each in enough)


def measure(state: KingsState, seat: Seat, kind: str) -> int:
    """What standing answers are compared with: hearts where they are at stake, else energy."""
    monster = state.monster(seat)
    return monster.hearts if kind in ("yield_tokyo", "prevent_loss") else monster.energy
