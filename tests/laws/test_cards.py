"""Laws over all cards: complete entries, printed data, a scenario for each, and copies that equal
their model.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import msgspec
import pytest

from engine import Game, Holding, MatchState, Seat, find_game
from engine.core.bench import Bench, Chance
from engine.core.table import Table
from engine.games.kings.state import KingsState, Monster, Slot
from engine.games.kings.tokyo.facts import TokyoState
from engine.games.kings.tokyo.turn import play_turn
from tests.engine.playing import random_answer

GAME = cast("Game[KingsState]", find_game("king_of_tokyo"))

# id: (cost, copies) as printed in 2016
KEEP = {
    "acid_attack": (6, 1),
    "alien_origin": (3, 1),
    "alpha_monster": (5, 1),
    "armor_plating": (4, 1),
    "background_dweller": (4, 1),
    "battery_monster": (3, 1),
    "burrowing": (5, 1),
    "camouflage": (3, 1),
    "complete_destruction": (3, 1),
    "media_friendly": (3, 1),
    "eater_of_the_dead": (4, 1),
    "energy_hoarder": (3, 1),
    "even_bigger": (4, 1),
    "extra_head": (7, 2),
    "fire_breathing": (4, 1),
    "freeze_time": (5, 1),
    "friend_of_children": (3, 1),
    "giant_brain": (5, 1),
    "gourmet": (4, 1),
    "healing_ray": (4, 1),
    "herbivore": (5, 1),
    "herd_culler": (3, 1),
    "it_has_a_child": (7, 1),
    "jets": (5, 1),
    "made_in_a_lab": (2, 1),
    "metamorph": (3, 1),
    "mimic": (8, 1),
    "nova_breath": (7, 1),
    "detritivore": (4, 1),
    "opportunist": (3, 1),
    "parasitic_tentacles": (4, 1),
    "plot_twist": (3, 1),
    "poison_quills": (3, 1),
    "poison_spit": (4, 1),
    "psychic_probe": (3, 1),
    "rapid_healing": (3, 1),
    "regeneration": (4, 1),
    "rooting_for_the_underdog": (3, 1),
    "shrink_ray": (6, 1),
    "smoke_cloud": (4, 1),
    "solar_powered": (2, 1),
    "spiked_tail": (5, 1),
    "stretchy": (3, 1),
    "energy_drink": (4, 1),
    "urbavore": (4, 1),
    "making_it_stronger": (3, 1),
    "wings": (6, 1),
}
DISCARD = {
    "apartment_building": (5, 1),
    "commuter_train": (4, 1),
    "corner_store": (3, 1),
    "death_from_above": (5, 1),
    "energize": (8, 1),
    "evacuation_orders": (7, 2),
    "flame_thrower": (3, 1),
    "frenzy": (7, 1),
    "gas_refinery": (6, 1),
    "heal": (3, 1),
    "high_altitude_bombing": (4, 1),
    "jet_fighters": (5, 1),
    "national_guard": (3, 1),
    "nuclear_power_plant": (6, 1),
    "skyscraper": (6, 1),
    "tank": (4, 1),
    "vast_storm": (6, 1),
}


def test_the_deck_is_the_printed_one() -> None:
    """The base deck; the decks of expansions have lists of their own."""
    cards = GAME.decks[0].cards
    assert list(cards) == [*KEEP, *DISCARD]
    assert {card.id: (card.cost, card.copies) for card in cards.values()} == {**KEEP, **DISCARD}
    assert {card.id for card in cards.values() if card.kind == "keep"} == set(KEEP)
    assert len(GAME.decks[0].ids()) == 66


@pytest.mark.parametrize("card_id", sorted(GAME.cards))
def test_every_card_is_complete(card_id: str) -> None:
    """Wording in two languages, sources, behaviour, and at least one scenario that names it."""
    card = GAME.cards[card_id]
    assert card.name and card.name_zh and card.text and card.text_zh and card.sources
    assert len(card.text) < 100
    assert card.hooks or card.intrinsic or card.adds
    folder = Path(__file__).parent.parent / "engine" / "tokyo"
    named = [path.name for path in folder.glob("test_*.py") if f'"{card_id}"' in path.read_text()]
    assert named, f"no scenario names {card_id}"


def test_no_card_is_named_outside_its_block() -> None:
    """Nothing asks for a certain card: its id stands in its own module only."""
    root = Path(__file__).parent.parent.parent / "engine"
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    for card_id in GAME.cards:
        homes = [path.name for path, text in texts.items() if f'"{card_id}"' in text]
        assert len(homes) == 1, (card_id, homes)


# Metamorph's refund and what Mimic does by itself are the two differences that the rules want.
COPIED = sorted(set(KEEP) - {"mimic", "metamorph"})


@pytest.mark.parametrize("card_id", COPIED)
@pytest.mark.parametrize("edition", ["2016", "first"])
def test_acting_as_a_card_equals_having_it(card_id: str, edition: str) -> None:
    """Mimic's law: the same turns with the same dice and answers give the same monsters."""
    for seed in range(12):
        real = _outcome(card_id, edition, seed, copied=False)
        copy = _outcome(card_id, edition, seed, copied=True)
        assert real == copy, f"seed {seed}"


