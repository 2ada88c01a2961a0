"""Discard cards: they work once, when they are bought."""

from __future__ import annotations

from engine.games.kings.cards import EVERYWHERE, discard
from engine.games.kings.facts import MonsterMoved, TurnCutShort
from engine.games.kings.me import KingMe
from engine.games.kings.state import OUTSIDE
from engine.games.kings.tokyo.cards.deck import BASE
from engine.games.kings.tokyo.places import TOKYO_CITY, enter

# -- Apartment Building ----------------------------------------------------------------------------

apartment_building = discard(
    BASE,
    "apartment_building",
    "Apartment Building",
    "公寓楼",
    cost=5,
    text="Gain 3 points.",
    text_zh="获得 3 分。",
    sources=EVERYWHERE,
)


@apartment_building.gained()
def flatten_apartments(me: KingMe) -> None:
    me.gain_points(3)


# -- Commuter Train --------------------------------------------------------------------------------

commuter_train = discard(
    BASE,
    "commuter_train",
    "Commuter Train",
    "通勤列车",
    cost=4,
    text="Gain 2 points.",
    text_zh="获得 2 分。",
    sources=EVERYWHERE,
)


@commuter_train.gained()
def derail_train(me: KingMe) -> None:
    me.gain_points(2)


# -- Corner Store ----------------------------------------------------------------------------------

corner_store = discard(
    BASE,
    "corner_store",
    "Corner Store",
    "街角小店",
    cost=3,
    text="Gain 1 point.",
    text_zh="获得 1 分。",
    sources=EVERYWHERE,
)


@corner_store.gained()
def raid_store(me: KingMe) -> None:
    me.gain_points(1)


# -- Death from Above ------------------------------------------------------------------------------

death_from_above = discard(
    BASE,
    "death_from_above",
    "Death from Above",
    "死从天降",
    cost=5,
    text="Gain 2 points, throw everybody else out of Tokyo and go there.",
    text_zh="获得 2 分，将其他怪兽赶出东京并进入东京。",
    text_first=(
        "Gain 2 points and take Tokyo, unless you are there.",
        "获得 2 分；若不在东京则占领东京。",
    ),
    sources=EVERYWHERE,
)


@death_from_above.gained()
def drop_in(me: KingMe) -> None:
    """Being thrown out is not yielding (S32, S34). NOTES 2.20 for a buyer that is inside
    already.
    """
    me.gain_points(2)
    inside = me.is_in_tokyo()
    options = me.table.options
    first_edition = options["card_text_edition"] == "first"
    if inside and (first_edition or options["death_from_above_when_inside"] == "stars_only"):
        return
    for seat in me.others():
        if me.is_in_tokyo(seat):
            me.table.record(MonsterMoved(seat, OUTSIDE, me.cause))
    if not inside:
        enter(me.table, me.seat, TOKYO_CITY)
    elif me.monster.place != TOKYO_CITY:
        me.table.record(MonsterMoved(me.seat, TOKYO_CITY, me.cause))


# -- Energize --------------------------------------------------------------------------------------

energize = discard(
    BASE,
    "energize",
    "Energize",
    "充能",
    cost=8,
    text="Gain 9 energy.",
    text_zh="获得 9 点能量。",
    sources=EVERYWHERE,
)


@energize.gained()
def charge_up(me: KingMe) -> None:
    me.gain_energy(9)


# -- Evacuation Orders -----------------------------------------------------------------------------

evacuation_orders = discard(
    BASE,
    "evacuation_orders",
    "Evacuation Orders",
    "疏散命令",
    cost=7,
    copies=2,
    text="All other monsters lose 5 points.",
    text_zh="其他所有怪兽失去 5 分。",
    sources=EVERYWHERE,
)


@evacuation_orders.gained()
def empty_the_streets(me: KingMe) -> None:
    """Not below 0 (S64)."""
    for seat in me.others():
        me.take_points(seat, 5)


# -- Flame Thrower ---------------------------------------------------------------------------------

flame_thrower = discard(
    BASE,
    "flame_thrower",
    "Flame Thrower",
    "火焰喷射器",
    cost=3,
    text="All other monsters lose 2 hearts.",
    text_zh="其他所有怪兽失去 2 颗心。",
    sources=EVERYWHERE,
)


@flame_thrower.gained()
async def spray_fire(me: KingMe) -> None:
    """Damage by a card: nobody may yield because of it."""
    await me.hurt(me.others(), 2)


# -- Frenzy ----------------------------------------------------------------------------------------

frenzy = discard(
    BASE,
    "frenzy",
    "Frenzy",
    "狂乱",
    cost=7,
    text="Take another turn after this one.",
    text_zh="本回合后再进行一个回合。",
    sources=EVERYWHERE,
)


