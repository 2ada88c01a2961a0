"""Keep cards in printed order, It Has a Child! to Mimic."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from engine.core.prompts import Option
from engine.core.state import Holding
from engine.games.kings.cards import EVERYWHERE, keep
from engine.games.kings.facts import MonsterReborn
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import (
    Bought,
    Dying,
    Loss,
    SaleTime,
    Shelf,
    StartEnded,
    Ware,
)
from engine.games.kings.rules import market
from engine.games.kings.rules.gains import gain_energy, recover_energy
from engine.games.kings.state import HEARTS_AT_START, OUTSIDE
from engine.games.kings.tokyo.cards.deck import BASE

# -- It Has a Child! -------------------------------------------------------------------------------

it_has_a_child = keep(
    BASE,
    "it_has_a_child",
    "It Has a Child!",
    "它有孩子了",
    cost=7,
    text="At 0 hearts discard all your cards and points and go on outside Tokyo with 10 hearts.",
    text_zh="降到 0 颗心时，弃掉所有卡牌和分数，以 10 颗心在东京外继续。",
    sources=EVERYWHERE,
)


@it_has_a_child.after(Dying, when=lambda me, it: it.seat == me.seat and not me.monster.hearts)
async def pass_the_torch(me: KingMe, _: Dying) -> None:
    """Mandatory; the energy is kept (B64), and the place in Tokyo is left at once (S6, B20)."""
    for holding in me.state.held_by(me.seat):
        await market.discard(me.table, holding, me.cause)
    me.table.record(MonsterReborn(me.seat, HEARTS_AT_START, OUTSIDE, me.cause))


# -- Jets ------------------------------------------------------------------------------------------

jets = keep(
    BASE,
    "jets",
    "Jets",
    "喷气背包",
    cost=5,
    text="An attack because of which you yield costs you no hearts.",
    text_zh="因攻击而撤离时，该次攻击不使你失去心。",
    sources=EVERYWHERE,
)


@jets.replaces(
    Loss,
    when=lambda me, it: it.target == me.seat and it.wounds and not it.settled and me.is_in_tokyo(),
)
def start_the_engines(_: KingMe, loss: Loss) -> Loss:
    """The loss waits for the yield decision (S2); no use outside or against cards (S4)."""
    return replace(loss, held=True)


# -- Made in a Lab ---------------------------------------------------------------------------------

made_in_a_lab = keep(
    BASE,
    "made_in_a_lab",
    "Made in a Lab",
    "实验室制造",
    cost=2,
    text="While you buy, only you see the top card of the deck, and may buy it.",
    text_zh="购买时，只有你能看到牌库顶的牌，并可购买它。",
    sources=EVERYWHERE,
)


@made_in_a_lab.replaces(Shelf, when=lambda me, it: it.buyer == me.seat and not me.holding.used)
def look_into_the_lab(me: KingMe, shelf: Shelf) -> Shelf:
    """What is not bought stays on top; a copy shows one card more."""
    position = sum([ware.position >= 0 for ware in shelf.wares])
    card = market.peek(me.table, me.seat, position)
    if card is None:
        return shelf
    ware = Ware(
        id=f"top:{position}",
        card=card,
        price=market.price_of(me.table, me.seat, card),
        position=position,
        provider=me.holding.id,
    )
    return replace(shelf, wares=(*shelf.wares, ware))


@made_in_a_lab.after(Bought, when=lambda me, it: it.provider == me.holding.id)
def close_the_lab(me: KingMe, _: Bought) -> None:
    """Used up for this turn once its card was bought."""
    me.mark_used()


# -- Metamorph -------------------------------------------------------------------------------------

metamorph = keep(
    BASE,
    "metamorph",
    "Metamorph",
    "变形",
    cost=3,
    text="At the end of your turn you may discard keep cards of yours for the energy they cost.",
    text_zh="你的回合结束时，可弃掉任意张你的保留牌，获得其费用的能量。",
    text_first=(
        "At the end of your turn you may discard keep cards for the energy you paid for them.",
        "你的回合结束时，可弃掉任意张保留牌，获得购买时支付的能量。",
    ),
    asks={
        "sell": (
            "{seat}, which of your cards do you turn into energy?",
            "{seat}，将哪些卡牌换成能量？",
        ),
    },
    sources=EVERYWHERE,
)


@metamorph.after(SaleTime, when=lambda me, it: it.seat == me.seat)
async def shed_skin(me: KingMe, _: SaleTime) -> None:
    """Any number of cards, this one included, before all other end effects (S62, B64).

    A card that takes its owner's last hearts with it ends the sale: the dead act no more (B48).
    """
    own = me.state.held_by(me.seat)
    sold = await me.pick_holdings("metamorph.sell", own, low=0, high=len(own))
    printed = me.table.options["metamorph_refund"] == "printed"
    is_gain = me.table.options["friend_of_children_on_refund"] == "true"
    for holding in sold:
        if all(each.id != holding.id for each in me.state.held_by(me.seat)):
            break
        refund = me.table.cost(holding.card) if printed else holding.paid
        (gain_energy if is_gain else recover_energy)(me.table, me.seat, refund, me.cause)
        await market.discard(me.table, holding, me.cause)


# -- Mimic -----------------------------------------------------------------------------------------

mimic = keep(
    BASE,
    "mimic",
    "Mimic",
    "模仿者",
    cost=8,
    text="Counts as a keep card in front of any monster. Start of turn: 1 energy to change it.",
    text_zh="视为任一怪兽面前的一张保留牌。回合开始时可付 1 点能量改选。",
    asks={
        "model": ("{seat}, which card do you copy?", "{seat}，复制哪张卡牌？"),
        "change": (
            "{seat}, pay 1 energy to copy another card?",
            "{seat}，付 1 能量改为复制另一张卡牌吗？",
        ),
    },
    sources=EVERYWHERE,
)


def _models(me: KingMe) -> tuple[Holding, ...]:
    """Own cards may be copied (B64); the same card may not be chosen again to refill it (S20)."""
    me_now = me.holding
    return tuple(
        [
            each
            for each in me.state.holdings
            if each.card != mimic.id and each.id not in (me_now.id, me_now.copies)
        ]
    )


def _model_options(models: Iterable[Holding]) -> tuple[Option, ...]:
    return tuple(
        [Option(f"holding:{each.id}", f"holding:{each.card}:{each.seat}") for each in models]
    )


async def _imitate(me: KingMe, picked: str) -> None:
    model = next(each for each in me.state.holdings if f"holding:{each.id}" == picked)
    await market.copy_card(me.table, me.holding, model)


@mimic.gained(intrinsic=True)
async def choose_model(me: KingMe) -> None:
    """With nothing to copy it waits; bought from another monster its marker stays where it is."""
    if me.holding.copies:
        return
    picked = await me.table.pick(
        me.seat, "mimic.model", _model_options(_models(me)), cause=me.cause
    )
    if picked is not None:
        await _imitate(me, picked)


@mimic.after(
    StartEnded,
    intrinsic=True,
    when=lambda me, it: it.seat == me.seat and me.can_pay(1) and bool(_models(me)),
)
async def change_model(me: KingMe, _: StartEnded) -> None:
    """Before rolling, for 1 energy."""
    picked = await me.table.pick(
        me.seat, "mimic.change", _model_options(_models(me)), optional=True, cause=me.cause
    )
    if picked is not None:
        me.pay(1)
        await _imitate(me, picked)
