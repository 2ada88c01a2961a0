"""Keep cards, It Has a Child! to Wings: what each does, where it stops, and the worked
scenarios.
"""

from __future__ import annotations

import pytest

from engine import PromptedInSecret, Seat, redact
from engine.games.kings.board import KingTable
from tests.engine.tokyo.kit import Kit, first_edition

CITY, BAY, OUTSIDE = "tokyo_city", "tokyo_bay", "outside"
A, B, C, D, E, F = map(Seat, range(1, 7))


def test_it_has_a_child_inside_tokyo() -> None:
    """S6, B20, B64: energy is kept, the place is free, no question; Eater of the Dead is paid."""
    kit = Kit().monster(A, place=CITY, hearts=2, energy=7, points=14)
    kit.monster(A, holds=["it_has_a_child", "gourmet", "jets"]).monster(
        B, holds=["eater_of_the_dead"]
    )
    kit.state_is(active=B)
    kit.turn(B, "sss112", yield_tokyo_1="stay")
    a = kit.at(A)
    assert (a.hearts, a.energy, a.points, a.place, kit.cards(A)) == (10, 7, 0, OUTSIDE, [])
    assert (kit.at(B).points, kit.at(B).place) == (4, CITY)


def test_it_has_a_child_without_a_yield_question() -> None:
    kit = Kit().monster(A, place=CITY, hearts=2, holds=["it_has_a_child"]).turn(B, "sss112")
    assert ("yield_tokyo" in kit.kinds, kit.at(A).alive, kit.at(B).place) == (False, True, CITY)


def test_jets_are_decided_before_the_hearts_go() -> None:
    """S2."""
    kit = Kit().monster(A, place=CITY, hearts=2, holds=["jets"])
    kit.turn(B, "sss112", yield_tokyo="yield")
    assert (kit.at(A).hearts, kit.at(A).place, kit.at(B).place) == (2, OUTSIDE, CITY)
    kit = Kit().monster(A, place=CITY, hearts=2, holds=["jets"])
    kit.turn(B, "sss112", yield_tokyo="stay")
    assert (kit.at(A).alive, kit.at(B).place) == (False, CITY)


def test_jets_do_nothing_outside_or_against_cards() -> None:
    """S4, B22."""
    kit = Kit().monster(A, holds=["jets"]).monster(B, place=CITY).turn(B, "sss112")
    assert kit.at(A).hearts == 7
    kit = Kit().monster(A, place=CITY, holds=["jets"]).monster(B, energy=6).market("gas_refinery")
    kit.turn(B, "112233", buy="gas_refinery")
    assert (kit.at(A).hearts, kit.kinds.count("yield_tokyo")) == (7, 0)


def test_jets_and_a_copy_in_city_and_bay() -> None:
    """B4: both held-back losses are settled one by one."""
    kit = Kit(5).monster(A, place=CITY, holds=["jets"]).copies(C, "jets").monster(C, place=BAY)
    kit.turn(B, "sss112", yield_tokyo_1="stay", yield_tokyo_3="yield")
    assert (kit.at(A).hearts, kit.at(C).hearts) == (7, 10)
    assert (kit.at(A).place, kit.at(C).place, kit.at(B).place) == (CITY, OUTSIDE, BAY)


def test_made_in_a_lab_shows_the_top_card_to_its_owner_only() -> None:
    kit = Kit().deck("wings", "heal").monster(A, energy=6, holds=["made_in_a_lab"])
    kit.turn(A, "112233", buy="wings")
    assert (kit.cards(A), kit.at(A).energy) == (["made_in_a_lab", "wings"], 0)
    assert any(isinstance(fact, PromptedInSecret) for fact in kit.facts)


