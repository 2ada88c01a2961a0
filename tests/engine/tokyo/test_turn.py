"""The turn without cards: points, hearts, energy, smashes, yielding, entering, the Bay, the end."""

from __future__ import annotations

from typing import cast

import pytest

from engine import PASS, Answer, Answered, MatchState, Seat, Session, evolve, fold
from engine.games.kings.facts import FirstPlayerRolled, PlaceHeld, PlaceYielded
from engine.games.kings.state import KingsState
from tests.engine.playing import Match, random_answer
from tests.engine.tokyo.kit import Kit

CITY, BAY, OUTSIDE = "tokyo_city", "tokyo_bay", "outside"
A, B, C, D, E, F = 1, 2, 3, 4, 5, 6


def table_of(state: MatchState) -> KingsState:
    return cast("KingsState", state.table)


@pytest.mark.parametrize(
    ("roll", "points"),
    [("111eee", 1), ("1111ee", 2), ("222eee", 2), ("333333", 6), ("112233", 0), ("111222", 3)],
)
def test_three_of_a_number_score_it_and_each_more_scores_one_more(roll: str, points: int) -> None:
    """NOTES 1.6.2; entering empty Tokyo gives one more point."""
    assert Kit().turn(A, roll).at(A).points == points + 1


def test_energy_dice_give_energy() -> None:
    assert Kit().turn(A, "eeee12").at(A).energy == 4


def test_hearts_heal_outside_up_to_ten() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, hearts=8).turn(A, "hhhh12")
    assert kit.at(A).hearts == 10


def test_hearts_do_nothing_in_tokyo() -> None:
    kit = Kit().monster(A, hearts=5, place=CITY).turn(A, "hhhh12")
    assert kit.at(A).hearts == 5


def test_tokens_can_be_removed_outside_but_not_in_tokyo() -> None:
    """S12: (i) in Tokyo hearts do nothing; (ii) at full hearts both tokens go, the third is
    lost.
    """
    kit = Kit().monster(A, hearts=6, poison=2, place=CITY).turn(A, "hhh112")
    assert (kit.at(A).poison, kit.at(A).hearts) == (2, 4)
    kit = Kit().monster(B, place=CITY).monster(A, poison=2)
    kit.turn(A, "hhh112", use_hearts=[[2]])
    assert (kit.at(A).poison, kit.at(A).hearts) == (0, 10)


def test_the_player_splits_hearts_between_healing_and_tokens() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, hearts=5, poison=1, shrink=1)
    kit.turn(A, "hhh12", use_hearts=[[1, 1, 1]])
    assert (kit.at(A).hearts, kit.at(A).poison, kit.at(A).shrink) == (6, 0, 0)


def test_all_hearts_that_can_be_used_must_be() -> None:
    kit = Kit().monster(B, place=CITY).monster(A, hearts=9, poison=1).turn(A, "hhh112")
    (prompt,) = kit.prompts("use_hearts")
    assert (prompt.low, prompt.high, prompt.limits) == (2, 2, (1, 1))


def test_smashes_from_outside_hit_tokyo_only() -> None:
    kit = Kit(5).monster(B, place=CITY).monster(C, place=BAY).turn(A, "sss112")
    assert [kit.at(seat).hearts for seat in (A, B, C, D, E)] == [10, 7, 7, 10, 10]


def test_smashes_from_tokyo_hit_outside_only_and_never_the_other_place() -> None:
    """NOTES 2.7."""
    kit = Kit(5).monster(A, place=CITY).monster(C, place=BAY).turn(A, "sss112")
    assert [kit.at(seat).hearts for seat in (A, B, C, D, E)] == [10, 7, 10, 7, 7]
    assert "yield_tokyo" not in kit.kinds


def test_nobody_is_hit_in_empty_tokyo() -> None:
    kit = Kit().turn(A, "sss112")
    assert all(kit.at(seat).hearts == 10 for seat in (A, B, C, D))
    assert kit.at(A).place == CITY


def test_a_wounded_monster_may_yield_and_the_attacker_must_enter() -> None:
    kit = Kit().monster(B, place=CITY).turn(A, "s11223", yield_tokyo="yield")
    assert (kit.at(A).place, kit.at(B).place) == (CITY, OUTSIDE)
    assert (kit.at(A).points, kit.at(B).hearts) == (1, 9)


def test_staying_keeps_the_attacker_out() -> None:
    kit = Kit().monster(B, place=CITY).turn(A, "s11223", yield_tokyo="stay")
    assert (kit.at(A).place, kit.at(B).place, kit.at(A).points) == (OUTSIDE, CITY, 0)


