"""A card that was used leaves the window open: what else may be used there is offered again."""

from __future__ import annotations

from tests.engine.tokyo.kit import Kit

A, B = 1, 2


def test_after_a_plot_twist_other_cards_may_still_change_dice() -> None:
    kit = Kit().monster(A, holds=["plot_twist", "herd_culler"])
    kit.turn(
        A,
        "11hhee",
        change_dice=["plot_twist", "herd_culler"],
        plot_twist__die="die:3",
        plot_twist__face="one",
        herd_culler__die="die:4",
    )
    assert (kit.state.dice.count("one"), kit.cards(A)) == (4, ["herd_culler"])


def test_after_rerolled_threes_other_cards_may_still_change_dice() -> None:
    """Threes that come again may be rolled again as well."""
    kit = Kit().monster(A, holds=["background_dweller", "herd_culler"])
    kit.turn(
        A,
        "311122 3 e",
        change_dice=["background_dweller", "background_dweller", "herd_culler"],
        background_dweller__dice=[["die:1"], ["die:1"]],
        herd_culler__die="die:1",
    )
    assert kit.state.dice[0] == "one"


def test_a_probed_three_that_comes_again_may_be_rolled_again() -> None:
    kit = Kit().monster(B, holds=["psychic_probe", "background_dweller"])
    kit.turn(
        A,
        "112233 3 3 e",
        psychic_probe__die="die:1",
        change_probed_die=["background_dweller", "background_dweller"],
    )
    assert kit.state.dice[0] == "energy"
