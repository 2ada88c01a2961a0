"""Keep cards in printed order, Nova Breath to Psychic Probe."""

from __future__ import annotations

from msgspec.structs import replace

from engine.games.kings.cards import EVERYWHERE, FIRST, SECOND, keep
from engine.games.kings.faces import HEART, ONE, THREE, TWO
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import (
    SMASHES,
    Aim,
    Assault,
    ChangeWindow,
    LastRollDone,
    ProbedDie,
    ResolutionBegan,
    Revealed,
    Shelf,
    Ware,
    Wounded,
)
from engine.games.kings.rules import market
from engine.games.kings.tokyo.cards.deck import BASE

# -- Nova Breath -----------------------------------------------------------------------------------

nova_breath = keep(
    BASE,
    "nova_breath",
    "Nova Breath",
    "新星吐息",
    cost=7,
    text="Your smashes hit every other monster.",
    text_zh="你的爪击命中所有其他怪兽。",
    sources=EVERYWHERE,
)


@nova_breath.replaces(Aim, when=lambda me, it: it.source == me.seat)
def aim_everywhere(me: KingMe, aim: Aim) -> Aim:
    """Does not change where its owner may move (S58)."""
    return replace(aim, targets=me.others())


# -- Detritivore -----------------------------------------------------------------------------------

detritivore = keep(
    BASE,
    "detritivore",
    "Detritivore",
    "腐食者",
    cost=4,
    text="A one, a two and a three in your result give you 2 points; the dice still count.",
    text_zh="结果中有 1、2、3 各至少一个时获得 2 分；这些骰子照常使用。",
    sources=EVERYWHERE,
)


@detritivore.after(
    ResolutionBegan,
    when=lambda me, it: (
        it.seat == me.seat and all(face in me.state.dice for face in (ONE, TWO, THREE))
    ),
)
def sort_the_garbage(me: KingMe, _: ResolutionBegan) -> None:
    """Once per turn."""
    me.gain_points(2)


# -- Opportunist -----------------------------------------------------------------------------------

opportunist = keep(
    BASE,
    "opportunist",
    "Opportunist",
    "机会主义者",
    cost=3,
    text="Each newly revealed card is offered to you first, in anybody's turn.",
    text_zh="每张新翻开的卡牌，在任何人的回合都先由你决定是否购买。",
    asks={
        "buy": ("{seat}, snap up a card that was just revealed?", "{seat}，抢购刚翻开的卡牌吗？"),
    },
    sources=EVERYWHERE,
)


@opportunist.after(Revealed, when=lambda me, _: me.monster.alive)
async def snap_up(me: KingMe, revealed: Revealed) -> None:
    """Only the newly revealed cards; what a purchase reveals is offered afterwards."""
    while me.monster.alive:
        wares = market.market_wares(me.table, me.seat, revealed.numbers)
        options = market.ware_options(me.table, me.seat, wares)
        picked = await me.table.pick(
            me.seat, "opportunist.buy", options, optional=True, cause=me.cause
        )
        if picked is None:
            return
        await market.purchase(me.table, me.seat, next(w for w in wares if w.id == picked))


# -- Parasitic Tentacles ---------------------------------------------------------------------------

parasitic_tentacles = keep(
    BASE,
    "parasitic_tentacles",
    "Parasitic Tentacles",
    "寄生触手",
    cost=4,
    text="You may buy keep cards from other monsters, which get the energy.",
    text_zh="你可以购买其他怪兽的保留牌，能量付给对方。",
    sources=EVERYWHERE,
)


@parasitic_tentacles.replaces(Shelf, when=lambda me, it: it.buyer == me.seat)
def reach_out(me: KingMe, shelf: Shelf) -> Shelf:
    """In the own buy step, at one's own price, and never one's own cards (S36, B24)."""
    listed = [ware.id for ware in shelf.wares]
    wares = [
        Ware(
            id=f"holding:{each.id}",
            card=each.card,
            price=market.price_of(me.table, me.seat, each.card),
            holding=each.id,
            seller=each.seat,
            provider=me.holding.id,
        )
        for each in me.state.holdings
        if each.seat != me.seat and f"holding:{each.id}" not in listed
    ]
    return replace(shelf, wares=(*shelf.wares, *wares))