@frenzy.gained()
def rage_on(me: KingMe) -> None:
    """After a turn won by other means (S52); bought in another's turn it follows that (S30)."""
    me.grant_turn(rank=1)
    if me.is_active and me.table.options["frenzy_timing"] == "immediate":
        me.table.record(TurnCutShort(me.seat, me.cause))


# -- Gas Refinery ----------------------------------------------------------------------------------

gas_refinery = discard(
    BASE,
    "gas_refinery",
    "Gas Refinery",
    "炼油厂",
    cost=6,
    text="Gain 2 points; all other monsters lose 3 hearts.",
    text_zh="获得 2 分；其他所有怪兽失去 3 颗心。",
    sources=EVERYWHERE,
)


@gas_refinery.gained()
async def blow_up_refinery(me: KingMe) -> None:
    me.gain_points(2)
    await me.hurt(me.others(), 3)


# -- Heal ------------------------------------------------------------------------------------------

heal = discard(
    BASE,
    "heal",
    "Heal",
    "治疗",
    cost=3,
    text="Gain 2 hearts.",
    text_zh="获得 2 颗心。",
    sources=EVERYWHERE,
)


@heal.gained()
def lick_wounds(me: KingMe) -> None:
    """Also in Tokyo."""
    me.heal(2)


# -- High Altitude Bombing -------------------------------------------------------------------------

high_altitude_bombing = discard(
    BASE,
    "high_altitude_bombing",
    "High Altitude Bombing",
    "高空轰炸",
    cost=4,
    text="All monsters lose 3 hearts, you too.",
    text_zh="所有怪兽（包括你）失去 3 颗心。",
    sources=EVERYWHERE,
)


@high_altitude_bombing.gained()
async def bomb_everybody(me: KingMe) -> None:
    """If nobody is left, nobody wins."""
    await me.hurt((*me.others(), me.seat), 3)


# -- Jet Fighters ----------------------------------------------------------------------------------

jet_fighters = discard(
    BASE,
    "jet_fighters",
    "Jet Fighters",
    "喷气战机",
    cost=5,
    text="Gain 5 points and lose 4 hearts.",
    text_zh="获得 5 分，失去 4 颗心。",
    sources=EVERYWHERE,
)


@jet_fighters.gained()
async def swat_fighters(me: KingMe) -> None:
    """Dying of it with 20 points is no win (S48)."""
    me.gain_points(5)
    await me.hurt((me.seat,), 4)


# -- National Guard --------------------------------------------------------------------------------

national_guard = discard(
    BASE,
    "national_guard",
    "National Guard",
    "国民警卫队",
    cost=3,
    text="Gain 2 points and lose 2 hearts.",
    text_zh="获得 2 分，失去 2 颗心。",
    sources=EVERYWHERE,
)


@national_guard.gained()
async def trample_guard(me: KingMe) -> None:
    me.gain_points(2)
    await me.hurt((me.seat,), 2)


# -- Nuclear Power Plant ---------------------------------------------------------------------------

nuclear_power_plant = discard(
    BASE,
    "nuclear_power_plant",
    "Nuclear Power Plant",
    "核电站",
    cost=6,
    text="Gain 2 points and 3 hearts.",
    text_zh="获得 2 分和 3 颗心。",
    sources=EVERYWHERE,
)


@nuclear_power_plant.gained()
def drink_coolant(me: KingMe) -> None:
    """Also in Tokyo."""
    me.gain_points(2)
    me.heal(3)


# -- Skyscraper ------------------------------------------------------------------------------------

skyscraper = discard(
    BASE,
    "skyscraper",
    "Skyscraper",
    "摩天大楼",
    cost=6,
    text="Gain 4 points.",
    text_zh="获得 4 分。",
    sources=EVERYWHERE,
)


@skyscraper.gained()
def topple_tower(me: KingMe) -> None:
    me.gain_points(4)


# -- Tank ------------------------------------------------------------------------------------------

tank = discard(
    BASE,
    "tank",
    "Tank",
    "坦克",
    cost=4,
    text="Gain 4 points and lose 3 hearts.",
    text_zh="获得 4 分，失去 3 颗心。",
    sources=EVERYWHERE,
)


@tank.gained()
async def crush_tank(me: KingMe) -> None:
    me.gain_points(4)
    await me.hurt((me.seat,), 3)


# -- Vast Storm ------------------------------------------------------------------------------------

vast_storm = discard(
    BASE,
    "vast_storm",
    "Vast Storm",
    "大风暴",
    cost=6,
    text="Gain 2 points; all other monsters lose half their energy.",
    text_zh="获得 2 分；其他所有怪兽失去一半能量。",
    sources=EVERYWHERE,
)


@vast_storm.gained()
async def call_storm(me: KingMe) -> None:
    """One per full two (S64), of what they have left when it breaks."""
    me.gain_points(2)
    for seat in me.others():
        await me.threaten_energy(seat)
    for seat in me.others():
        me.take_energy(seat, me.state.monster(seat).energy // 2)
