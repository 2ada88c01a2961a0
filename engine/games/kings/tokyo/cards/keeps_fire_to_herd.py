"""Keep cards in printed order, Fire Breathing to Herd Culler."""

from __future__ import annotations

from msgspec.structs import replace

from engine.games.kings.cards import EVERYWHERE, FIRST, SECOND, keep
from engine.games.kings.faces import ONE
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import (
    HEARTS_MAX,
    ROLLS,
    Assault,
    ChangeWindow,
    EnergyGain,
    HeartsSpent,
    HeartUse,
    HeartUses,
    NumberScored,
    TurnEnding,
)
from engine.games.kings.tokyo.cards.deck import BASE

# -- Fire Breathing --------------------------------------------------------------------------------

fire_breathing = keep(
    BASE,
    "fire_breathing",
    "Fire Breathing",
    "喷火",
    cost=4,
    text="A smash in your result costs each of your neighbours one heart more, wherever they are.",
    text_zh="结果中有爪击时，你两侧的怪兽无论在哪里都多失去 1 颗心。",
    text_first=(
        "Whenever you deal damage your neighbours lose one heart more.",
        "你造成伤害时，两侧的怪兽多失去 1 颗心。",
    ),
    sources=EVERYWHERE,
)


def _singe(me: KingMe, assault: Assault) -> Assault:
    for neighbour in me.neighbours():
        assault = assault.plus(neighbour, 1, me.cause)
    return assault


@fire_breathing.replaces(
    Assault, under=SECOND, order=10, when=lambda me, it: it.source == me.seat and it.smashes > 0
)
def singe_neighbours(me: KingMe, assault: Assault) -> Assault:
    """Part of the same loss for neighbours that are smashed, a loss of its own for others (B16)."""
    return _singe(me, assault)


@fire_breathing.replaces(
    Assault,
    under=FIRST,
    order=10,
    when=lambda me, it: (
        it.source == me.seat
        and me.is_active
        and any(loss.amount > 0 and loss.target != me.seat for loss in it.losses)
    ),
)
def singe_with_everything(me: KingMe, assault: Assault) -> Assault:
    """The first edition also counts damage done by cards."""
    return _singe(me, assault)


# -- Freeze Time -----------------------------------------------------------------------------------

freeze_time = keep(
    BASE,
    "freeze_time",
    "Freeze Time",
    "冻结时间",
    cost=5,
    text="After a turn with three or more ones you may take another turn with one die less.",
    text_zh="掷出至少三个 1 的回合后，你可以再进行一个少一颗骰子的回合。",
    asks={
        "again": (
            "{seat}, take another turn with one die less?",
            "{seat}，再进行一个少一颗骰子的回合吗？",
        ),
    },
    sources=EVERYWHERE,
)


@freeze_time.after(
    TurnEnding,
    order=60,
    when=lambda me, it: (
        it.seat == me.seat
        and me.monster.alive
        and me.state.dice.count(ONE) >= 3
        and not me.used_by_seat()
    ),
)
async def stop_the_clock(me: KingMe, _: TurnEnding) -> None:
    """Counts when bought later in the turn (B52); each turn of a chain has one die less."""
    me.mark_used()
    if await me.wants("freeze_time.again", default=True):
        me.grant_turn(fewer_dice=me.state.fewer_dice + 1, rank=0)


# -- Friend of Children ----------------------------------------------------------------------------

friend_of_children = keep(
    BASE,
    "friend_of_children",
    "Friend of Children",
    "孩子之友",
    cost=3,
    text="Whenever you gain energy you gain 1 more.",
    text_zh="每当你获得能量，多获得 1 点。",
    sources=EVERYWHERE,
)


@friend_of_children.replaces(EnergyGain, when=lambda me, it: it.seat == me.seat)
def share_sweets(_: KingMe, gain: EnergyGain) -> EnergyGain:
    """Once per gain, not per energy."""
    return replace(gain, amount=gain.amount + 1)