def test_entering_is_mandatory_online_but_wants_a_smash_in_the_classic_rules() -> None:
    """NOTES 2.1."""
    assert Kit().turn(A, "112233").at(A).place == CITY
    assert Kit(preset="classic").turn(A, "112233").at(A).place == OUTSIDE
    assert Kit(preset="classic").turn(A, "11223s").at(A).place == CITY


def test_the_turn_starts_with_two_points_in_tokyo() -> None:
    assert Kit().monster(A, place=CITY).turn(A, "112233").at(A).points == 2
    assert Kit(5).monster(B, place=CITY).monster(A, place=BAY).turn(A, "112233").at(A).points == 2


def test_two_players_get_energy_instead_of_points() -> None:
    """NOTES 2.3."""
    kit = Kit(2).monster(A, place=CITY).turn(A, "112233")
    assert (kit.at(A).points, kit.at(A).energy) == (0, 1)
    kit = Kit(2).turn(A, "112233")
    assert (kit.at(A).points, kit.at(A).energy) == (0, 1)
    kit = Kit(2, preset="classic").monster(A, place=CITY).turn(A, "112233")
    assert (kit.at(A).points, kit.at(A).energy) == (2, 0)


def test_the_bay_is_open_with_five_and_the_city_comes_first() -> None:
    """S68."""
    kit = Kit(5).monster(A, place=CITY).turn(B, "ss1123", yield_tokyo="stay")
    assert (kit.at(B).place, kit.at(B).points) == (BAY, 1)
    kit.another_turn("112233")
    assert kit.at(C).place == OUTSIDE
    kit = Kit(5, preset="classic").monster(A, place=CITY).turn(C, "112233")
    assert kit.at(C).place == OUTSIDE
    assert Kit(5).turn(C, "112233").at(C).place == CITY


def test_the_bay_closes_with_four_and_its_monster_moves_to_a_free_city() -> None:
    """NOTES 2.4 and 2.5 (B6): the killer stays outside."""
    kit = Kit(5).monster(B, place=CITY, hearts=1).monster(C, place=BAY)
    kit.turn(A, "s11223", yield_tokyo_3="stay")
    assert (kit.at(B).alive, kit.at(C).place, kit.at(A).place) == (False, CITY, OUTSIDE)
    assert kit.at(C).points == 0


def test_the_killer_may_come_first_when_the_bay_closes() -> None:
    kit = Kit(5, bay_close_priority="attacker_first")
    kit.monster(B, place=CITY, hearts=1).monster(C, place=BAY)
    kit.turn(A, "s11223", yield_tokyo_3="stay")
    assert (kit.at(A).place, kit.at(C).place) == (CITY, OUTSIDE)


def test_the_bay_monster_must_leave_under_that_option() -> None:
    kit = Kit(5, bay_close_rule="must_leave", tokyo_entry_rule="attack_required")
    kit.monster(B, place=CITY, hearts=1).monster(C, place=BAY)
    kit.turn(A, "s11223")
    assert (kit.at(C).place, kit.at(A).place) == (OUTSIDE, CITY)
    assert "yield_tokyo" not in kit.kinds


def test_the_city_leaves_and_the_bay_stays() -> None:
    """S66."""
    kit = Kit(6).monster(A, place=CITY).monster(C, place=BAY)
    kit.turn(B, "s11223", yield_tokyo_1="yield", yield_tokyo_3="stay")
    assert (kit.at(B).place, kit.at(C).place, kit.at(B).points) == (CITY, BAY, 1)
    kit = Kit(6, bay_shift_on_city_yield="true").monster(A, place=CITY).monster(C, place=BAY)
    kit.turn(B, "s11223", yield_tokyo_1="yield", yield_tokyo_3="stay")
    assert (kit.at(B).place, kit.at(C).place, kit.at(C).points) == (BAY, CITY, 0)


def test_city_and_bay_decide_at_the_same_time() -> None:
    kit = Kit(5).monster(B, place=CITY).monster(C, place=BAY)
    kit.turn(A, "s11223", yield_tokyo_2="yield", yield_tokyo_3="yield")
    assert (kit.at(A).place, kit.at(B).place, kit.at(C).place) == (CITY, OUTSIDE, OUTSIDE)


def test_a_killed_monster_leaves_its_place_to_the_killer() -> None:
    kit = Kit().monster(B, place=CITY, hearts=1, points=7, energy=3).turn(A, "s11223")
    assert (kit.at(B).alive, kit.at(B).place, kit.at(B).energy) == (False, OUTSIDE, 0)
    assert kit.at(A).place == CITY
    assert "yield_tokyo" not in kit.kinds


def test_the_last_survivor_wins() -> None:
    kit = Kit(2).monster(B, place=CITY, hearts=1).turn(A, "s11223")
    assert kit.winners == (A,)