@pytest.mark.parametrize("energy", range(9))
def test_the_others_learn_nothing_about_the_lab_card(energy: int) -> None:
    """Non-interference: not even whether it could be paid, from there being a question."""
    streams = []
    for deck in (("wings", "solar_powered"), ("solar_powered", "wings")):
        kit = Kit().deck(*deck).monster(A, energy=energy, holds=["made_in_a_lab"])
        kit.monster(A, holds=["alien_origin"]).turn(A, "112233")
        streams.append([redact(fact, Seat(B)) for fact in kit.facts])
    assert streams[0] == streams[1]


def test_what_is_not_bought_from_the_lab_stays_on_top() -> None:
    kit = Kit().deck("wings", "heal").monster(A, energy=2, holds=["made_in_a_lab"])
    kit.turn(A, "112233")
    assert [top.card for top in kit.state.tops] == ["wings"]
    assert len(kit.state.deck) == 2
    kit = Kit().deck("wings", "heal").market("tank").monster(A, energy=4, holds=["made_in_a_lab"])
    kit.turn(A, "112233", buy="tank")
    assert kit.state.market[0].card == "wings"
    assert [top.card for top in kit.state.tops] == ["heal"]


def test_an_empty_deck_shows_nothing_in_the_lab() -> None:
    kit = Kit().monster(A, energy=9, holds=["made_in_a_lab"]).turn(A, "112233")
    assert kit.offered("buy") == ["sweep"]


def test_the_lab_is_used_up_once_its_card_was_bought_and_a_copy_shows_two() -> None:
    kit = Kit().deck("heal", "tank").monster(A, energy=9, holds=["made_in_a_lab"])
    kit.turn(A, "112233", buy="heal")
    assert kit.kinds.count("buy") == 2
    assert [option.subject for option in kit.prompts("buy")[1].options] == ["sweep"]
    kit = Kit().deck("heal", "tank").monster(A, energy=9, holds=["made_in_a_lab"])
    kit.copies(A, "made_in_a_lab").turn(A, "112233")
    assert kit.offered("buy") == ["ware:heal:3", "ware:tank:4", "sweep"]


def test_metamorph_sells_any_number_of_cards_at_the_printed_price() -> None:
    """S62: Spiked Tail bought for 4 brings 5, Metamorph itself 3."""
    kit = Kit().monster(A, energy=4, holds=["alien_origin", "metamorph"]).market("spiked_tail")
    kit.turn(A, "112233", buy="spiked_tail", metamorph__sell=[["spiked_tail", "metamorph"]])
    assert (kit.at(A).energy, kit.cards(A)) == (8, ["alien_origin"])


def test_metamorph_may_refund_what_was_paid() -> None:
    """NOTES 2.16."""
    kit = Kit(metamorph_refund="paid").monster(A, energy=4, holds=["alien_origin", "metamorph"])
    kit.market("spiked_tail")
    kit.turn(A, "112233", buy="spiked_tail", metamorph__sell=[["spiked_tail"]])
    assert kit.at(A).energy == 4


def test_metamorph_and_friend_of_children() -> None:
    """NOTES 2.17."""
    for option, energy in (("false", 3), ("true", 4)):
        kit = Kit(friend_of_children_on_refund=option)
        kit.monster(A, holds=["metamorph", "friend_of_children"])
        kit.turn(A, "112233", metamorph__sell=[["metamorph"]])
        assert kit.at(A).energy == energy


def test_cards_sold_with_metamorph_have_no_end_effect_any_more() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, energy=6, holds=["energy_hoarder", "metamorph"])
    kit.turn(A, "112233", metamorph__sell=[["energy_hoarder"]])
    assert (kit.at(A).points, kit.at(A).energy) == (0, 9)


def test_mimic_chooses_its_model_when_bought_and_own_cards_count() -> None:
    kit = Kit().market("mimic").monster(A, energy=8, holds=["gourmet"]).monster(B, holds=["wings"])
    kit.turn(A, "112233", buy="mimic", mimic__model="wings")
    assert kit.table.acts_as(kit.state.held_by(A)[1]) == "wings"
    kit = Kit().market("mimic").monster(A, energy=8, holds=["gourmet"])
    kit.turn(A, "112233", buy="mimic")
    assert kit.table.acts_as(kit.state.held_by(A)[1]) == "gourmet"


