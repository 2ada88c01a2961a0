"""Keep cards in printed order, Acid Attack to Extra Head."""

from __future__ import annotations

from msgspec.structs import replace

from engine.core.prompts import Answer
from engine.games.kings.cards import EVERYWHERE, FIRST, SECOND, keep
from engine.games.kings.faces import FACES, HEART, THREE, Face
from engine.games.kings.facts import DiceThrown
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import (
    DICE,
    HEARTS_MAX,
    PRICE,
    SMASHES,
    Assault,
    Bought,
    ChangeWindow,
    Loss,
    ProbedDie,
    ResolutionBegan,
    RollWindow,
    SmashesResolved,
    ThrownDice,
    TurnEnding,
    TurnStarted,
    Yielded,
    ZeroReached,
)
from engine.games.kings.rules.dice import die_number, die_options, draw_faces
from engine.games.kings.rules.gains import lose_energy, recover_energy
from engine.games.kings.rules.losses import lose_hearts
from engine.games.kings.state import OUTSIDE
from engine.games.kings.tokyo.cards.deck import BASE

# -- Acid Attack -----------------------------------------------------------------------------------

acid_attack = keep(
    BASE,
    "acid_attack",
    "Acid Attack",
    "酸液攻击",
    cost=6,
    text="Every turn your result has one smash more, whatever you rolled.",
    text_zh="每回合你的结果额外增加一个爪击，无论掷出什么。",
    text_first=(
        "Every turn you deal one damage more, even without a smash.",
        "每回合你多造成 1 点伤害，即使没有爪击。",
    ),
    sources=EVERYWHERE,
)
acid_attack.adds_under(SECOND, SMASHES, 1)


@acid_attack.replaces(Assault, under=FIRST, when=lambda me, it: it.by_dice and it.source == me.seat)
def spray_acid(me: KingMe, assault: Assault) -> Assault:
    """Added before protection: 0 rolled + 1 is a loss of 1, 1 rolled + 1 one of 2 (S8)."""
    for loss in assault.losses:
        assault = assault.plus(loss.target, 1, me.cause)
    return assault


# -- Alien Origin ----------------------------------------------------------------------------------

alien_origin = keep(
    BASE,
    "alien_origin",
    "Alien Origin",
    "外星起源",
    cost=3,
    text="Cards cost you one energy less.",
    text_zh="你购买卡牌少付 1 点能量。",
    adds={PRICE: -1},
    sources=EVERYWHERE,
)

# -- Alpha Monster ---------------------------------------------------------------------------------

alpha_monster = keep(
    BASE,
    "alpha_monster",
    "Alpha Monster",
    "首领怪兽",
    cost=5,
    text="A turn with at least one smash in your result gives you 1 point.",
    text_zh="结果中至少有一个爪击的回合，获得 1 分。",
    text_first=("Attacking gives you 1 point.", "攻击时获得 1 分。"),
    sources=EVERYWHERE,
)


@alpha_monster.after(SmashesResolved, under=SECOND, when=lambda me, it: it.seat == me.seat)
def show_who_leads(me: KingMe, _: SmashesResolved) -> None:
    """Pays once per turn, even when nobody was in reach."""
    me.gain_points(1)


@alpha_monster.after(
    SmashesResolved, under=FIRST, when=lambda me, it: it.seat == me.seat and bool(it.targets)
)
def lead_the_attack(me: KingMe, _: SmashesResolved) -> None:
    """The older text wants an attack on somebody."""
    me.gain_points(1)


# -- Armor Plating ---------------------------------------------------------------------------------

armor_plating = keep(
    BASE,
    "armor_plating",
    "Armor Plating",
    "装甲板",
    cost=4,
    text="You ignore a loss of exactly one heart.",
    text_zh="忽略恰好 1 颗心的损失。",
    sources=EVERYWHERE,
)


@armor_plating.replaces(Loss, order=-1, when=lambda me, it: it.target == me.seat and it.amount == 1)
def shrug_off_scratch(_: KingMe, __: Loss) -> None:
    """Looks at the original amount of each loss, before any other protection."""
    return


# -- Background Dweller ----------------------------------------------------------------------------

background_dweller = keep(
    BASE,
    "background_dweller",
    "Background Dweller",
    "背景居民",
    cost=4,
    text="You may reroll your threes, as often as you like.",
    text_zh="你可以重掷任意个 3，次数不限。",
    asks={
        "dice": ("{seat}, which threes do you roll again?", "{seat}，重掷哪些 3？"),
    },
    sources=EVERYWHERE,
)


def _shows_three(me: KingMe, it: RollWindow | ChangeWindow) -> bool:
    return it.seat == me.seat and THREE in me.state.dice


async def _reroll_threes(me: KingMe) -> None:
    options = die_options(me.state.dice, THREE)
    answer = await me.table.ask(
        me.seat,
        "background_dweller.dice",
        low=1,
        high=len(options),
        options=options,
        default=Answer(picks=(options[0].id,)),
        cause=me.cause,
    )
    for pick in answer.picks:
        me.reroll_die(die_number(pick))