def test_twenty_points_win_at_the_end_of_the_turn() -> None:
    """S50: the turn is played out first."""
    kit = Kit().monster(A, points=19, place=CITY).turn(A, "112233")
    assert kit.winners == (A,)
    assert kit.at(A).points == 20


def test_twenty_points_of_another_count_at_any_turn_end_or_only_at_the_own() -> None:
    """NOTES 2.11."""
    assert Kit().monster(B, points=20).turn(A, "112233").winners == (B,)
    kit = Kit(vp_win_check="own_turn_end").monster(B, points=20).turn(A, "112233")
    assert kit.winners is None
    assert kit.another_turn("112233").winners == (B,)


def test_points_are_capped_at_twenty_by_default() -> None:
    """NOTES 2.13."""
    assert Kit().monster(A, points=19).turn(A, "333333").at(A).points == 20
    kit = Kit(score_cap_20="false").monster(A, points=19).turn(A, "333333")
    assert kit.at(A).points == 26


def test_poison_comes_before_the_check() -> None:
    """S70."""
    kit = Kit(3).monster(A, place=CITY, hearts=1, poison=1, points=18).turn(A, "112233")
    assert (kit.winners, kit.at(A).alive) == (None, False)
    kit = Kit(3).monster(A, place=CITY, hearts=1, poison=1, points=18, holds=["armor_plating"])
    assert kit.turn(A, "112233").winners == (A,)


def test_poison_may_hurt_at_the_start_of_the_turn() -> None:
    """NOTES 2.14."""
    kit = Kit(poison_timing="own_turn_start").monster(A, poison=2).monster(B, place=CITY)
    kit.turn(A, "hh1123", use_hearts=[[0, 2]])
    assert (kit.at(A).hearts, kit.at(A).poison) == (8, 0)


def test_poison_of_a_dead_monster_still_hurts() -> None:
    """S14: nobody counts as the one dealing it."""
    kit = Kit().dead(B).monster(A, poison=1).turn(A, "112233")
    assert kit.at(A).hearts == 9


def test_rerolling_dice_and_stopping() -> None:
    kit = Kit().turn(A, "112233 ss s", reroll=[["die:1", "die:2"], ["die:3"]])
    assert kit.state.dice == ("smash", "smash", "smash", "two", "three", "three")
    assert len(kit.prompts("reroll")) == 2
    assert [prompt.cause for prompt in kit.prompts("reroll")] == ["rolls_left_2", "rolls_left_1"]


def test_the_player_chooses_the_order_of_resolution() -> None:
    """NOTES 2.10."""
    kit = Kit().monster(B, place=CITY)
    kit.turn(A, "111ess", resolution_order=[["smash", "energy", "one"]], yield_tokyo="stay")
    assert kit.kinds.index("yield_tokyo") > kit.kinds.index("resolution_order")
    kit = Kit(dice_resolution_order="fixed").turn(A, "111ess")
    assert "resolution_order" not in kit.kinds


def test_sweeping_costs_two_and_shows_three_new_cards() -> None:
    """NOTES 2.37: any number of times, and what appears may be bought."""
    kit = Kit().market("tank", "heal", "jets").deck("energize", "skyscraper", "wings", "frenzy")
    kit.monster(A, energy=8).turn(A, "112233", buy=["sweep", "wings"])
    assert [slot.card for slot in kit.state.market] == ["energize", "skyscraper", "frenzy"]
    assert kit.state.discard == ("tank", "heal", "jets")
    assert (kit.at(A).energy, kit.cards(A)) == (0, ["wings"])


def test_the_discard_pile_becomes_the_deck_when_that_is_empty() -> None:
    kit = Kit().market("tank").state_is(discard=("heal",)).monster(A, energy=4)
    kit.turn(A, "112233", buy="tank")
    assert [slot.card for slot in kit.state.market] == ["heal", "", ""]
    assert (kit.state.deck, kit.state.discard) == (("tank",), ())


def test_only_affordable_cards_are_offered() -> None:
    kit = Kit().market("tank", "mimic", "made_in_a_lab").monster(A, energy=4).turn(A, "112233")
    assert kit.offered("buy") == ["ware:tank:4", "ware:made_in_a_lab:2", "sweep"]


def test_a_monster_that_dies_in_its_own_turn_acts_no_more() -> None:
    """B48 and S48: twenty points do not help the dead."""
    kit = Kit().market("jet_fighters", "tank").monster(A, hearts=4, points=14, energy=9)
    kit.turn(A, "112233", buy="jet_fighters")
    assert (kit.at(A).alive, kit.winners) == (False, None)
    assert kit.kinds.count("buy") == 1


