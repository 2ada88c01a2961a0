"""Keep cards, Acid Attack to Herd Culler: what each does, where it stops, and the worked
scenarios.
"""

from __future__ import annotations

import pytest

from engine import Seat
from engine.games.kings.facts import DiceThrown
from tests.engine.tokyo.kit import Kit, first_edition

CITY, BAY, OUTSIDE = "tokyo_city", "tokyo_bay", "outside"
A, B, C, D, E, F = map(Seat, range(1, 7))


@pytest.mark.parametrize(("roll", "hearts", "asked"), [("112233", 10, 0), ("s12233", 8, 1)])
def test_acid_attack_adds_a_smash_before_armor_plating_looks(
    roll: str, hearts: int, asked: int
) -> None:
    """S8: 0 + 1 is ignored, 1 + 1 is taken in full and lets the victim yield."""
    kit = Kit().monster(B, place=CITY, holds=["armor_plating"]).monster(A, holds=["acid_attack"])
    kit.turn(A, roll)
    assert (kit.at(B).hearts, len(kit.prompts("yield_tokyo"))) == (hearts, asked)


def test_acid_attack_alone_wounds_but_not_in_the_first_edition() -> None:
    """The older text is damage without a smash: nobody may yield because of it (S-IELLO)."""
    kit = Kit().monster(B, place=CITY).monster(A, holds=["acid_attack"]).turn(A, "112233")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (9, 1)
    kit = first_edition().monster(B, place=CITY).monster(A, holds=["acid_attack"])
    kit.turn(A, "112233")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (9, 0)
    kit = first_edition().monster(B, place=CITY).monster(A, holds=["acid_attack"])
    kit.turn(A, "s12233")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (8, 1)


def test_alien_origin_makes_cards_cheaper_but_not_sweeping() -> None:
    kit = Kit().market("corner_store", "energize").monster(A, energy=2, holds=["alien_origin"])
    kit.turn(A, "112233")
    assert kit.offered("buy") == ["ware:corner_store:2", "sweep"]


def test_two_alien_origins_give_two_off_and_never_less_than_zero() -> None:
    kit = Kit().market("solar_powered").monster(A, holds=["alien_origin"]).copies(A, "alien_origin")
    kit.turn(A, "112233", buy="solar_powered")
    assert kit.cards(A)[-1] == "solar_powered"


def test_alpha_monster_pays_once_even_when_nobody_is_hit() -> None:
    kit = Kit().monster(A, holds=["alpha_monster"]).turn(A, "ss1122")
    assert kit.at(A).points == 2
    kit = Kit().monster(A, holds=["alpha_monster"]).turn(A, "112233")
    assert kit.at(A).points == 1


def test_alpha_monster_of_the_first_edition_wants_a_target() -> None:
    kit = first_edition().monster(A, holds=["alpha_monster"]).turn(A, "ss1122")
    assert kit.at(A).points == 1
    kit = first_edition().monster(A, holds=["alpha_monster"]).monster(B, place=CITY)
    kit.turn(A, "ss1122")
    assert kit.at(A).points == 1


def test_armor_plating_lets_two_through() -> None:
    """A single point bounces off; two hurt in full."""
    kit = Kit().monster(B, place=CITY, holds=["armor_plating"]).turn(A, "ss1122")
    assert kit.at(B).hearts == 8
    kit = Kit().monster(B, place=CITY, holds=["armor_plating"]).turn(A, "s11223")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (10, 0)


@pytest.mark.parametrize(("poison", "hearts"), [(1, 10), (2, 8)])
def test_armor_plating_against_poison(poison: int, hearts: int) -> None:
    """S10: all tokens are one loss, and stay."""
    kit = Kit().monster(A, poison=poison, holds=["armor_plating"]).turn(A, "112233")
    assert (kit.at(A).hearts, kit.at(A).poison) == (hearts, poison)


def test_armor_plating_does_not_ignore_what_is_left_of_a_bigger_loss() -> None:
    kit = Kit().monster(B, place=CITY, holds=["armor_plating", "camouflage"])
    kit.turn(A, "ss1122 h1", prevent_loss="camouflage")
    assert kit.at(B).hearts == 9


def test_background_dweller_rerolls_threes_for_free() -> None:
    kit = Kit().monster(A, holds=["background_dweller"])
    kit.turn(
        A,
        "331122 1e",
        roll_action="background_dweller",
        background_dweller__dice=[["die:1", "die:2"]],
    )
    assert kit.state.dice[:2] == ("one", "energy")