def test_mimic_without_a_model_waits() -> None:
    kit = Kit().market("mimic").monster(A, energy=8).turn(A, "112233", buy="mimic")
    assert (kit.cards(A), "mimic.model" in kit.kinds) == (["mimic"], False)


def test_mimic_has_the_purchase_effects_of_its_model() -> None:
    kit = Kit().market("mimic").monster(A, energy=8, hearts=6).monster(B, holds=["even_bigger"])
    kit.turn(A, "112233", buy="mimic")
    assert kit.at(A).hearts == 8


def test_mimic_changes_for_one_energy_before_rolling() -> None:
    """S22: the maximum falls, hearts are cut."""
    kit = Kit().monster(B, holds=["even_bigger", "giant_brain"]).copies(A, "even_bigger")
    kit.monster(A, hearts=12, energy=1)
    kit.turn(A, "112233", mimic__change="giant_brain")
    assert (kit.at(A).hearts, kit.at(A).energy) == (10, 0)
    assert kit.table.acts_as(kit.state.held_by(A)[0]) == "giant_brain"


def test_mimic_on_smoke_cloud_runs_dry() -> None:
    """S20: it stays, idle; the original's tokens are untouched; no refill from the same card."""
    kit = Kit().monster(B, holds=["smoke_cloud"]).copies(A, "smoke_cloud")
    kit.turn(
        A,
        "112233 1 1 1 1 1",
        reroll=[["die:1"]] * 5,
        roll_action=["smoke_cloud"] * 3,
    )
    assert [each.counter for each in kit.state.holdings] == [3, 0]
    assert (kit.cards(A), kit.cards(B)) == (["mimic"], ["smoke_cloud"])
    for seat in (B, C, D):
        kit.another_turn("112233")
        del seat
    kit.another_turn("112233", roll_action=[])
    assert "mimic.change" not in kit.kinds


def test_the_marker_stays_where_it_is_when_mimic_is_bought_from_another() -> None:
    kit = Kit().monster(C, holds=["gourmet", "jets"]).copies(B, "gourmet")
    kit.monster(A, energy=8, holds=["parasitic_tentacles"]).turn(A, "112233", buy="mimic")
    assert kit.table.acts_as(kit.state.held_by(A)[1]) == "gourmet"
    assert "mimic.model" not in kit.kinds


def test_an_idle_mimic_bought_from_another_stays_idle() -> None:
    kit = Kit().monster(C, holds=["gourmet", "jets"]).copies(B, "gourmet")
    kit.monster(A, energy=12, holds=["parasitic_tentacles"])
    holdings = tuple(each for each in kit._start.holdings if each.card != "gourmet")
    kit.state_is(holdings=holdings).turn(A, "112233", buy="mimic")
    assert kit.table.acts_as(kit.state.held_by(A)[1]) == "mimic"
    assert "mimic.model" not in kit.kinds


def test_mimic_is_idle_when_its_model_leaves_play() -> None:
    kit = Kit().monster(B, place=CITY, hearts=1, holds=["gourmet"]).copies(C, "gourmet")
    kit.turn(A, "s11223").another_turn("111233")
    assert kit.state.active == C
    assert kit.at(C).points == 1


def test_hearts_of_a_copy_are_cut_when_the_model_dies_with_its_owner() -> None:
    """B28."""
    kit = Kit().monster(B, place=CITY, hearts=1, holds=["even_bigger"]).copies(C, "even_bigger")
    kit.monster(C, hearts=12).turn(A, "s11223")
    assert (kit.at(B).alive, kit.at(C).hearts) == (False, 10)