def test_a_living_points_winner_is_checked_even_when_the_active_monster_died() -> None:
    kit = Kit().market("jet_fighters").monster(A, hearts=4, energy=9).monster(C, points=20)
    assert kit.turn(A, "112233", buy="jet_fighters").winners == (C,)


def test_nobody_left_nobody_wins() -> None:
    """NOTES 2.36."""
    kit = Kit(2).monster(A, hearts=3).monster(B, hearts=3).buy(A, "high_altitude_bombing")
    assert kit.winners == ()


def test_the_turn_passes_to_the_next_living_monster() -> None:
    kit = Kit().dead(B).turn(A, "112233").another_turn("112233")
    assert kit.state.active == C


def test_the_first_player_has_most_smashes_and_ties_roll_again() -> None:
    """NOTES 2.8."""
    match = Match(seats=6, seed=5)
    rolls = [fact for fact in match.facts if isinstance(fact, FirstPlayerRolled)]
    best = max(fact.faces.count("smash") for fact in rolls[:6])
    tied = [fact.seat for fact in rolls[:6] if fact.faces.count("smash") == best]
    first = table_of(match.session.state).first
    assert first in tied
    if len(tied) > 1:
        assert [fact.seat for fact in rolls[6 : 6 + len(tied)]] == tied


def test_the_first_player_may_be_random() -> None:
    firsts = {
        table_of(match.session.state).active
        for match in (
            Match(seats=3, seed=seed, options={"first_player_rule": "random"}) for seed in range(20)
        )
    }
    assert firsts == {1, 2, 3}


def test_a_whole_match_ends() -> None:
    match = Match(seats=4, seed=11)
    match.play(random_answer)
    assert match.session.state.status == "finished"


def test_questions_without_a_choice_are_not_asked() -> None:
    """Plain healing, a market nobody can pay, a full-hearted monster."""
    kit = Kit().monster(B, place=CITY).monster(A, hearts=8).market("tank").turn(A, "h11223")
    assert kit.kinds == ["reroll"]
    kit = Kit().monster(B, place=CITY).turn(A, "hh1123")
    assert kit.kinds == ["reroll"]


def test_what_is_left_is_not_resolved_for_a_monster_that_died_meanwhile() -> None:
    """B48."""
    kit = Kit().monster(B, place=CITY, holds=["burrowing"]).monster(A, hearts=1)
    kit.turn(A, "seee12", resolution_order=[["smash", "energy"]], yield_tokyo="yield")
    assert (kit.at(A).alive, kit.at(A).energy) == (False, 0)


def test_staying_and_yielding_are_told() -> None:
    kit = Kit(5).monster(B, place=CITY).monster(C, place=BAY)
    kit.turn(A, "s11223", yield_tokyo_2="stay", yield_tokyo_3="yield")
    told = [fact for fact in kit.facts if isinstance(fact, PlaceHeld | PlaceYielded)]
    assert told == [PlaceHeld(Seat(B), CITY), PlaceYielded(Seat(C), BAY)]


def test_a_roll_that_is_kept_ends_the_rolling() -> None:
    kit = Kit().turn(A, "112233", reroll=[""])
    assert len(kit.prompts("reroll")) == 1


def test_losing_a_copied_bigger_body_costs_two_when_its_model_is_sold() -> None:
    """NOTES 2.19 for a copy."""
    kit = Kit(even_bigger_loss="lose_two").monster(A, holds=["metamorph", "even_bigger"])
    kit.copies(B, "even_bigger").monster(B, hearts=9)
    kit.turn(A, "112233", metamorph__sell=[["even_bigger"]])
    assert kit.at(B).hearts == 7


def test_standing_answers_pass_under_so_much_energy_and_yield_under_so_many_hearts() -> None:
    match = Match(seats=2, seed=21)
    for seat in (1, 2):
        match.facts += match.session.set_standing_answer(
            Seat(seat), "yield_tokyo", Answer(picks=("yield",)), below=6
        ).facts
        match.facts += match.session.set_standing_answer(Seat(seat), "buy", PASS, below=4).facts
    match.play(random_answer)
    state = fold(())
    for fact in match.facts:
        if isinstance(fact, Answered):
            (prompt,) = [each for each in state.prompts if each.id == fact.prompt_id]
            monster = table_of(state).monster(fact.seat)
            if prompt.kind == "yield_tokyo" and monster.hearts < 6:
                assert fact.answer == Answer(picks=("yield",))
            if prompt.kind == "buy" and monster.energy < 4:
                assert fact.answer == PASS
        state = evolve(state, fact)
    Session.verify_rules(match.facts)