def test_background_dweller_leaves_the_rolls_as_they_are() -> None:
    kit = Kit().monster(A, holds=["background_dweller"])
    kit.turn(
        A,
        "331122 1e s",
        roll_action="background_dweller",
        background_dweller__dice=[["die:1", "die:2"]],
        reroll=[["die:1"]],
    )
    assert [prompt.cause for prompt in kit.prompts("reroll")] == ["rolls_left_2", "rolls_left_1"]


def test_background_dweller_after_the_last_roll_and_on_thrown_dice() -> None:
    kit = Kit().monster(A, holds=["background_dweller"])
    kit.turn(A, "311122 e", change_dice="background_dweller", background_dweller__dice=[["die:1"]])
    assert kit.state.dice[0] == "energy"
    kit = Kit().monster(B, place=CITY, holds=["camouflage", "background_dweller"])
    kit.turn(
        A,
        "ss1122 3h h",
        prevent_loss="camouflage",
        change_thrown_dice="background_dweller",
    )
    assert kit.at(B).hearts == 10
    thrown = [fact.faces for fact in kit.facts if isinstance(fact, DiceThrown)]
    assert thrown == [("three", "heart"), ("heart", "heart")]


def test_background_dweller_may_reroll_only_the_probed_three() -> None:
    """B14."""
    kit = Kit().monster(B, holds=["psychic_probe", "background_dweller"])
    kit.turn(A, "331122 3 e", psychic_probe__die="die:3", change_probed_die="background_dweller")
    assert kit.state.dice == ("three", "three", "energy", "one", "two", "two")


def test_battery_monster_gives_two_a_turn_without_friend_of_children() -> None:
    kit = Kit().monster(A, holds=["battery_monster", "friend_of_children"]).turn(A, "112233")
    assert kit.at(A).energy == 2
    assert kit.state.held_by(A)[0].counter == 4


def test_battery_monster_goes_when_empty() -> None:
    kit = Kit().monster(A, holds=["battery_monster"])
    kit.turn(A, "112233")
    for seat in (B, C, D, A, B, C, D, A):
        kit.another_turn("112233")
        del seat
    assert (kit.at(A).energy, kit.cards(A)) == (6, [])


def test_battery_monster_of_the_first_edition_is_charged_by_its_owner() -> None:
    kit = first_edition().market("battery_monster").monster(A, energy=5)
    kit.turn(A, "112233", buy="battery_monster", battery_monster__charge=3)
    assert (kit.at(A).energy, kit.state.held_by(A)[0].counter) == (0, 6)


def test_burrowing_adds_a_smash_in_tokyo_only() -> None:
    kit = Kit(3).monster(A, place=CITY, holds=["burrowing"]).turn(A, "112233")
    assert kit.at(B).hearts == 9
    kit = Kit(3).monster(B, place=CITY).monster(A, holds=["burrowing"]).turn(A, "112233")
    assert kit.at(B).hearts == 10


def test_burrowing_hurts_whoever_takes_the_place() -> None:
    kit = Kit().monster(B, place=CITY, holds=["burrowing"]).monster(A, hearts=5)
    kit.turn(A, "s11223", yield_tokyo="yield")
    assert (kit.at(A).hearts, kit.at(A).place) == (4, CITY)


def test_a_taker_that_dies_from_burrowing_never_enters() -> None:
    kit = Kit().monster(B, place=CITY, holds=["burrowing"]).monster(A, hearts=1)
    kit.turn(A, "s11223", yield_tokyo="yield")
    assert (kit.at(A).alive, kit.state.occupant(CITY)) == (False, 0)


def test_two_burrowing_owners_leaving_together_hurt_once_each() -> None:
    kit = Kit(5).monster(B, place=CITY, holds=["burrowing"]).copies(C, "burrowing")
    kit.monster(C, place=BAY).turn(A, "s11223", yield_tokyo=["yield", "yield"])
    assert kit.at(A).hearts == 8


def test_burrowing_of_the_first_edition_helps_against_tokyo() -> None:
    kit = first_edition(3).monster(B, place=CITY).monster(A, holds=["burrowing"])
    kit.turn(A, "s11223")
    assert kit.at(B).hearts == 8