# -- Giant Brain -----------------------------------------------------------------------------------

giant_brain = keep(
    BASE,
    "giant_brain",
    "Giant Brain",
    "巨脑",
    cost=5,
    text="You have one roll more each turn.",
    text_zh="你每回合多一次掷骰。",
    adds={ROLLS: 1},
    sources=EVERYWHERE,
)

# -- Gourmet ---------------------------------------------------------------------------------------

gourmet = keep(
    BASE,
    "gourmet",
    "Gourmet",
    "美食家",
    cost=4,
    text="Scoring ones gives you 2 points more.",
    text_zh="以 1 得分时多得 2 分。",
    sources=EVERYWHERE,
)


@gourmet.after(NumberScored, when=lambda me, it: it.seat == me.seat and it.face == ONE)
def savour(me: KingMe, _: NumberScored) -> None:
    """Once per turn, not per additional one."""
    me.gain_points(2)


# -- Healing Ray -----------------------------------------------------------------------------------

healing_ray = keep(
    BASE,
    "healing_ray",
    "Healing Ray",
    "治疗射线",
    cost=4,
    text="Your hearts may heal other monsters; each pays you 2 energy per heart, or all it has.",
    text_zh="你的心可用来治疗其他怪兽；每颗心对方付你 2 点能量，不足则全付。",
    sources=EVERYWHERE,
)


@healing_ray.replaces(HeartUses, when=lambda me, it: it.seat == me.seat)
def list_patients(me: KingMe, uses: HeartUses) -> HeartUses:
    """Anybody below its maximum, from inside Tokyo as well (S38)."""
    listed = [use.subject for use in uses.uses]
    patients = [
        HeartUse(
            id=f"ray:{me.holding.id}:{seat}",
            subject=f"heal:{seat}",
            limit=me.table.stat(HEARTS_MAX, seat) - me.state.monster(seat).hearts,
            target=seat,
            provider=me.holding.id,
        )
        for seat in me.others()
        if f"heal:{seat}" not in listed
    ]
    return replace(uses, uses=(*uses.uses, *patients))


@healing_ray.after(HeartsSpent, when=lambda me, it: it.use.provider == me.holding.id)
def sell_hearts(me: KingMe, spent: HeartsSpent) -> None:
    """The patient cannot refuse; without energy it is healed for nothing."""
    gained = me.heal(spent.amount, spent.use.target)
    me.collect(spent.use.target, 2 * gained)


# -- Herbivore -------------------------------------------------------------------------------------

herbivore = keep(
    BASE,
    "herbivore",
    "Herbivore",
    "食草者",
    cost=5,
    text="A turn of yours in which nobody lost hearts through you gives you 1 point.",
    text_zh="你的回合中若无人因你失去心，获得 1 分。",
    sources=EVERYWHERE,
)


@herbivore.after(TurnEnding, order=30, when=lambda me, it: it.seat == me.seat)
def graze(me: KingMe, _: TurnEnding) -> None:
    """Damage by cards counts, on its owner, too; what was cancelled does not (S60)."""
    if not me.monster.harm:
        me.gain_points(1)


# -- Herd Culler -----------------------------------------------------------------------------------

herd_culler = keep(
    BASE,
    "herd_culler",
    "Herd Culler",
    "牧群选择者",
    cost=3,
    text="Once per turn you may turn one of your dice to a one.",
    text_zh="每回合一次，可将你的一颗骰子变为 1。",
    asks={
        "die": ("{seat}, which die becomes a one?", "{seat}，将哪颗骰子变为 1？"),
    },
    sources=EVERYWHERE,
)


@herd_culler.offers(
    ChangeWindow,
    when=lambda me, it: it.seat == me.seat and bool(me.state.dice) and not me.holding.used,
)
async def cull(me: KingMe, window: ChangeWindow) -> ChangeWindow:
    """A copy may do it once more."""
    me.mark_used()
    me.set_die(await me.pick_die("herd_culler.die"), ONE)
    return window
