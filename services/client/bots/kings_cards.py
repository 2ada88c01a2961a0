"""What a greedy monster thinks of the cards: opinions; the rules are in the engine."""

from types import MappingProxyType
from typing import Final, NamedTuple

from engine import find_game
from engine.games.kings.state import KingsState, Monster
from services.client.bots.kings_dice import POINTS_TO_WIN, heart_worth

_WINNING: Final = 20.0
_WORTH_OF_COST: Final = 0.55
_LEFT_OVER_ENERGY: Final = 0.3


class Opinion(NamedTuple):
    """What a card brings its buyer.

    worth: in points, for what is hard to count. points, hearts: at once (hearts may be negative).
    others: hearts that every other monster loses at once.
    """

    worth: float = 0.0
    points: int = 0
    hearts: int = 0
    others: int = 0


# Cards that are not here are worth what they cost.
_OPINIONS: Final = MappingProxyType(
    {
        "apartment_building": Opinion(points=3),
        "commuter_train": Opinion(points=2),
        "corner_store": Opinion(points=1),
        "death_from_above": Opinion(points=2, worth=0.5),
        "energize": Opinion(worth=3.5),
        "evacuation_orders": Opinion(worth=3.0),
        "flame_thrower": Opinion(others=2),
        "frenzy": Opinion(worth=3.5),
        "gas_refinery": Opinion(points=2, others=3),
        "heal": Opinion(hearts=2),
        "high_altitude_bombing": Opinion(hearts=-3, others=3),
        "jet_fighters": Opinion(points=5, hearts=-4),
        "national_guard": Opinion(points=2, hearts=-2),
        "nuclear_power_plant": Opinion(points=2, hearts=3),
        "skyscraper": Opinion(points=4),
        "tank": Opinion(points=4, hearts=-3),
        "vast_storm": Opinion(points=2, worth=0.5),
        # Strong ones to keep.
        "acid_attack": Opinion(worth=5.0),
        "alpha_monster": Opinion(worth=4.0),
        "energy_hoarder": Opinion(worth=1.5),
        "even_bigger": Opinion(worth=2.0, hearts=2),
        "extra_head": Opinion(worth=5.0),
        "fire_breathing": Opinion(worth=3.5),
        "giant_brain": Opinion(worth=4.0),
        "it_has_a_child": Opinion(worth=4.5),
        "nova_breath": Opinion(worth=4.5),
        "spiked_tail": Opinion(worth=4.5),
        "rooting_for_the_underdog": Opinion(worth=2.5),
        # Weak ones: they ask for luck or for much attention.
        "battery_monster": Opinion(worth=1.5),
        "healing_ray": Opinion(worth=1.0),
        "made_in_a_lab": Opinion(worth=0.3),
        "metamorph": Opinion(worth=0.5),
        "mimic": Opinion(worth=2.5),
        "opportunist": Opinion(worth=0.5),
        "parasitic_tentacles": Opinion(worth=0.8),
        "psychic_probe": Opinion(worth=1.0),
        "smoke_cloud": Opinion(worth=1.5),
        "solar_powered": Opinion(worth=0.7),
    }
)

# Reactions that cost nothing but the card's own attention: always take them.
_FREE: Final = frozenset({"camouflage"})


def worth_of_card(game: str, table: KingsState, monster: Monster, card: str) -> float:
    """What the card would be worth to the monster now, in points."""
    opinion = _OPINIONS.get(card)
    if opinion is None:
        return find_game(game).cards[card].cost * _WORTH_OF_COST
    if opinion.hearts < 0 and monster.hearts + opinion.hearts <= 0:
        return -_WINNING
    if opinion.points and monster.points + opinion.points >= POINTS_TO_WIN:
        return _WINNING
    rivals = [each for each in table.monsters if each.alive and each.seat != monster.seat]
    worth = opinion.worth + opinion.points + _worth_of_hearts(monster, opinion.hearts)
    if opinion.others:
        worth += 0.5 * opinion.others
        worth += 2.5 * sum(each.hearts <= opinion.others for each in rivals)
        if all(each.hearts <= opinion.others for each in rivals):
            return _WINNING
    return worth


def gain_of_purchase(
    game: str, table: KingsState, monster: Monster, card: str, price: int
) -> float:
    """What buying it is worth more than keeping the energy."""
    return worth_of_card(game, table, monster, card) - _LEFT_OVER_ENERGY * price


def is_free(card: str) -> bool:
    """Does using this card cost nothing?"""
    return card in _FREE


def _worth_of_hearts(monster: Monster, hearts: int) -> float:
    if hearts >= 0:
        healed = min(hearts, max(10 - monster.hearts, 0))
        return sum(heart_worth(monster.hearts + more) for more in range(healed))
    return -sum(heart_worth(monster.hearts - less) for less in range(1, 1 - hearts))