def test_camouflage_rolls_a_die_for_each_heart() -> None:
    kit = Kit().monster(B, place=CITY, holds=["camouflage"])
    kit.turn(A, "sss112 hh1", prevent_loss="camouflage")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (9, 1)


def test_camouflage_that_cancels_everything_leaves_no_wound() -> None:
    """B2 and B12: no tokens, no yielding."""
    kit = Kit().monster(B, place=CITY, holds=["camouflage"]).monster(A, holds=["poison_spit"])
    kit.turn(A, "s11223 h", prevent_loss="camouflage")
    assert (kit.at(B).hearts, kit.at(B).poison, kit.kinds.count("yield_tokyo")) == (10, 0, 0)


def test_a_new_roll_for_every_loss_and_copy() -> None:
    """S44, B54: a copy rolls for what is left."""
    kit = Kit().monster(B, place=CITY, holds=["camouflage"]).copies(B, "camouflage")
    kit.turn(A, "sss112 h11 h1", prevent_loss=["camouflage", "camouflage"])
    assert kit.at(B).hearts == 9
    kit = Kit().monster(B, place=CITY, holds=["camouflage"]).market("flame_thrower")
    kit.monster(A, energy=3)
    kit.turn(A, "ss1122 hh 1h", prevent_loss=["camouflage", "camouflage"], buy="flame_thrower")
    assert kit.at(B).hearts == 9


def test_wings_may_still_be_paid_after_a_bad_camouflage_roll() -> None:
    """B12."""
    kit = Kit().monster(B, place=CITY, energy=2, holds=["camouflage", "wings"])
    kit.turn(A, "ss1122 12", prevent_loss=["camouflage", "wings"])
    assert (kit.at(B).hearts, kit.at(B).energy) == (10, 0)


def test_complete_destruction_pays_nine_on_top() -> None:
    kit = Kit().monster(A, holds=["complete_destruction"]).turn(A, "123hes")
    assert (kit.at(A).points, kit.at(A).energy) == (10, 1)
    kit = Kit().monster(A, holds=["complete_destruction"]).turn(A, "123hee")
    assert kit.at(A).points == 1


def test_acid_attack_completes_the_set() -> None:
    """S54, B36."""
    kit = Kit().monster(A, shrink=1, holds=["acid_attack", "complete_destruction"])
    kit.turn(A, "123he")
    assert kit.at(A).points == 10


def test_media_friendly_pays_for_other_cards_only() -> None:
    kit = Kit().market("media_friendly", "heal").monster(A, energy=6)
    kit.turn(A, "112233", buy=["media_friendly", "heal"])
    assert kit.at(A).points == 2


def test_eater_of_the_dead_is_paid_for_each_death() -> None:
    """S46: 14 + 2 + 3 + 3 is capped at 20; A wins."""
    kit = Kit().monster(A, points=14, energy=6, holds=["eater_of_the_dead"])
    kit.monster(B, hearts=3).monster(C, hearts=2).monster(D, place=CITY).market("gas_refinery")
    kit.turn(A, "112233", buy="gas_refinery")
    assert (kit.at(A).points, kit.winners, kit.at(D).hearts) == (20, (A,), 7)


@pytest.mark.parametrize(("energy", "points"), [(5, 0), (6, 1), (12, 2)])
def test_energy_hoarder_pays_per_six(energy: int, points: int) -> None:
    kit = Kit().monster(B, place=CITY).monster(A, energy=energy, holds=["energy_hoarder"])
    assert kit.turn(A, "112233").at(A).points == points


def test_even_bigger_gives_two_and_a_maximum_of_twelve() -> None:
    kit = Kit().market("even_bigger").monster(A, energy=4).turn(A, "112233", buy="even_bigger")
    assert kit.at(A).hearts == 12


def test_hearts_above_the_maximum_go_with_even_bigger() -> None:
    """S22, B28."""
    for hearts, loss, left in ((12, "clamp", 10), (8, "clamp", 8), (8, "lose_two", 6)):
        kit = Kit(even_bigger_loss=loss).monster(A, hearts=hearts)
        kit.monster(A, holds=["even_bigger", "metamorph"])
        kit.turn(A, "112233", metamorph__sell=[["even_bigger"]])
        assert kit.at(A).hearts == left


def test_nobody_exceeds_twelve_hearts() -> None:
    kit = Kit().monster(A, hearts=12, holds=["even_bigger"]).copies(A, "even_bigger")
    kit.monster(B, place=CITY).turn(A, "hh1122")
    assert kit.at(A).hearts == 12


