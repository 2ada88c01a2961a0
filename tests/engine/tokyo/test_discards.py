"""Discard cards: what each does when it is bought."""

from __future__ import annotations

import pytest

from tests.engine.tokyo.kit import Kit, first_edition

CITY, BAY, OUTSIDE = "tokyo_city", "tokyo_bay", "outside"
A, B, C, D, E = 1, 2, 3, 4, 5


@pytest.mark.parametrize(
    ("card", "points", "hearts"),
    [
        ("apartment_building", 3, 5),
        ("commuter_train", 2, 5),
        ("corner_store", 1, 5),
        ("heal", 0, 7),
        ("jet_fighters", 5, 1),
        ("national_guard", 2, 3),
        ("nuclear_power_plant", 2, 8),
        ("skyscraper", 4, 5),
        ("tank", 4, 2),
    ],
)
def test_points_and_hearts_of_the_buyer(card: str, points: int, hearts: int) -> None:
    kit = Kit().monster(A, hearts=5, place=CITY).buy(A, card)
    assert (kit.at(A).points, kit.at(A).hearts) == (points, hearts)
    assert kit.state.discard == (card,)


def test_death_from_above_takes_tokyo() -> None:
    """S34: being thrown out is not yielding, so no Burrowing and no Jets."""
    kit = Kit().monster(A, place=CITY, holds=["burrowing", "jets"]).buy(B, "death_from_above")
    assert (kit.at(A).place, kit.at(B).place, kit.at(B).points) == (OUTSIDE, CITY, 3)
    assert (kit.at(B).hearts, kit.kinds) == (10, [])


def test_death_from_above_for_a_buyer_inside() -> None:
    """NOTES 2.20: the others out, from the Bay to the City, no new reward."""
    kit = Kit(5).monster(A, place=CITY).monster(B, place=BAY).buy(B, "death_from_above")
    assert (kit.at(A).place, kit.at(B).place, kit.at(B).points) == (OUTSIDE, CITY, 2)
    for kit in (Kit(5, death_from_above_when_inside="stars_only"), first_edition(5)):
        kit.monster(A, place=CITY).monster(B, place=BAY)
        kit.buy(B, "death_from_above")
        assert (kit.at(A).place, kit.at(B).place, kit.at(B).points) == (CITY, BAY, 2)


def test_energize_gives_nine_or_ten_with_friend_of_children() -> None:
    assert Kit().buy(A, "energize").at(A).energy == 9
    assert Kit().monster(A, holds=["friend_of_children"]).buy(A, "energize").at(A).energy == 10


def test_evacuation_orders_and_vast_storm_have_floors() -> None:
    """S64."""
    kit = Kit().monster(B, energy=5, points=3).monster(C, energy=1).monster(D, points=12)
    kit.buy(A, "vast_storm")
    assert [kit.at(seat).energy for seat in (B, C, D)] == [3, 1, 0]
    assert kit.at(A).points == 2
    kit = Kit().monster(B, points=3).monster(D, points=12).buy(A, "evacuation_orders")
    assert [kit.at(seat).points for seat in (A, B, C, D)] == [0, 0, 0, 7]


def test_flame_thrower_and_gas_refinery_hurt_all_others() -> None:
    kit = Kit().monster(B, place=CITY).buy(A, "flame_thrower")
    assert [kit.at(seat).hearts for seat in (A, B, C, D)] == [10, 8, 8, 8]
    kit = Kit().monster(B, place=CITY).buy(A, "gas_refinery")
    assert [kit.at(seat).hearts for seat in (A, B, C, D)] == [10, 7, 7, 7]
    assert (kit.at(A).points, kit.kinds) == (2, [])


def test_high_altitude_bombing_hurts_everybody() -> None:
    kit = Kit(3).buy(A, "high_altitude_bombing")
    assert [kit.at(seat).hearts for seat in (A, B, C)] == [7, 7, 7]


def test_frenzy_gives_another_turn() -> None:
    kit = Kit().monster(A, energy=7).market("frenzy").turn(A, "112233", buy="frenzy")
    assert kit.another_turn("112233").state.active == A
    assert kit.another_turn("112233").state.active == B


def test_frenzy_may_end_the_turn_at_once() -> None:
    """NOTES 2.18: end effects are skipped then."""
    for timing, points in (("after_full_turn", 1), ("immediate", 0)):
        kit = Kit(frenzy_timing=timing).monster(B, place=CITY)
        kit.monster(A, energy=13, holds=["energy_hoarder"]).market("frenzy")
        kit.turn(A, "112233", buy="frenzy")
        assert kit.at(A).points == points
        assert kit.another_turn("112233").state.active == A


def test_frenzy_lapses_with_its_buyer() -> None:
    kit = Kit(3).monster(A, hearts=3, energy=11).market("frenzy", "tank")
    kit.turn(A, "112233", buy=["frenzy", "tank"])
    assert (kit.at(A).alive, kit.another_turn("112233").state.active) == (False, B)
