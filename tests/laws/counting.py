"""Going through everything that can happen from a small position: every draw, every legal answer.

Like perft of chess programs: the numbers mean nothing by themselves, but any change of a rule that
opens, closes or repeats a path changes them. `python -m tests.laws.counting` counts again and
writes counts.json; do that only for a change of rules that was meant.
"""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Final, NamedTuple, cast

from engine import Answer, Game, Holding, MatchState, Prompt, Seat, find_game, state_hash
from engine.core.bench import Bench
from engine.games.kings.proposals import DICE
from engine.games.kings.state import OUTSIDE, KingsState, Monster, Slot
from engine.games.kings.tokyo.facts import TokyoState
from engine.games.kings.tokyo.places import TOKYO_CITY
from engine.games.kings.tokyo.turn import play_turn

FIGURES: Final = Path(__file__).parent / "counts.json"
GAME: Final = cast("Game[KingsState]", find_game("king_of_tokyo"))
EDITIONS: Final = ("2016", "first")
# Reactions may be repeated without end (a three rolled again, a die turned): stop somewhere.
CHOICES_MAX: Final = 6
CHOICES_WITH_REROLLS_MAX: Final = 8
_DICE: Final = 2
_DICE_AT_START: Final = 6
_ACTIVE, _IN_TOKYO, _OUTSIDE = Seat(1), Seat(2), Seat(3)


class Count(NamedTuple):
    """paths: sequences of draws and answers; endings: different tables at their ends; cut: paths
    that were not followed to the end of the turn."""

    paths: int
    endings: int
    cut: int


class _Cut(Exception):  # named for what happened
    """So many choices have been made that the rest is not looked at."""


class _Choices:
    """One path: choices made before are made again, new ones take their first alternative."""

    def __init__(self, high: int) -> None:
        self._high = high
        self._made: list[list[int]] = []
        self._at = 0

    def choose(self, alternatives: int) -> int:
        """Which of so many? A choice without alternatives is none."""
        if alternatives == 1:
            return 0
        if self._at == len(self._made):
            if len(self._made) == self._high:
                raise _Cut
            self._made.append([0, alternatives])
        made, before = self._made[self._at]
        assert before == alternatives, "the same choices led to another question"
        self._at += 1
        return made

    def next_path(self) -> bool:
        """Go on to the next path; False when all have been taken."""
        self._at = 0
        while self._made:
            self._made[-1][0] += 1
            if self._made[-1][0] < self._made[-1][1]:
                return True
            self._made.pop()
        return False


def answers_of(prompt: Prompt, *, with_rerolls: bool) -> list[Answer]:
    """All answers that differ in their meaning. Without rerolls the dice are always kept."""
    if prompt.kind == "reroll" and not with_rerolls:
        return [Answer()]
    if prompt.form == "number":
        return [Answer(number=number) for number in range(prompt.low, prompt.high + 1)]
    if prompt.form == "allocate":
        amounts = product(*(range(limit + 1) for limit in prompt.limits))
        return [Answer(amounts=each) for each in amounts if prompt.low <= sum(each) <= prompt.high]
    ids = [option.id for option in prompt.options]
    ways = permutations if prompt.kind == "resolution_order" else combinations
    sizes = range(prompt.low, prompt.high + 1)
    return [Answer(picks=picks) for size in sizes for picks in ways(ids, size)]


def count(position: MatchState, *, with_rerolls: bool = False) -> Count:
    """Everything that can happen in one turn from a position."""
    choices = _Choices(CHOICES_WITH_REROLLS_MAX if with_rerolls else CHOICES_MAX)
    paths = cut = 0
    endings: set[bytes] = set()
    while True:
        paths += 1
        try:
            endings.add(_one_path(position, choices, with_rerolls=with_rerolls))
        except _Cut:
            cut += 1
        if not choices.next_path():
            return Count(paths, len(endings), cut)