def test_extra_heads_add_up() -> None:
    kit = Kit().monster(A, holds=["extra_head", "extra_head"]).turn(A, "11223333")
    assert len(kit.state.dice) == 8


def test_fire_breathing_hurts_neighbours_wherever_they_are() -> None:
    """B16: part of the same loss for a smashed neighbour, so Armor Plating does not eat it."""
    kit = (
        Kit(5).monster(B, place=CITY, holds=["armor_plating"]).monster(A, holds=["fire_breathing"])
    )
    kit.turn(A, "s11223", yield_tokyo="stay")
    assert [kit.at(seat).hearts for seat in (B, C, D, E)] == [8, 10, 10, 9]


def test_fire_breathing_needs_a_smash() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["fire_breathing"]).turn(A, "112233")
    assert all(kit.at(seat).hearts == 10 for seat in (B, C, D))


def test_fire_breathing_alone_gives_no_yield_choice_and_no_tokens() -> None:
    kit = (
        Kit(5).monster(B, place=CITY).monster(A, place=BAY, holds=["fire_breathing", "poison_spit"])
    )
    kit.turn(A, "s11223")
    assert (kit.at(B).hearts, kit.at(B).poison, kit.kinds.count("yield_tokyo")) == (9, 0, 0)
    assert (kit.at(E).hearts, kit.at(E).poison) == (8, 1)


def test_neighbours_are_the_nearest_living_monsters() -> None:
    """S18: with two left only one loss."""
    kit = Kit(4).dead(B).monster(A, place=CITY, holds=["fire_breathing"])
    kit.turn(A, "s11223")
    assert [kit.at(seat).hearts for seat in (C, D)] == [8, 8]
    kit = Kit(2).monster(A, place=CITY, holds=["fire_breathing"]).turn(A, "s11223")
    assert kit.at(B).hearts == 8


def test_fire_breathing_of_the_first_edition_also_counts_card_damage() -> None:
    """NOTES 2.23."""
    for kit, hearts in ((first_edition(), 7), (Kit(), 8)):
        kit.monster(A, energy=3, holds=["fire_breathing"])
        kit.market("flame_thrower").turn(A, "112233", buy="flame_thrower")
        assert [kit.at(seat).hearts for seat in (B, C, D)] == [hearts, 8, hearts]


def test_freeze_time_gives_another_turn_with_one_die_less() -> None:
    kit = Kit().monster(A, holds=["freeze_time"]).turn(A, "111233", freeze_time__again="yes")
    kit.another_turn("11122", freeze_time__again="yes")
    assert (kit.state.active, kit.state.fewer_dice) == (A, 1)
    kit.another_turn("1123")
    assert kit.state.fewer_dice == 2
    kit.another_turn("112233")
    assert (kit.state.active, kit.state.fewer_dice) == (B, 0)


def test_freeze_time_may_be_declined_and_counts_when_bought_later() -> None:
    """B52."""
    kit = Kit().monster(A, holds=["freeze_time"]).turn(A, "111233", freeze_time__again="no")
    assert kit.another_turn("112233").state.active == B
    kit = Kit().monster(A, energy=5).market("freeze_time")
    kit.turn(A, "111233", buy="freeze_time", freeze_time__again="yes")
    assert kit.another_turn("11223").state.active == A


def test_freeze_time_comes_before_frenzy() -> None:
    """S52."""
    kit = Kit().monster(A, energy=7, holds=["freeze_time"]).market("frenzy")
    kit.turn(A, "111233", buy="frenzy", freeze_time__again="yes")
    kit.another_turn("11223")
    assert (kit.state.active, kit.state.fewer_dice) == (A, 1)
    kit.another_turn("112233")
    assert (kit.state.active, kit.state.fewer_dice) == (A, 0)
    assert kit.another_turn("112233").state.active == B


def test_a_copy_of_freeze_time_gives_no_second_turn() -> None:
    kit = Kit().monster(A, holds=["freeze_time"]).copies(A, "freeze_time")
    kit.turn(A, "111233", freeze_time__again="yes")
    assert len(kit.state.extra_turns) == 1


def test_friend_of_children_adds_one_per_gain() -> None:
    kit = Kit().monster(A, holds=["friend_of_children"]).turn(A, "eee112")
    assert kit.at(A).energy == 4