def test_a_held_back_loss_is_due_when_its_victim_is_moved_out_of_tokyo() -> None:
    """Being moved is not yielding."""
    kit = Kit(5, bay_close_rule="must_leave").monster(B, place=CITY, hearts=1)
    kit.monster(C, place=BAY, holds=["jets"]).turn(A, "s11223")
    assert (kit.at(C).place, kit.at(C).hearts, kit.kinds.count("yield_tokyo")) == (OUTSIDE, 9, 0)


def test_nova_breath_hits_everybody_but_does_not_move_anybody() -> None:
    """S58."""
    kit = Kit(6).monster(A, place=CITY).monster(C, place=BAY).monster(B, holds=["nova_breath"])
    kit.turn(B, "ss1123", yield_tokyo_1="yield", yield_tokyo_3="stay")
    assert [kit.at(seat).hearts for seat in (A, C, D, E, F)] == [8] * 5
    assert len(kit.prompts("yield_tokyo")) == 2
    assert kit.at(B).place == CITY
    kit = Kit(6).monster(B, place=CITY, holds=["nova_breath"]).monster(C, place=BAY)
    kit.turn(B, "ss1123", yield_tokyo="yield")
    assert (kit.at(B).place, kit.at(C).place) == (CITY, OUTSIDE)


@pytest.mark.parametrize(("roll", "points"), [("123hhe", 2), ("112233", 2), ("122hhe", 0)])
def test_detritivore_wants_one_two_and_three(roll: str, points: int) -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["detritivore"]).turn(A, roll)
    assert kit.at(A).points == points


def test_opportunist_buys_what_is_revealed_in_anybodys_turn() -> None:
    kit = Kit().market("tank").deck("heal", "wings", "jets").monster(A, energy=4)
    kit.monster(C, energy=9, holds=["opportunist"])
    kit.turn(A, "112233", buy="tank", opportunist__buy=["heal", "wings"])
    assert (kit.cards(C), kit.at(C).energy) == (["opportunist", "wings"], 0)
    assert kit.state.market[0].card == "jets"


def test_opportunist_may_not_buy_what_lay_there_before() -> None:
    kit = Kit().market("tank", "heal").deck("wings").monster(A, energy=4)
    kit.monster(C, energy=9, holds=["opportunist"]).turn(A, "112233", buy="tank")
    assert kit.offered("opportunist.buy") == ["ware:wings:6"]


def test_opportunist_after_a_sweep_may_buy_several() -> None:
    kit = Kit().market("tank").deck("heal", "jets", "wings", "tank").monster(A, energy=2)
    kit.monster(C, energy=11, holds=["opportunist"])
    kit.turn(A, "112233", buy="sweep", opportunist__buy=["jets", "wings"])
    assert kit.cards(C) == ["opportunist", "jets", "wings"]


def test_opportunist_buys_frenzy() -> None:
    """S30: C's extra turn follows A's turn, then B, then C."""
    kit = Kit().market("tank").deck("frenzy").monster(A, energy=4)
    kit.monster(C, energy=7, holds=["opportunist"])
    kit.turn(A, "112233", buy="tank", opportunist__buy="frenzy")
    order = []
    for _ in range(3):
        kit.another_turn("112233")
        order.append(kit.state.active)
    assert order == [C, B, C]


def test_opportunist_takes_death_from_above() -> None:
    """S32."""
    kit = Kit().market("heal").deck("death_from_above").monster(A, place=CITY, energy=3)
    kit.monster(B, energy=5, holds=["opportunist"])
    kit.turn(A, "112233", buy="heal", opportunist__buy="death_from_above")
    assert (kit.at(A).place, kit.at(B).place, kit.at(B).points) == (OUTSIDE, CITY, 3)
    assert kit.another_turn("112233").at(B).points == 5