def _one_path(position: MatchState, choices: _Choices, *, with_rerolls: bool) -> bytes:
    """Play the turn; what the table is like at its end, and who has won."""

    def chance(domain: str, bound: int, count: int) -> tuple[int, ...]:
        del domain
        drawn = choices.choose(bound**count)
        return tuple(drawn // bound**place % bound for place in range(count))

    bench = Bench(GAME, position, chance)
    bench.run(play_turn)
    while bench.waiting:
        prompt = bench.waiting[0]
        answers = answers_of(prompt, with_rerolls=with_rerolls)
        bench.answer(prompt, answers[choices.choose(len(answers))])
    winners = () if bench.over is None else bench.over.winners
    return state_hash(MatchState(status="running", table=bench.table.state, winners=winners))


# -- positions -------------------------------------------------------------------------------------


def position(
    *,
    edition: str = "2016",
    owner: Seat = _ACTIVE,
    keeps: str = "",
    sells: str = "heal",
    dice: int = _DICE,
    energy: int = 3,
) -> MatchState:
    """Three monsters, the active one outside with so many dice; one card kept, some for sale."""
    holdings = [Holding(id=1, seat=_OUTSIDE, card="giant_brain", paid=5)]
    if keeps:
        tokens = GAME.cards[keeps].tokens
        holdings.append(Holding(id=2, seat=owner, card=keeps, counter=tokens, paid=3))
    table = TokyoState(
        monsters=(
            Monster(
                seat=_ACTIVE,
                hearts=7,
                energy=energy,
                points=3,
                place=OUTSIDE,
                shrink=_DICE_AT_START - dice,
            ),
            Monster(seat=_IN_TOKYO, hearts=2, energy=4, points=6, place=TOKYO_CITY),
            Monster(seat=_OUTSIDE, hearts=9, energy=1, points=9, place=OUTSIDE),
        ),
        holdings=tuple(holdings),
        next_holding=3,
        market=(Slot(sells, 1), Slot(), Slot()),
        reveals=1,
        deck=("skyscraper",),
        turn=6,
        first=_ACTIVE,
        round_seat=_OUTSIDE,
    )
    return MatchState(
        game=GAME.id,
        seats=len(table.monsters),
        options=GAME.resolve_options("online", {"card_text_edition": edition}),
        status="running",
        table=table,
    )


def figures_of(card_id: str) -> dict[str, list[int]]:
    """The counts of a card: "edition position" to paths, endings, cut."""
    figures: dict[str, list[int]] = {}
    for edition in _editions(card_id):
        if GAME.cards[card_id].kind == "keep":
            for name, owner in (("active", _ACTIVE), ("tokyo", _IN_TOKYO), ("outside", _OUTSIDE)):
                match = position(edition=edition, owner=owner, keeps=card_id)
                figures[f"{edition} {name}"] = list(count(match))
            match = position(edition=edition, keeps=card_id, dice=1 - _more_dice(card_id))
            figures[f"{edition} rerolls"] = list(count(match, with_rerolls=True))
        else:
            cost = GAME.cards[card_id].cost
            match = position(edition=edition, sells=card_id, energy=cost)
            figures[f"{edition} for sale"] = list(count(match))
    return figures


def _editions(card_id: str) -> tuple[str, ...]:
    """Both where the card is not the same in both."""
    card = GAME.cards[card_id]
    under = {hook.under for hook in (*card.hooks, *card.intrinsic)}
    under |= {each for _, _, each in card.adds} | {*card.cost_under} | {*card.text_under}
    differs = any(each is not None and each[0] == "card_text_edition" for each in under)
    return EDITIONS if differs else EDITIONS[:1]


def _more_dice(card_id: str) -> int:
    adds = GAME.cards[card_id].adds
    return sum([each for stat, each, _ in adds if stat is DICE and isinstance(each, int)])


def main() -> None:
    """Count everything again."""
    figures = {card_id: figures_of(card_id) for card_id in GAME.cards}
    lines = [f'"{card_id}": {json.dumps(counts)}' for card_id, counts in figures.items()]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    paths = sum(counts[0] for card in figures.values() for counts in card.values())
    print(f"{paths:,} paths")


if __name__ == "__main__":
    main()