@background_dweller.offers(RollWindow, when=_shows_three)
async def lurk_between_rolls(me: KingMe, window: RollWindow) -> RollWindow:
    """Costs no roll."""
    await _reroll_threes(me)
    return window


@background_dweller.offers(ChangeWindow, when=_shows_three)
async def lurk_after_rolling(me: KingMe, window: ChangeWindow) -> ChangeWindow:
    """Also a three that somebody else's reroll produced."""
    await _reroll_threes(me)
    return window


@background_dweller.offers(ThrownDice, when=lambda me, it: it.seat == me.seat and THREE in it.faces)
async def lurk_among_thrown_dice(me: KingMe, thrown: ThrownDice) -> ThrownDice:
    """Also dice that are thrown for a card."""
    count = thrown.faces.count(THREE)
    again = iter(draw_faces(me.table, count))
    faces: tuple[Face, ...] = tuple(
        [next(again) if face == THREE else face for face in thrown.faces]
    )
    me.table.record(DiceThrown(me.seat, faces, me.cause))
    return replace(thrown, faces=faces)


@background_dweller.offers(
    ProbedDie, when=lambda me, it: it.seat == me.seat and me.state.dice[it.die - 1] == THREE
)
async def lurk_in_other_minds(me: KingMe, probed: ProbedDie) -> ProbedDie:
    """Only the very die that its owner has just rerolled (B14)."""
    me.reroll_die(probed.die)
    return probed


# -- Battery Monster -------------------------------------------------------------------------------

battery_monster = keep(
    BASE,
    "battery_monster",
    "Battery Monster",
    "电池怪兽",
    cost=3,
    cost_first=2,
    tokens=6,
    tokens_first=0,
    text="Comes charged with 6 energy; at the start of your turn take 2 of it. Gone when empty.",
    text_zh="带有 6 点能量；你的回合开始时取走 2 点，取完后弃掉。",
    text_first=(
        "Charge it with your own energy, the bank doubles it; take 2 at the start of your turn.",
        "放上任意自己的能量，银行放上同样多；你的回合开始时取走 2 点。",
    ),
    asks={
        "charge": (
            "{seat}, how much of your energy do you put on it? ({low} to {high})",
            "{seat}，放上多少自己的能量？（{low} 到 {high}）",
        ),
    },
    sources=EVERYWHERE,
)


@battery_monster.gained(under=FIRST)
async def charge(me: KingMe) -> None:
    """The owner's energy, doubled by the bank; what lay on the card already stays there."""
    answer = await me.table.ask(
        me.seat,
        "battery_monster.charge",
        form="number",
        high=me.monster.energy,
        default=Answer(number=0),
        cause=me.cause,
    )
    amount = answer.number or 0
    lose_energy(me.table, me.seat, amount, me.cause)
    if amount:
        me.set_counter(me.holding.counter + 2 * amount)


@battery_monster.after(TurnStarted, when=lambda me, it: it.seat == me.seat)
async def drain(me: KingMe, _: TurnStarted) -> None:
    """Taking energy off it is not a gain. A copy that has run dry stays and does nothing (S20)."""
    taken = min(2, me.holding.counter)
    if taken:
        recover_energy(me.table, me.seat, taken, me.cause)
        me.set_counter(me.holding.counter - taken)
    if not me.holding.counter and not me.holding.copies:
        await me.discard_self()


# -- Burrowing -------------------------------------------------------------------------------------

burrowing = keep(
    BASE,
    "burrowing",
    "Burrowing",
    "掘地",
    cost=5,
    text="In Tokyo your result has one smash more. When you yield, the next loses 1 heart.",
    text_zh="在东京时你的结果额外增加一个爪击。你撤离时，接替者失去 1 颗心。",
    text_first=(
        "You deal one damage more to Tokyo. When you yield, the next one loses 1 heart.",
        "你对东京内的怪兽多造成 1 点伤害。你撤离时，接替者失去 1 颗心。",
    ),
    sources=EVERYWHERE,
)
burrowing.adds_under(SECOND, SMASHES, lambda me: 1 if me.is_in_tokyo() else 0)


@burrowing.replaces(
    Assault, under=FIRST, when=lambda me, it: it.source == me.seat and it.smashes > 0
)
def undermine_tokyo(me: KingMe, assault: Assault) -> Assault:
    """Only monsters in Tokyo that the smashes hit anyway."""
    for loss in assault.losses:
        if me.state.monster(loss.target).place != OUTSIDE:
            assault = assault.plus(loss.target, 1, me.cause)
    return assault


@burrowing.after(Yielded, when=lambda me, it: it.seat == me.seat and it.taker != 0)
async def collapse_tunnels(me: KingMe, yielded: Yielded) -> None:
    """Only for a choice to leave (S34); a taker that dies from it never enters."""
    if me.state.monster(yielded.taker).alive:
        await me.hurt((yielded.taker,), 1)