def test_parasitic_tentacles_pay_the_owner() -> None:
    """S36, B24: not one's own cards; tokens come along, purchase effects happen again."""
    kit = Kit().monster(A, energy=9, hearts=5, holds=["parasitic_tentacles", "wings"])
    kit.monster(B, holds=["even_bigger", "smoke_cloud"])
    kit.turn(A, "112233", buy=["even_bigger", "smoke_cloud"])
    assert "ware:wings:6" not in kit.offered("buy")
    assert (kit.at(A).hearts, kit.at(A).energy, kit.at(B).energy) == (7, 1, 8)
    assert kit.state.held_by(A)[-1].counter == 3


def test_parasitic_tentacles_take_hearts_above_the_maximum_from_the_seller() -> None:
    kit = Kit().monster(A, energy=4, holds=["parasitic_tentacles"])
    kit.monster(B, hearts=12, holds=["even_bigger"]).turn(A, "112233", buy="even_bigger")
    assert kit.at(B).hearts == 10


def test_parasitic_tentacles_work_in_the_own_turn_only_and_with_media_friendly() -> None:
    kit = (
        Kit()
        .monster(A, energy=3)
        .monster(B, holds=["parasitic_tentacles"])
        .monster(C, holds=["jets"])
    )
    kit.market("heal").turn(A, "112233")
    assert kit.offered("buy") == ["ware:heal:3", "sweep"]
    kit = Kit().monster(A, energy=5, holds=["parasitic_tentacles", "media_friendly"])
    kit.monster(C, holds=["jets"]).turn(A, "112233", buy="jets")
    assert kit.at(A).points == 2


def test_plot_twist_turns_a_die_once() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["plot_twist"])
    kit.turn(A, "11hsee", change_dice="plot_twist", plot_twist__die="die:3", plot_twist__face="one")
    assert (kit.at(A).points, kit.cards(A), kit.state.discard) == (1, [], ("plot_twist",))


def test_a_used_up_copy_of_plot_twist_is_itself_discarded() -> None:
    kit = Kit().monster(B, holds=["plot_twist"]).copies(A, "plot_twist")
    kit.turn(A, "11hsee", change_dice="plot_twist")
    assert (kit.cards(A), kit.cards(B), kit.state.discard) == ([], ["plot_twist"], ("mimic",))


def test_poison_quills_add_two_smashes() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["poison_quills"]).turn(A, "222112")
    assert kit.at(B).hearts == 8
    kit = Kit().monster(B, place=CITY).monster(A, holds=["poison_quills"]).turn(A, "221133")
    assert kit.at(B).hearts == 10


def test_poison_quills_trigger_spiked_tail_but_not_in_the_first_edition() -> None:
    for kit, hearts in ((Kit(), 7), (first_edition(), 8)):
        kit.monster(B, place=CITY).monster(A, holds=["poison_quills", "spiked_tail"])
        kit.turn(A, "222113")
        assert kit.at(B).hearts == hearts


def test_poison_spit_gives_one_token_per_attack_and_copy() -> None:
    """S16, B26."""
    kit = Kit(3).monster(B, place=CITY, holds=["poison_spit"]).copies(B, "poison_spit")
    kit.turn(B, "sss112")
    assert (kit.at(A).poison, kit.at(C).poison) == (2, 2)


def test_poison_hurts_at_the_end_of_the_victims_turn() -> None:
    kit = Kit(3).monster(B, place=CITY, holds=["poison_spit"]).turn(B, "s11223")
    kit.another_turn("112233")
    assert (kit.state.active, kit.at(C).hearts, kit.at(C).poison) == (C, 8, 1)


def test_psychic_probe_acts_before_the_dice_are_changed() -> None:
    """S26."""
    kit = Kit().monster(A, energy=2, holds=["stretchy", "herd_culler"])
    kit.monster(D, holds=["psychic_probe"])
    kit.turn(
        A,
        "112233 e",
        psychic_probe__die="die:1",
        change_dice="stretchy",
        stretchy__die="die:1",
        stretchy__face="smash",
    )
    assert kit.state.dice[0] == "smash"
    assert kit.kinds.index("psychic_probe.die") < kit.kinds.index("change_dice")
    assert kit.kinds.count("psychic_probe.die") == 1