def test_friend_of_children_counts_the_energy_for_tokyo() -> None:
    """B60."""
    kit = Kit(2).monster(A, holds=["friend_of_children"]).turn(A, "112233")
    assert kit.at(A).energy == 2


def test_two_giant_brains_roll_five_times() -> None:
    """S24."""
    kit = Kit().monster(A, holds=["giant_brain"]).copies(A, "giant_brain")
    kit.turn(A, "112233 1 1 1 1", reroll=[["die:1"]] * 4)
    assert len(kit.prompts("reroll")) == 4


def test_gourmet_pays_two_more_for_ones_only_once() -> None:
    """S56 without the modules that it also uses."""
    kit = Kit().monster(A, place=CITY, holds=["gourmet"]).turn(A, "1111ee")
    assert kit.at(A).points == 2 + 2 + 2
    kit = Kit().monster(B, place=CITY).monster(A, holds=["gourmet"]).turn(A, "222ee1")
    assert kit.at(A).points == 2


def test_healing_ray_heals_others_for_payment() -> None:
    kit = Kit().monster(C, place=CITY, hearts=5, energy=3).monster(A, hearts=9)
    kit.monster(A, holds=["healing_ray"])
    kit.turn(A, "hhh112", use_hearts=[[1, 2]])
    assert (kit.at(A).hearts, kit.at(C).hearts) == (10, 7)
    assert (kit.at(A).energy, kit.at(C).energy) == (3, 0)


def test_healing_ray_from_inside_tokyo() -> None:
    """S38: neither itself nor others' tokens."""
    kit = Kit(5).monster(B, place=CITY, hearts=4, holds=["healing_ray"])
    kit.monster(C, place=BAY, hearts=8).monster(D, hearts=7, poison=1)
    kit.turn(B, "hhh112", use_hearts=[[1, 0]])
    assert kit.offered("use_hearts") == ["heal:3", "heal:4"]
    assert (kit.at(C).hearts, kit.at(B).hearts, kit.at(D).poison) == (9, 4, 1)


def test_regeneration_helps_the_ray_only_under_that_option() -> None:
    """NOTES 2.24."""
    for option, hearts, energy in (("false", 6, 2), ("true", 7, 4)):
        kit = Kit(regeneration_boosts_healing_ray=option).monster(C, hearts=5, energy=6)
        kit.monster(A, holds=["healing_ray", "regeneration"])
        kit.turn(A, "h11223", use_hearts=[[1]])
        assert (kit.at(C).hearts, kit.at(A).energy) == (hearts, energy)


def test_a_copied_healing_ray_offers_each_patient_once() -> None:
    kit = Kit().monster(C, hearts=5, energy=8).monster(A, holds=["healing_ray"])
    kit.copies(A, "healing_ray").turn(A, "h11223", use_hearts=[[1]])
    assert (kit.at(C).hearts, kit.at(A).energy) == (6, 2)


def test_herbivore_pays_when_nobody_was_hurt() -> None:
    """S60: (i) everything cancelled: yes; (ii) own card hurt oneself: no; (iii) card damage: no."""
    kit = Kit().monster(A, holds=["herbivore"]).monster(B, place=CITY, energy=2, holds=["wings"])
    assert kit.turn(A, "ss1122", prevent_loss="wings").at(A).points == 1
    kit = Kit().monster(A, energy=4, holds=["herbivore"]).monster(B, place=CITY).market("tank")
    assert kit.turn(A, "112233", buy="tank").at(A).points == 4
    kit = Kit().monster(A, energy=3, holds=["herbivore"]).monster(B, place=CITY)
    assert kit.market("flame_thrower").turn(A, "112233", buy="flame_thrower").at(A).points == 0


def test_herd_culler_sets_one_die_to_one_once() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["herd_culler"])
    kit.turn(A, "11sss2", change_dice="herd_culler", herd_culler__die="die:6")
    assert (kit.state.dice[-1], kit.at(A).points) == ("one", 1)
    assert len(kit.prompts("change_dice")) == 1


def test_a_copied_herd_culler_works_once_more() -> None:
    kit = Kit().monster(A, holds=["herd_culler"]).copies(A, "herd_culler")
    kit.turn(
        A,
        "12hsee",
        change_dice=["herd_culler", "herd_culler"],
        herd_culler__die=["die:2", "die:3"],
    )
    assert kit.state.dice[:3] == ("one", "one", "one")