# -- Camouflage ------------------------------------------------------------------------------------

camouflage = keep(
    BASE,
    "camouflage",
    "Camouflage",
    "伪装",
    cost=3,
    text="About to lose hearts, you may roll a die for each: every heart rolled saves one.",
    text_zh="即将失去心时，可为每颗心掷一颗骰子：每个心面抵消一颗。",
    sources=EVERYWHERE,
)


@camouflage.offers(Loss, uses=1, when=lambda me, it: it.target == me.seat)
async def blend_in(me: KingMe, loss: Loss) -> Loss | None:
    """One throw per loss and copy; a second copy throws for what is left (S44)."""
    return loss.less((await me.throw(loss.amount)).count(HEART))


# -- Complete Destruction --------------------------------------------------------------------------

complete_destruction = keep(
    BASE,
    "complete_destruction",
    "Complete Destruction",
    "彻底毁灭",
    cost=3,
    text="All six faces in your result give you 9 points besides their normal effects.",
    text_zh="结果包含全部六种面时，除正常效果外再获得 9 分。",
    sources=EVERYWHERE,
)


@complete_destruction.after(
    ResolutionBegan,
    when=lambda me, it: it.seat == me.seat and all(me.state.count(face) for face in FACES),
)
def destroy_everything(me: KingMe, _: ResolutionBegan) -> None:
    """A smash added by a card completes the set, too (S54, B36)."""
    me.gain_points(9)


# -- Media-Friendly --------------------------------------------------------------------------------

media_friendly = keep(
    BASE,
    "media_friendly",
    "Media-Friendly",
    "媒体宠儿",
    cost=3,
    text="Each card that you buy gives you 1 point.",
    text_zh="每购买一张卡牌获得 1 分。",
    sources=EVERYWHERE,
)


@media_friendly.after(
    Bought, when=lambda me, it: it.seat == me.seat and it.holding != me.holding.id
)
def make_headlines(me: KingMe, _: Bought) -> None:
    """Buying the card itself gives nothing; buying from another monster does."""
    me.gain_points(1)


# -- Eater of the Dead -----------------------------------------------------------------------------

eater_of_the_dead = keep(
    BASE,
    "eater_of_the_dead",
    "Eater of the Dead",
    "食尸者",
    cost=4,
    text="Whenever a monster falls to 0 hearts you gain 3 points.",
    text_zh="每当有怪兽降到 0 颗心，获得 3 分。",
    sources=EVERYWHERE,
)


@eater_of_the_dead.after(ZeroReached)
def feast(me: KingMe, _: ZeroReached) -> None:
    """Also when the monster comes back at once (S6); each one pays (S46)."""
    me.gain_points(3)


# -- Energy Hoarder --------------------------------------------------------------------------------

energy_hoarder = keep(
    BASE,
    "energy_hoarder",
    "Energy Hoarder",
    "能量囤积者",
    cost=3,
    text="At the end of your turn gain 1 point for every 6 energy that you have.",
    text_zh="你的回合结束时，每拥有 6 点能量获得 1 分。",
    sources=EVERYWHERE,
)


@energy_hoarder.after(TurnEnding, order=20, when=lambda me, it: it.seat == me.seat)
def count_the_hoard(me: KingMe, _: TurnEnding) -> None:
    """The energy stays; counted after cards have been sold."""
    me.gain_points(me.monster.energy // 6)


# -- Even Bigger -----------------------------------------------------------------------------------

even_bigger = keep(
    BASE,
    "even_bigger",
    "Even Bigger",
    "越来越大",
    cost=4,
    text="Gain 2 hearts; your maximum is 12 as long as you own this.",
    text_zh="获得 2 颗心；拥有此卡时上限为 12。",
    text_first=(
        "Gain 2 hearts and a maximum higher by 2; you lose 2 hearts with this card.",
        "上限加 2 并获得 2 颗心；失去此卡时失去 2 颗心。",
    ),
    adds={HEARTS_MAX: 2},
    sources=EVERYWHERE,
)


@even_bigger.gained()
def grow(me: KingMe) -> None:
    """Nobody ever has more than 12."""
    me.heal(2)


@even_bigger.lost(under=("even_bigger_loss", "lose_two"))
async def shrivel(me: KingMe) -> None:
    """NOTES 2.19; otherwise hearts above the maximum are cut by the rules."""
    await lose_hearts(me.table, [Loss(target=me.seat, amount=2, cause=me.cause)])


# -- Extra Head ------------------------------------------------------------------------------------

extra_head = keep(
    BASE,
    "extra_head",
    "Extra Head",
    "多余的头",
    cost=7,
    copies=2,
    text="You roll one die more.",
    text_zh="你多掷一颗骰子。",
    adds={DICE: 1},
    sources=EVERYWHERE,
)