def test_two_probes_act_clockwise_from_the_active_monster() -> None:
    """S28: the copy of seat B decides first and both may choose the same die."""
    kit = Kit(3).monster(C, holds=["psychic_probe"]).copies(B, "psychic_probe")
    kit.turn(A, "112233 e s", psychic_probe__die=["die:1", "die:1"])
    assert [prompt.seat for prompt in kit.prompts("psychic_probe.die")] == [B, C]
    assert kit.state.dice[0] == "smash"


def test_the_probe_may_be_declined() -> None:
    kit = Kit().monster(B, holds=["psychic_probe"]).turn(A, "112233", psychic_probe__die="")
    assert kit.state.dice == ("one", "one", "two", "two", "three", "three")
    assert kit.state.held_by(B)[0].used == 0


def test_a_heart_discards_the_probe_and_counts_for_the_active_monster() -> None:
    kit = Kit().monster(B, holds=["psychic_probe"]).monster(C, place=CITY).monster(A, hearts=5)
    kit.turn(A, "112233 h", psychic_probe__die="die:1")
    assert (kit.cards(B), kit.at(A).hearts) == ([], 6)


def test_a_copy_of_a_discarded_probe_acts_no_more() -> None:
    kit = Kit(3).monster(B, holds=["psychic_probe"]).copies(C, "psychic_probe")
    kit.turn(A, "112233 h", psychic_probe__die=["die:1"])
    assert [prompt.seat for prompt in kit.prompts("psychic_probe.die")] == [B]


def test_a_probe_and_its_copy_of_one_monster_act_once() -> None:
    kit = Kit(3).monster(B, holds=["psychic_probe"]).copies(B, "psychic_probe")
    kit.turn(A, "112233 e", psychic_probe__die=["die:1"])
    assert kit.kinds.count("psychic_probe.die") == 1


def test_rapid_healing_in_the_nick_of_time() -> None:
    """S40, B10."""
    kit = Kit().monster(A, place=CITY, hearts=1, energy=4, holds=["rapid_healing"])
    kit.turn(B, "ss1123", prevent_loss=["rapid_healing", "rapid_healing"])
    assert (kit.at(A).hearts, kit.at(A).energy, kit.kinds.count("yield_tokyo")) == (1, 0, 1)
    kit = Kit().monster(A, place=CITY, hearts=1, energy=3, holds=["rapid_healing"])
    kit.turn(B, "ss1123", prevent_loss=["rapid_healing"])
    assert not kit.at(A).alive


def test_rapid_healing_at_the_end_of_the_turn_in_the_first_revision() -> None:
    """Later only after a sale: it is an action at any time (NOTES 1.13), which no bench runs."""
    kit = Kit(revision=1).monster(A, place=CITY, hearts=5, energy=5, holds=["rapid_healing"])
    kit.turn(A, "112233", before_end=["rapid_healing", "rapid_healing"])
    assert (kit.at(A).hearts, kit.at(A).energy) == (7, 1)
    kit = Kit(revision=1).monster(A, hearts=5, place=CITY, holds=["metamorph", "rapid_healing"])
    kit.turn(A, "112233", metamorph__sell=[["metamorph"]], before_end="rapid_healing")
    assert (kit.at(A).hearts, kit.at(A).energy) == (6, 1)
    kit = Kit().monster(A, place=CITY, hearts=5, energy=5, holds=["rapid_healing"])
    assert "before_end" not in kit.turn(A, "112233").kinds
    kit = Kit().monster(A, hearts=5, place=CITY, holds=["metamorph", "rapid_healing"])
    kit.turn(A, "112233", metamorph__sell=[["metamorph"]], before_end="rapid_healing")
    assert (kit.at(A).hearts, kit.at(A).energy) == (6, 1)