# -- Plot Twist ------------------------------------------------------------------------------------

plot_twist = keep(
    BASE,
    "plot_twist",
    "Plot Twist",
    "剧情反转",
    cost=3,
    text="Once: turn one of your dice to any face, then discard this card.",
    text_zh="一次性：将你的一颗骰子变为任意面，然后弃掉此卡。",
    asks={
        "die": ("{seat}, which die do you turn?", "{seat}，改变哪颗骰子？"),
        "face": ("{seat}, to which face?", "{seat}，变为哪一面？"),
    },
    sources=EVERYWHERE,
)


@plot_twist.offers(ChangeWindow, when=lambda me, it: it.seat == me.seat and bool(me.state.dice))
async def rewrite_the_ending(me: KingMe, window: ChangeWindow) -> ChangeWindow:
    """A copy that is used up is itself discarded; the real card stays."""
    die = await me.pick_die("plot_twist.die")
    me.set_die(die, await me.pick_face("plot_twist.face"))
    await me.discard_self()
    return window


# -- Poison Quills ---------------------------------------------------------------------------------

poison_quills = keep(
    BASE,
    "poison_quills",
    "Poison Quills",
    "毒刺",
    cost=3,
    text="Three or more twos add two smashes to your result.",
    text_zh="至少三个 2 时，结果额外增加两个爪击。",
    text_first=("Scoring twos also deals 2 damage.", "以 2 得分时另造成 2 点伤害。"),
    sources=EVERYWHERE,
)
poison_quills.adds_under(SECOND, SMASHES, lambda me: 2 if me.state.dice.count(TWO) >= 3 else 0)


@poison_quills.replaces(
    Assault,
    under=FIRST,
    when=lambda me, it: it.by_dice and it.source == me.seat and me.state.dice.count(TWO) >= 3,
)
def shoot_quills(me: KingMe, assault: Assault) -> Assault:
    """Damage to everybody in reach, not smashes."""
    for loss in assault.losses:
        assault = assault.plus(loss.target, 2, me.cause)
    return assault


# -- Poison Spit -----------------------------------------------------------------------------------

poison_spit = keep(
    BASE,
    "poison_spit",
    "Poison Spit",
    "毒液喷吐",
    cost=4,
    text="Monsters wounded by your smashes get a poison token: 1 heart at the end of their turns.",
    text_zh="被你的爪击击伤的怪兽得到一个中毒标记：其回合结束时每个标记失去 1 颗心。",
    sources=EVERYWHERE,
)


@poison_spit.after(Wounded, when=lambda me, it: it.by == me.seat)
def spit_poison(me: KingMe, wounded: Wounded) -> None:
    """One per attack and copy, only when hearts were really lost (B2, B26)."""
    me.put_token(wounded.seat, "poison")


# -- Psychic Probe ---------------------------------------------------------------------------------

psychic_probe = keep(
    BASE,
    "psychic_probe",
    "Psychic Probe",
    "心灵探测",
    cost=3,
    text="Once in each other turn reroll one die of that monster. A heart: discard this card.",
    text_zh="其他怪兽的每个回合一次，可重掷其一颗骰子。若为心，弃掉此卡。",
    asks={
        "die": ("{seat}, reroll one of these dice?", "{seat}，重掷其中一颗骰子吗？"),
    },
    sources=EVERYWHERE,
)


@psychic_probe.after(
    LastRollDone,
    when=lambda me, it: (
        it.seat != me.seat and me.monster.alive and bool(me.state.dice) and not me.used_by_seat()
    ),
)
async def read_minds(me: KingMe, _: LastRollDone) -> None:
    """After the last roll, before its owner changes dice (S26, S28); the new face counts for it."""
    die = await me.pick_die("psychic_probe.die", optional=True)
    if not die:
        return
    me.mark_used()
    me.reroll_die(die)
    await me.table.offer(ProbedDie(me.seat, die), "change_probed_die", first=me.seat)
    if me.state.dice[die - 1] == HEART:
        await me.discard_self()
