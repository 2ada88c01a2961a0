"""Keep cards in printed order, Rapid Healing to Wings."""

from __future__ import annotations

from msgspec.structs import replace

from engine.games.kings.cards import EVERYWHERE, FIRST, SECOND, keep
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import (
    SMASHES_ON_SMASH,
    Assault,
    BonusPaid,
    ChangeWindow,
    EndWindow,
    EnergyAtRisk,
    Heal,
    HeartsWereLost,
    Loss,
    RollWindow,
    TurnEnding,
    Wounded,
)
from engine.games.kings.tokyo.cards.deck import BASE

# -- Rapid Healing ---------------------------------------------------------------------------------

rapid_healing = keep(
    BASE,
    "rapid_healing",
    "Rapid Healing",
    "快速治疗",
    cost=3,
    text="Whenever you like, pay 2 energy for 1 heart.",
    text_zh="任何时候可付 2 点能量获得 1 颗心。",
    sources=EVERYWHERE,
)


@rapid_healing.offers(
    Loss, price=2, when=lambda me, it: it.target == me.seat and me.is_missing_hearts()
)
async def heal_in_time(me: KingMe, loss: Loss) -> Loss:
    """Before the loss, any number of times (S40, B10)."""
    me.heal(1)
    return loss


@rapid_healing.offers(
    EnergyAtRisk, price=2, when=lambda me, it: it.target == me.seat and me.is_missing_hearts()
)
async def heal_before_the_storm(me: KingMe, window: EnergyAtRisk) -> EnergyAtRisk:
    """Before the energy is taken away."""
    me.heal(1)
    return window


@rapid_healing.anytime(price=2, when=lambda me: me.is_missing_hearts(), since=2)
def heal_at_leisure(me: KingMe) -> None:
    """Whenever the match waits, in anybody's turn (NOTES 1.13)."""
    me.heal(1)


@rapid_healing.offers(
    EndWindow, price=2, when=lambda me, it: it.seat == me.seat and me.is_missing_hearts()
)
async def heal_before_the_end(me: KingMe, window: EndWindow) -> EndWindow:
    """With the energy of a sale, before the end effects look at it."""
    me.heal(1)
    return window


# -- Regeneration ----------------------------------------------------------------------------------

regeneration = keep(
    BASE,
    "regeneration",
    "Regeneration",
    "再生",
    cost=4,
    text="Whenever you gain hearts you gain 1 more.",
    text_zh="每当你获得心，多获得 1 颗。",
    sources=EVERYWHERE,
)


@regeneration.replaces(
    Heal,
    when=lambda me, it: (
        it.by == me.seat
        and (it.target == me.seat or me.table.options["regeneration_boosts_healing_ray"] == "true")
    ),
)
def regrow(_: KingMe, healing: Heal) -> Heal:
    """Once per gain; not when another monster does the healing."""
    return replace(healing, amount=healing.amount + 1)


# -- Rooting for the Underdog ----------------------------------------------------------------------

rooting_for_the_underdog = keep(
    BASE,
    "rooting_for_the_underdog",
    "Rooting for the Underdog",
    "支持弱者",
    cost=3,
    text="Alone with the fewest points at the end of your turn, you gain 1 point.",
    text_zh="你的回合结束时，若独自分数最少，获得 1 分。",
    text_first=(
        "With the fewest points at the end of a turn you gain 1 point.",
        "回合结束时若你分数最少，获得 1 分。",
    ),
    sources=EVERYWHERE,
)


@rooting_for_the_underdog.after(
    TurnEnding,
    order=10,
    when=lambda me, it: it.seat == me.seat or me.table.options["rooting_when"] == "any_turn",
)
def win_sympathy(me: KingMe, _: TurnEnding) -> None:
    """A tie pays nothing, the dead do not count (B18)."""
    points = me.monster.points
    if all(me.state.monster(seat).points > points for seat in me.others()):
        me.gain_points(1)


# -- Shrink Ray ------------------------------------------------------------------------------------

shrink_ray = keep(
    BASE,
    "shrink_ray",
    "Shrink Ray",
    "收缩射线",
    cost=6,
    text="Monsters wounded by your smashes get a shrink token: one die less per token.",
    text_zh="被你的爪击击伤的怪兽得到一个缩小标记：每个标记少掷一颗骰子。",
    sources=EVERYWHERE,
)


@shrink_ray.after(Wounded, when=lambda me, it: it.by == me.seat)
def shrink_victims(me: KingMe, wounded: Wounded) -> None:
    """One per attack and copy (B26)."""
    me.put_token(wounded.seat, "shrink")


# -- Smoke Cloud -----------------------------------------------------------------------------------

smoke_cloud = keep(
    BASE,
    "smoke_cloud",
    "Smoke Cloud",
    "烟雾",
    cost=4,
    tokens=3,
    text="Comes with 3 smoke tokens; each gives an extra roll. Gone when empty.",
    text_zh="带有 3 个烟雾标记；每个可换一次额外掷骰，用完后弃掉。",
    sources=EVERYWHERE,
)


@smoke_cloud.offers(
    RollWindow,
    when=lambda me, it: it.seat == me.seat and not it.rolls_left and me.holding.counter > 0,
)
async def puff(me: KingMe, window: RollWindow) -> RollWindow:
    """A copy that has run dry stays and does nothing (S20)."""
    me.set_counter(me.holding.counter - 1)
    if not me.holding.counter and not me.holding.copies:
        await me.discard_self()
    return replace(window, rolls_left=window.rolls_left + 1)