@pytest.mark.parametrize(("hearts", "may_act"), [(0, False), (1, True), (9, True), (10, False)])
def test_who_has_fallen_or_is_whole_does_not_act(hearts: int, may_act: bool) -> None:
    """A monster at 0 hearts may come back, but it does nothing until then (CHANGES.md, 2)."""
    kit = Kit().monster(A, hearts=hearts, energy=2, holds=["rapid_healing"])
    offered: list[object] = []

    async def look(table: KingTable) -> None:
        offered.extend(table.actions())

    kit.play(look)
    assert bool(offered) == may_act


def test_rapid_healing_before_the_energy_is_taken() -> None:
    """NOTES 1.13: nobody waits between the purchase and the storm, so its owner is asked."""
    kit = Kit().monster(A, energy=6).market("vast_storm")
    kit.monster(B, place=CITY, hearts=5, energy=5, holds=["rapid_healing"])
    kit.turn(A, "112233", buy="vast_storm", before_energy_loss=["rapid_healing"])
    assert (kit.at(B).hearts, kit.at(B).energy) == (6, 2)


def test_regeneration_adds_one_per_gain() -> None:
    kit = Kit().monster(A, hearts=5, holds=["regeneration"]).monster(B, place=CITY)
    assert kit.turn(A, "hh1122").at(A).hearts == 8
    kit = Kit().monster(A, hearts=5, energy=3, holds=["regeneration"]).market("heal")
    assert kit.turn(A, "112233", buy="heal").at(A).hearts == 8


def test_regeneration_does_not_help_when_another_heals() -> None:
    kit = Kit().monster(B, hearts=5, holds=["regeneration"]).monster(A, holds=["healing_ray"])
    assert kit.turn(A, "h11223", use_hearts=[[1]]).at(B).hearts == 6


@pytest.mark.parametrize(("points", "others", "expected"), [(0, 2, 1), (2, 2, 2), (3, 2, 3)])
def test_rooting_for_the_underdog_pays_the_single_last(
    points: int, others: int, expected: int
) -> None:
    """B18: a tie pays nothing."""
    kit = Kit(3).monster(B, place=CITY, points=others).monster(C, points=9)
    kit.monster(A, points=points, holds=["rooting_for_the_underdog"])
    assert kit.turn(A, "112233").at(A).points == expected


def test_rooting_may_be_paid_in_any_turn() -> None:
    """NOTES 2.21."""
    for option, points in (("own_turn", 0), ("any_turn", 1)):
        kit = Kit(3, rooting_when=option).monster(A, points=5).monster(B, points=5)
        kit.monster(C, holds=["rooting_for_the_underdog"])
        assert kit.turn(A, "112233").at(C).points == points


def test_shrink_ray_takes_dice_away() -> None:
    kit = Kit(3).monster(B, place=CITY, holds=["shrink_ray"]).turn(B, "s11223")
    kit.another_turn("11223")
    assert (kit.state.active, len(kit.state.dice)) == (C, 5)
    kit.another_turn("11223", yield_tokyo=[])
    assert kit.at(A).shrink == 1


def test_removing_a_shrink_token_helps_from_the_next_turn() -> None:
    kit = Kit().monster(A, shrink=1).monster(B, place=CITY).turn(A, "h1122", use_hearts=[[1]])
    assert (kit.at(A).shrink, len(kit.state.dice)) == (0, 5)


def test_smoke_cloud_gives_three_extra_rolls_and_goes() -> None:
    kit = Kit().monster(A, holds=["smoke_cloud"])
    kit.turn(A, "112233 1 1 1 1 1", reroll=[["die:1"]] * 5, roll_action=["smoke_cloud"] * 3)
    assert (kit.cards(A), kit.state.discard) == ([], ("smoke_cloud",))


