"""A tiny complete game whose cards let their owners act at any time, for tests of the kernel.

Every seat has coins, a purse (1 coin for a shield, whenever it likes), a whistle (nothing, for
nothing) and a bowl (a coin for who has none when the votes have been counted). In each round the
first seat spends coins if it has two, all vote openly, all hide coins in secret, and a die is
rolled. Three rounds, and it is over.
"""

from __future__ import annotations

from typing import cast

import msgspec

from engine import (
    Answer,
    Deck,
    Fact,
    Game,
    GameState,
    Holding,
    MatchOver,
    Me,
    Option,
    Prompt,
    PromptId,
    Public,
    Seat,
    Table,
    begins,
    evolves,
)
from tests.engine.acting import add_card

COINS = 3
ROUNDS = 3


class Chest(msgspec.Struct, frozen=True, omit_defaults=True):
    seat: Seat
    coins: int = 0
    shields: int = 0


class CoffersState(GameState, frozen=True, omit_defaults=True, kw_only=True, tag="test_coffers"):
    chests: tuple[Chest, ...] = ()


class ChestsLaid(Fact, frozen=True, tag="chests_laid"):
    seats: Public[int]


class BellRung(Fact, frozen=True, tag="bell_rung"):
    turn: Public[int]


class CoinsSpent(Fact, frozen=True, tag="coins_spent"):
    seat: Public[Seat]
    amount: Public[int]


class ShieldRaised(Fact, frozen=True, tag="shield_raised"):
    seat: Public[Seat]


class CoinFound(Fact, frozen=True, tag="coin_found"):
    seat: Public[Seat]


class VotesCounted(Fact, frozen=True, tag="votes_counted"):
    votes: Public[tuple[str, ...]]


@begins(ChestsLaid)
def lay_chests(fact: ChestsLaid) -> CoffersState:
    seats = [Seat(each + 1) for each in range(fact.seats)]
    return CoffersState(
        chests=tuple(Chest(each, COINS) for each in seats),
        holdings=tuple(
            Holding(id=3 * each - 2 + index, seat=each, card=card)
            for each in seats
            for index, card in enumerate(("purse", "whistle", "bowl"))
        ),
    )


@evolves(BellRung)
def ring_bell(state: CoffersState, fact: BellRung) -> CoffersState:
    return msgspec.structs.replace(state, turn=fact.turn)


def _with_chest(state: CoffersState, seat: Seat, coins: int, shields: int) -> CoffersState:
    chests = list(state.chests)
    old = chests[seat - 1]
    chests[seat - 1] = Chest(seat, old.coins + coins, old.shields + shields)
    return msgspec.structs.replace(state, chests=tuple(chests))


@evolves(CoinsSpent)
def spend_coins(state: CoffersState, fact: CoinsSpent) -> CoffersState:
    return _with_chest(state, fact.seat, -fact.amount, 0)


@evolves(ShieldRaised)
def raise_shield(state: CoffersState, fact: ShieldRaised) -> CoffersState:
    return _with_chest(state, fact.seat, 0, 1)


@evolves(CoinFound)
def find_coin(state: CoffersState, fact: CoinFound) -> CoffersState:
    return _with_chest(state, fact.seat, 1, 0)


@evolves(VotesCounted)
def count_votes(state: CoffersState, _: VotesCounted) -> CoffersState:
    return state


class CoffersMe(Me[CoffersState]):
    __slots__ = ()

    @property
    def coins(self) -> int:
        return self.table.state.chests[self.seat - 1].coins

    def can_pay(self, price: int) -> bool:
        return self.coins >= price

    def pay(self, price: int) -> None:
        if price:
            self.table.record(CoinsSpent(self.seat, price))


DECK: Deck[CoffersMe] = Deck("base")


purse = add_card(DECK, "purse", "Purse", "钱袋")
whistle = add_card(DECK, "whistle", "Whistle", "哨子")
bowl = add_card(DECK, "bowl", "Bowl", "碗")


class Almsgiving(msgspec.Struct, frozen=True, gc=False):
    """Who has nothing gets something."""


@purse.anytime(price=1, since=2)
def open_purse(me: CoffersMe) -> None:
    me.table.record(ShieldRaised(me.seat))


@whistle.anytime(since=3)
def blow_whistle(_: CoffersMe) -> None:
    """It may be blown for ever; that must have an end."""


@bowl.after(Almsgiving, when=lambda me, _: not me.coins)
def hold_out_bowl(me: CoffersMe, _: Almsgiving) -> None:
    me.table.record(CoinFound(me.seat))


async def set_up(table: Table[CoffersState]) -> None:
    table.record(ChestsLaid(table.seats))


async def play_round(table: Table[CoffersState]) -> None:
    if table.state.turn == ROUNDS:
        raise MatchOver((), "the_end")
    table.record(BellRung(table.state.turn + 1))
    first = table.state.chests[0]
    if first.coins >= 2:
        answer = await table.ask(
            first.seat, "spend", form="number", high=first.coins, default=Answer(number=0)
        )
        if answer.number:
            table.record(CoinsSpent(first.seat, answer.number))
    ballots = (Option("yes"), Option("no"))
    votes = await table.ask_all(
        [
            Prompt(PromptId(""), each.seat, "vote", low=1, options=ballots, default=Answer(("no",)))
            for each in table.state.chests
        ]
    )
    table.record(VotesCounted(tuple(each.picks[0] for each in votes)))
    await table.announce(Almsgiving())
    hidden = await table.ask_all(
        [
            Prompt(
                PromptId(""),
                each.seat,
                "hide",
                form="number",
                high=each.coins,
                default=Answer(number=0),
            )
            for each in table.state.chests
        ],
        secret=True,
    )
    table.chance("die", 6, 1 + sum(cast("int", each.number) for each in hidden))


COFFERS: Game[CoffersState] = Game(
    id="test_coffers",
    name="Coffers",
    name_zh="金库",
    seats_low=2,
    seats_high=5,
    revision=3,
    state=CoffersState,
    facts=(BellRung, ChestsLaid, CoinFound, CoinsSpent, ShieldRaised, VotesCounted),
    checkpoint=BellRung,
    setup=set_up,
    turn=play_round,
    me=lambda table, seat, holding: CoffersMe(table, seat, holding),
    decks=(cast("Deck[Me[CoffersState]]", DECK),),
    phrases={
        "prompt.spend": ("{seat}, how many coins?", "{seat}，花几枚？"),
        "prompt.vote": ("{seat}, yes or no?", "{seat}，赞成吗？"),
        "prompt.hide": ("{seat}, how many do you hide?", "{seat}，藏几枚？"),
    },
)
