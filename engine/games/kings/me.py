"""What a card's owner can do and ask: the verbs of the card modules."""

from __future__ import annotations

from collections.abc import Iterable

from engine.core.prompts import Answer, Option
from engine.core.state import Holding
from engine.core.table import Me
from engine.core.visibility import NOBODY, Seat
from engine.games.kings.board import KingTable, is_prized
from engine.games.kings.faces import FACES, SMASH, Face
from engine.games.kings.facts import (
    CardUsed,
    CounterSet,
    DieSet,
    EnergyGiven,
    ExtraTurnGranted,
    MonsterGuarded,
    TokensPut,
)
from engine.games.kings.proposals import HEARTS_MAX, EnergyAtRisk, Loss
from engine.games.kings.rules import dice, gains, losses, market
from engine.games.kings.state import KingsState, Monster


class KingMe(Me[KingsState]):
    """The table as the owner of a card sees it."""

    __slots__ = ()

    # -- looking -----------------------------------------------------------------------------------

    @property
    def state(self) -> KingsState:
        """The table as it is now."""
        return self.table.state

    @property
    def monster(self) -> Monster:
        """The owner's monster as it is now."""
        return self.table.state.monsters[self.seat - 1]

    @property
    def cause(self) -> str:
        """The card that this is, for the log."""
        return self._holding.card

    @property
    def is_active(self) -> bool:
        """Is it the owner's turn?"""
        return self.table.state.active == self.seat

    def is_in_tokyo(self, seat: Seat = NOBODY) -> bool:
        """Is the owner's (or another) monster in the place that everybody fights for?"""
        return is_prized(self.table, self.state.monster(seat or self.seat).place)

    def others(self) -> tuple[Seat, ...]:
        """All other living monsters, in turn order from the owner."""
        return tuple([each for each in self.state.clockwise(self.seat) if each != self.seat])

    def neighbours(self) -> tuple[Seat, ...]:
        """The nearest living monsters on either side; only one when two are left (S18)."""
        others = self.others()
        return (others[0], others[-1]) if len(others) > 1 else others

    def is_missing_hearts(self, seat: Seat = NOBODY) -> bool:
        """Is the owner's (or another) monster below its maximum?"""
        seat = seat or self.seat
        return self.state.monster(seat).hearts < self.table.stat(HEARTS_MAX, seat)

    def used_by_seat(self) -> int:
        """How often the owner used this card or a copy of it in this turn."""
        acts_as = self.table.acts_as(self.holding)
        return sum(
            [
                each.used
                for each in self.state.held_by(self.seat)
                if self.table.acts_as(each) == acts_as
            ]
        )

    # -- gaining and losing ------------------------------------------------------------------------

    def may_act(self) -> bool:
        return self.monster.hearts > 0

    def can_pay(self, price: int) -> bool:
        return self.table.state.monsters[self.seat - 1].energy >= price

    def pay(self, price: int) -> None:
        gains.lose_energy(self.table, self.seat, price, self.cause)

    def gain_points(self, amount: int) -> None:
        """Points for the owner."""
        gains.gain_points(self.table, self.seat, amount, self.cause)

    def gain_energy(self, amount: int) -> None:
        """Energy for the owner, from the bank."""
        gains.gain_energy(self.table, self.seat, amount, self.cause)

    def take_points(self, seat: Seat, amount: int) -> None:
        """Another monster loses points."""
        gains.lose_points(self.table, seat, amount, self.cause)

    async def threaten_energy(self, seat: Seat) -> None:
        """Another monster is about to lose energy: it may spend some of it first."""
        await self.table.offer(EnergyAtRisk(seat), "before_energy_loss", first=seat)

    def take_energy(self, seat: Seat, amount: int) -> None:
        """Another monster loses energy."""
        gains.lose_energy(self.table, seat, amount, self.cause)

    def collect(self, giver: Seat, amount: int) -> None:
        """Another monster pays the owner, as far as it can."""
        amount = min(amount, self.state.monster(giver).energy)
        if amount > 0:
            self.table.record(EnergyGiven(giver, self.seat, amount, self.cause))

    def heal(self, amount: int, seat: Seat = NOBODY) -> int:
        """The owner's (or another) monster gains hearts; how many it really gained."""
        return gains.heal(self.table, seat or self.seat, amount, self.cause, by=self.seat)

    async def hurt(self, seats: Iterable[Seat], amount: int) -> None:
        """All these monsters lose hearts in one event."""
        entries = [
            Loss(target=seat, source=self.seat, amount=amount, cause=self.cause) for seat in seats
        ]
        await losses.assault(self.table, self.seat, entries)

    def guard(self) -> None:
        """The owner's monster loses no hearts for the rest of this turn."""
        self.table.record(MonsterGuarded(self.seat, self.cause))

    def put_token(self, seat: Seat, token: str) -> None:
        """A poison or shrink token for a monster."""
        self.table.record(TokensPut(seat, token, 1, self.cause))

    def grant_turn(self, *, fewer_dice: int = 0, rank: int) -> None:
        """The owner gets another turn after this one."""
        self.table.record(ExtraTurnGranted(self.seat, self.cause, fewer_dice, rank))

    # -- the card itself ---------------------------------------------------------------------------

    def mark_used(self) -> None:
        """Count one more use of this copy in this turn."""
        self.table.record(CardUsed(self.seat, self.cause, self._holding.id))

    def set_counter(self, counter: int) -> None:
        """So many tokens lie on this copy now."""
        self.table.record(CounterSet(self.seat, self.cause, self._holding.id, counter))

    async def discard_self(self) -> None:
        """This copy goes to the discard pile."""
        await market.discard(self.table, self.holding, self.cause)

    # -- dice --------------------------------------------------------------------------------------

    def reroll_die(self, die: int) -> Face:
        """Roll one of the active monster's dice again; what it shows now."""
        dice.reroll(self.table, self.state.active, (die,), self.cause, by=self.seat)
        return self.state.dice[die - 1]

    async def throw(self, count: int) -> tuple[Face, ...]:
        """Throw dice for this card."""
        return await dice.throw_dice(self.table, self.seat, count, self.cause)

    def set_die(self, die: int, face: Face) -> None:
        """Turn one of the dice to a face."""
        self.table.record(DieSet(self.seat, die, face, self.cause))

    async def pick_die(
        self, kind: str, *, showing: Face | None = None, optional: bool = False
    ) -> int:
        """Which of the turn's dice? 0: none."""
        options = dice.die_options(self.state.dice, showing)
        picked = await self.table.pick(
            self.seat, kind, options, optional=optional, cause=self.cause
        )
        return 0 if picked is None else dice.die_number(picked)

    async def pick_face(self, kind: str) -> Face:
        """Which face?"""
        options = tuple(Option(face, face) for face in FACES)
        picked = await self.table.pick(self.seat, kind, options, default=SMASH, cause=self.cause)
        return next(face for face in FACES if face == picked)

    # -- questions ---------------------------------------------------------------------------------

    async def wants(self, kind: str, *, default: bool = False) -> bool:
        """Yes or no?"""
        answer = await self.table.ask(
            self.seat,
            kind,
            low=1,
            options=(Option("yes"), Option("no")),
            default=Answer(picks=("yes" if default else "no",)),
            cause=self.cause,
        )
        return answer.picks == ("yes",)

    async def pick_holdings(
        self, kind: str, among: Iterable[Holding], *, low: int, high: int
    ) -> tuple[Holding, ...]:
        """Which of these cards in front of monsters?"""
        models = {f"holding:{each.id}": each for each in among}
        options = tuple(
            Option(id, f"holding:{each.card}:{each.seat}")
            for id, each in models.items()  # noqa: A001
        )
        answer = await self.table.ask(
            self.seat,
            kind,
            low=low,
            high=high,
            options=options,
            default=Answer(picks=tuple(models)[:low]),
            cause=self.cause,
        )
        return tuple(models[pick] for pick in answer.picks)


def king_me(table: KingTable, seat: Seat, holding: Holding) -> KingMe:
    """What a card's functions get."""
    return KingMe(table, seat, holding)