def _outcome(card_id: str, edition: str, seed: int, *, copied: bool) -> list[object]:
    """What the monsters and dice were after each turn in which both the card and the copy
    stayed.
    """
    random = Random(f"{card_id}{seed}")
    bench = Bench(GAME, _position(card_id, edition, Random(seed), copied=copied), _dice(random))
    snapshots: list[object] = []
    for _ in range(5):
        bench.run(play_turn)
        while bench.waiting:
            prompt = bench.waiting[0]
            others_buy = prompt.kind == "buy" and prompt.seat != 1
            if prompt.kind == "mimic.change" or others_buy:
                bench.answer(prompt, prompt.default)
            else:
                bench.answer(prompt, random_answer(prompt, random))
        state = bench.table.state
        copy = [each for each in state.holdings if each.id <= 2]
        ran_dry = GAME.cards[card_id].tokens > 0 and not all(each.counter for each in copy)
        if bench.over is not None or len(copy) < 2 or ran_dry:
            break
        snapshots.append((state.monsters, state.dice))
    return snapshots


def _dice(random: Random) -> Chance:
    def chance(domain: str, bound: int, count: int) -> tuple[int, ...]:
        del domain
        return tuple(random.randrange(bound) for _ in range(count))

    return chance


def _position(card_id: str, edition: str, random: Random, *, copied: bool) -> MatchState:
    seats = random.randint(2, 6)
    tokens = GAME.cards[card_id].tokens
    owner, other = Seat(1), Seat(2)
    model = Holding(id=1, seat=other, card=card_id, counter=tokens)
    mine = Holding(
        id=2,
        seat=owner,
        card="mimic" if copied else card_id,
        copies=1 if copied else 0,
        counter=tokens,
    )
    place = random.choice(("tokyo_city", "outside"))
    monsters = [
        Monster(
            seat=Seat(seat),
            place="outside",
            hearts=random.randint(7, 10),
            energy=random.randint(0, 8),
            points=random.randint(0, 15),
        )
        for seat in range(1, seats + 1)
    ]
    monsters[0] = msgspec.structs.replace(monsters[0], place=place)
    table = TokyoState(
        monsters=tuple(monsters),
        holdings=(model, mine),
        next_holding=3,
        market=(Slot("heal", 1), Slot("tank", 2), Slot("corner_store", 3)),
        reveals=3,
        turn=1,
        first=owner,
        round_seat=Seat(seats),
        deck=("energize", "skyscraper", "skyscraper"),
    )
    return MatchState(
        game=GAME.id,
        seats=seats,
        options=GAME.resolve_options("online", {"card_text_edition": edition}),
        status="running",
        table=table,
    )


def test_a_bench_runs_one_rule_at_a_time() -> None:
    match = _position("wings", "2016", Random(1), copied=False)
    bench = Bench(GAME, match, _dice(Random(1)))
    bench.run(play_turn)
    assert bench.waiting
    assert isinstance(bench.table, Table)