# -- Solar Powered ---------------------------------------------------------------------------------

solar_powered = keep(
    BASE,
    "solar_powered",
    "Solar Powered",
    "太阳能",
    cost=2,
    text="Without energy at the end of your turn you get 1.",
    text_zh="你的回合结束时若没有能量，获得 1 点。",
    sources=EVERYWHERE,
)


@solar_powered.after(
    TurnEnding, order=40, when=lambda me, it: it.seat == me.seat and not me.monster.energy
)
def bask(me: KingMe, _: TurnEnding) -> None:
    """A gain like any other."""
    me.gain_energy(1)


# -- Spiked Tail -----------------------------------------------------------------------------------

spiked_tail = keep(
    BASE,
    "spiked_tail",
    "Spiked Tail",
    "尖刺尾",
    cost=5,
    text="At least one smash in your result: one more is added.",
    text_zh="结果中至少有一个爪击时，再增加一个。",
    text_first=("Your attacks deal one damage more.", "你的攻击多造成 1 点伤害。"),
    sources=EVERYWHERE,
)
spiked_tail.adds_under(SECOND, SMASHES_ON_SMASH, 1)


@spiked_tail.replaces(
    Assault, under=FIRST, when=lambda me, it: it.source == me.seat and it.smashes > 0
)
def swing_tail(me: KingMe, assault: Assault) -> Assault:
    """The older text adds damage, not a smash."""
    for loss in assault.losses:
        assault = assault.plus(loss.target, 1, me.cause)
    return assault


# -- Stretchy --------------------------------------------------------------------------------------

stretchy = keep(
    BASE,
    "stretchy",
    "Stretchy",
    "弹性",
    cost=3,
    text="Pay 2 energy to turn one of your dice to any face.",
    text_zh="付 2 点能量，将你的一颗骰子变为任意面。",
    asks={
        "die": ("{seat}, which die do you turn?", "{seat}，改变哪颗骰子？"),
        "face": ("{seat}, to which face?", "{seat}，变为哪一面？"),
    },
    sources=EVERYWHERE,
)


@stretchy.offers(
    ChangeWindow, price=2, when=lambda me, it: it.seat == me.seat and bool(me.state.dice)
)
async def stretch(me: KingMe, window: ChangeWindow) -> ChangeWindow:
    """As often as it can be paid."""
    die = await me.pick_die("stretchy.die")
    me.set_die(die, await me.pick_face("stretchy.face"))
    return window


# -- Energy Drink ----------------------------------------------------------------------------------

energy_drink = keep(
    BASE,
    "energy_drink",
    "Energy Drink",
    "能量饮料",
    cost=4,
    text="Pay 1 energy for an extra roll.",
    text_zh="付 1 点能量额外掷骰一次。",
    sources=EVERYWHERE,
)


@energy_drink.offers(
    RollWindow, price=1, when=lambda me, it: it.seat == me.seat and not it.rolls_left
)
async def take_a_sip(_: KingMe, window: RollWindow) -> RollWindow:
    """As often as it can be paid; offered when no roll is left."""
    return replace(window, rolls_left=window.rolls_left + 1)


# -- Urbavore --------------------------------------------------------------------------------------

urbavore = keep(
    BASE,
    "urbavore",
    "Urbavore",
    "食城者",
    cost=4,
    text="Starting your turn in Tokyo gives 1 point more. There, a smash in your result adds one.",
    text_zh="在东京开始回合时多得 1 分；在东京时结果中有爪击则再增加一个。",
    adds={SMASHES_ON_SMASH: lambda me: 1 if me.is_in_tokyo() else 0},
    sources=EVERYWHERE,
)


@urbavore.after(BonusPaid, when=lambda me, it: it.seat == me.seat)
def bite_the_city(me: KingMe, _: BonusPaid) -> None:
    """A point also in the two-player energy variant."""
    me.gain_points(1)


# -- We're Only Making It Stronger! ----------------------------------------------------------------

making_it_stronger = keep(
    BASE,
    "making_it_stronger",
    "We're Only Making It Stronger!",
    "我们只会让它更强",
    cost=3,
    text="Losing 2 or more hearts at once gives you 1 energy.",
    text_zh="一次失去 2 颗或更多心时，获得 1 点能量。",
    sources=EVERYWHERE,
)


@making_it_stronger.after(HeartsWereLost, when=lambda me, it: it.seat == me.seat and it.amount >= 2)
def grow_angry(me: KingMe, _: HeartsWereLost) -> None:
    """By hearts really lost, after protection."""
    me.gain_energy(1)


# -- Wings -----------------------------------------------------------------------------------------

wings = keep(
    BASE,
    "wings",
    "Wings",
    "翅膀",
    cost=6,
    text="Pay 2 energy to lose no hearts in this turn.",
    text_zh="付 2 点能量，本回合不失去心。",
    sources=EVERYWHERE,
)


@wings.offers(Loss, price=2, when=lambda me, it: it.target == me.seat)
async def take_off(me: KingMe, _: Loss) -> None:
    """For the whole turn, also against cards, poison and one's own cards (S42)."""
    me.guard()