def test_solar_powered_gives_one_to_the_empty() -> None:
    assert Kit().monster(A, holds=["solar_powered"]).turn(A, "112233").at(A).energy == 1
    kit = Kit().monster(A, energy=1, holds=["solar_powered"]).turn(A, "112233")
    assert kit.at(A).energy == 1
    kit = Kit().monster(A, holds=["solar_powered", "friend_of_children"]).turn(A, "112233")
    assert kit.at(A).energy == 2


def test_spiked_tail_adds_one_to_a_result_with_a_smash() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, holds=["spiked_tail"]).turn(A, "s11223")
    assert kit.at(B).hearts == 8
    kit = Kit().monster(B, place=CITY).monster(A, holds=["spiked_tail"]).turn(A, "112233")
    assert kit.at(B).hearts == 10
    kit = first_edition().monster(B, place=CITY).monster(A, holds=["spiked_tail"]).turn(A, "s11223")
    assert kit.at(B).hearts == 8


def test_acid_attack_is_enough_for_spiked_tail_and_urbavore() -> None:
    """NOTES 1.5."""
    kit = Kit(2).monster(A, place=CITY, holds=["spiked_tail", "urbavore", "acid_attack"])
    assert kit.turn(A, "112233").at(B).hearts == 7


def test_stretchy_as_often_as_it_can_be_paid() -> None:
    kit = Kit().monster(A, energy=5, holds=["stretchy"])
    kit.turn(
        A,
        "12hsee",
        change_dice=["stretchy", "stretchy"],
        stretchy__die=["die:2", "die:3"],
        stretchy__face=["one", "one"],
    )
    assert (kit.state.dice[:3], kit.at(A).energy) == (("one", "one", "one"), 1 + 2)


def test_energy_drink_buys_extra_rolls() -> None:
    kit = Kit().monster(A, energy=2, holds=["energy_drink"])
    kit.turn(A, "112233 1 1 1 1", reroll=[["die:1"]] * 4, roll_action=["energy_drink"] * 2)
    assert kit.at(A).energy == 0


def test_urbavore_in_tokyo_only() -> None:
    kit = Kit(2).monster(A, place=CITY, holds=["urbavore"]).turn(A, "s11223")
    assert (kit.at(A).points, kit.at(A).energy, kit.at(B).hearts) == (1, 1, 8)
    kit = Kit(3).monster(B, place=CITY).monster(A, holds=["urbavore"]).turn(A, "s11223")
    assert (kit.at(A).points, kit.at(B).hearts) == (0, 9)


def test_making_it_stronger_pays_for_two_or_more_really_lost() -> None:
    kit = Kit().monster(B, place=CITY, holds=["making_it_stronger"]).turn(A, "sss112")
    assert kit.at(B).energy == 1
    kit = Kit().monster(B, place=CITY, holds=["making_it_stronger", "camouflage"])
    assert kit.turn(A, "ss1123 h1", prevent_loss="camouflage").at(B).energy == 0


def test_wings_protect_for_the_whole_turn() -> None:
    kit = Kit().monster(B, place=CITY, energy=2, holds=["wings"]).monster(A, energy=3)
    kit.market("flame_thrower")
    kit.turn(A, "ss1123", prevent_loss="wings", buy="flame_thrower")
    assert (kit.at(B).hearts, kit.kinds.count("yield_tokyo")) == (10, 0)
    assert kit.kinds.count("prevent_loss") == 1
    assert not kit.another_turn("112233").at(B).guarded


def test_wings_against_the_own_card_and_the_own_poison() -> None:
    """S42."""
    kit = Kit().monster(A, hearts=4, energy=7, poison=1, holds=["wings"]).market("jet_fighters")
    kit.turn(A, "112233", buy="jet_fighters", prevent_loss="wings")
    assert (kit.at(A).hearts, kit.at(A).points, kit.at(A).energy) == (4, 6, 0)


def test_wings_need_two_energy() -> None:
    kit = Kit().monster(B, place=CITY, energy=1, holds=["wings"]).turn(A, "ss1123")
    assert (kit.at(B).hearts, "prevent_loss" in kit.kinds) == (8, False)
