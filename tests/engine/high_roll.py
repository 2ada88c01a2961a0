"""A tiny complete game with hidden information, for tests of the kernel; it is not shipped.

Every round each seat draws a secret card from 1 to 10, all decide at the same time whether to swap
it, then the cards are shown; the highest card takes a point. Two points win.
"""

from __future__ import annotations

import msgspec

from engine import (
    Answer,
    Fact,
    Game,
    GameState,
    Hidden,
    MatchOver,
    Me,
    Option,
    OptionSpec,
    Prompt,
    PromptId,
    Public,
    Seat,
    Secret,
    Table,
    begins,
    evolves,
)


class Hand(msgspec.Struct, frozen=True, omit_defaults=True):
    seat: Seat
    card: int | Hidden = 0
    points: int = 0


class HighRollState(GameState, frozen=True, omit_defaults=True, kw_only=True, tag="test_high_roll"):
    hands: tuple[Hand, ...] = ()


class HandsLaid(Fact, frozen=True, tag="hands_laid"):
    seats: Public[int]


class RoundBegan(Fact, frozen=True, tag="round_began"):
    turn: Public[int]


class CardDealt(Fact, frozen=True, tag="card_dealt"):
    seat: Public[Seat]
    card: Secret[int]


class CardsShown(Fact, frozen=True, tag="cards_shown"):
    cards: Public[tuple[int, ...]]


class PointTaken(Fact, frozen=True, tag="point_taken"):
    seat: Public[Seat]


@begins(HandsLaid)
def lay_hands(fact: HandsLaid) -> HighRollState:
    return HighRollState(hands=tuple(Hand(Seat(each + 1)) for each in range(fact.seats)))


@evolves(RoundBegan)
def begin_round(state: HighRollState, fact: RoundBegan) -> HighRollState:
    return msgspec.structs.replace(state, turn=fact.turn)


def _with_hand(state: HighRollState, seat: Seat, **changes: object) -> HighRollState:
    hands = list(state.hands)
    hands[seat - 1] = msgspec.structs.replace(hands[seat - 1], **changes)
    return msgspec.structs.replace(state, hands=tuple(hands))


@evolves(CardDealt)
def deal_card(state: HighRollState, fact: CardDealt) -> HighRollState:
    return _with_hand(state, fact.seat, card=fact.card)


@evolves(CardsShown)
def show_cards(state: HighRollState, fact: CardsShown) -> HighRollState:
    for hand, card in zip(state.hands, fact.cards, strict=True):
        state = _with_hand(state, hand.seat, card=card)
    return state


@evolves(PointTaken)
def take_point(state: HighRollState, fact: PointTaken) -> HighRollState:
    return _with_hand(state, fact.seat, points=state.hands[fact.seat - 1].points + 1)


async def set_up(table: Table[HighRollState]) -> None:
    table.record(HandsLaid(table.seats))


async def play_round(table: Table[HighRollState]) -> None:
    table.record(RoundBegan(table.state.turn + 1))
    for hand in table.state.hands:
        _deal(table, hand.seat)
    question = (Option("swap"), Option("keep"))
    answers = await table.ask_all(
        [
            Prompt(
                PromptId(""), hand.seat, "swap", low=1, options=question, default=Answer(("keep",))
            )
            for hand in table.state.hands
        ],
        secret=True,
    )
    for hand, answer in zip(table.state.hands, answers, strict=True):
        if answer.picks == ("swap",):
            _deal(table, hand.seat)
    cards = [hand.card for hand in table.state.hands if not isinstance(hand.card, Hidden)]
    table.record(CardsShown(tuple(cards)))
    best = max(cards)
    if cards.count(best) == 1:
        table.record(PointTaken(Seat(cards.index(best) + 1)))
    winners = tuple(hand.seat for hand in table.state.hands if hand.points == 2)
    if winners:
        raise MatchOver(winners, "two_points")


def _deal(table: Table[HighRollState], seat: Seat) -> None:
    (value,) = table.chance("card", 10, audience=(seat,))
    table.record(CardDealt(seat, value + 1))


HIGH_ROLL: Game[HighRollState] = Game(
    id="test_high_roll",
    name="High Roll",
    name_zh="比大小",
    seats_low=2,
    seats_high=5,
    revision=1,
    state=HighRollState,
    facts=(HandsLaid, RoundBegan, CardDealt, CardsShown, PointTaken),
    checkpoint=RoundBegan,
    setup=set_up,
    turn=play_round,
    me=lambda table, seat, holding: Me(table, seat, holding),
    options=(OptionSpec("deck", ("small", "large"), "small", "How many cards.", "牌数。"),),
    presets={"quick": {"deck": "small"}},
    phrases={
        "prompt.swap": ("{seat}, swap your card?", "{seat}，换牌吗？"),
        "option.swap": ("swap", "换"),
        "option.keep": ("keep", "留"),
        "fact.card_dealt": ("{seat} gets {card}.", "{seat} 得到 {card}。"),
        "fact.cards_shown": ("Cards: {cards}", "亮牌：{cards}"),
        "fact.point_taken": ("{seat} takes the point.", "{seat} 得一分。"),
    },
)
