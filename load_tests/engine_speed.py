"""Speed of the engine on one core: turns played, facts folded, open turns rebuilt.

    python -m load_tests.engine_speed [--matches 60] [--rounds 7] [--record LABEL]

Only the engine is measured: the answers are drawn beforehand. Time is processor time, so other
programs on the machine count less; the yardstick (a fixed mix of plain Python and msgspec) is
measured in every round as well, and speeds are compared as ratios to it. With --record a line is
added to results/engine.md.
"""

import argparse
import gc
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, cast

import msgspec

from engine import (
    Answer,
    Fact,
    Game,
    MatchState,
    PromptId,
    Seat,
    Session,
    empty_state,
    find_game,
    fold,
)
from engine.games.kings.state import KingsState
from engine.games.kings.tokyo.position import CardAt, MonsterAt, TableAt
from services.cli.collector import collect_seldom
from services.cli.simulate_plan import Plan
from services.client.bots import random_answer

RESULTS: Final = Path(__file__).parent / "results" / "engine.md"
GAME: Final = cast("Game[KingsState]", find_game("king_of_tokyo"))
_CROWD: Final = 6
_GOALS: Final = {"turns": 10_000.0, "fold": 1_000_000.0, "rebuild": 200.0}
_Answers = list[tuple[PromptId, Seat, Answer]]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A match to be played again. begin: a session at its first question, and the facts so far."""

    begin: Callable[[], tuple[Session, tuple[Fact, ...]]]
    answers: _Answers
    facts: tuple[Fact, ...]
    turns: int
    # At every third question: the state before the open turn, the turn's facts so far.
    open_turns: tuple[tuple[MatchState, tuple[Fact, ...]], ...]
    seed: bytes


def record(
    begin: Callable[[], tuple[Session, tuple[Fact, ...]]], seed: bytes, dice: Random
) -> Recorded:
    """Play a match with random answers."""
    session, begun = begin()
    facts = list(begun)
    answers: _Answers = []
    open_turns: list[tuple[MatchState, tuple[Fact, ...]]] = []
    while session.waiting:
        if len(answers) % 3 == 0:
            start = max(i for i, fact in enumerate(facts) if type(fact) is GAME.checkpoint)
            open_turns.append((fold(facts[:start]), tuple(facts[start:])))
        prompt = dice.choice(session.waiting)
        answer = random_answer(prompt, dice)
        answers.append((prompt.id, prompt.seat, answer))
        facts += session.answer(prompt.id, prompt.seat, answer).facts
    assert session.state.table is not None
    turns = session.state.table.turn
    return Recorded(begin, answers, tuple(facts), turns, tuple(open_turns), seed)


def ordinary(number: int) -> Recorded:
    """A match with 2 to 6 random players and the default options."""
    plan = Plan(GAME.id, GAME.seats_low, GAME.seats_high, seed="speed")

    def begin() -> tuple[Session, tuple[Fact, ...]]:
        session, opening = plan.open(number)
        return session, opening.facts + session.start().facts

    return record(begin, plan.chance_seed(number), plan.dice(number, "answers"))


def crowded(number: int) -> Recorded:
    """A match of six in which all keep cards lie on the table from the start."""
    keeps = [
        card.id for card in GAME.cards.values() if card.kind == "keep" for _ in range(card.copies)
    ]
    Random(number).shuffle(keeps)
    keeps.sort(key=lambda card: card == "mimic")
    hands = [keeps[seat::_CROWD] for seat in range(_CROWD)]
    model = f"{hands[0][0]} of A"
    monsters = [
        MonsterAt(
            energy=4,
            cards=tuple(CardAt(card=c, copies=model if c == "mimic" else "") for c in hand),
        )
        for hand in hands
    ]
    options = {each.id: each.value for each in GAME.resolve_options("", {})}
    plan = Plan(GAME.id, _CROWD, _CROWD, seed="crowd")
    seed = plan.chance_seed(number)
    assert GAME.positions is not None
    position = GAME.positions.lay(monsters, TableAt(), turn=Seat(1), options=options)

    def begin() -> tuple[Session, tuple[Fact, ...]]:
        dice = plan.dice(number, "dice")
        session, opening = plan.open(number)
        laid = (*opening.facts, *_started(session), *position)
        session, step = Session.lay(
            laid,
            seed=seed,
            game=session.game,
            chance=lambda _, __, bound, count: tuple(dice.randrange(bound) for _ in range(count)),
        )
        return session, laid + step.facts

    return record(begin, seed, plan.dice(number, "answers"))


def _started(session: Session) -> tuple[Fact, ...]:
    return session.start().facts[:1]


# -- measuring -------------------------------------------------------------------------------------


def play_again(matches: Sequence[Recorded]) -> float:
    """Turns per second."""
    begun = time.process_time()
    for match in matches:
        session, _ = match.begin()
        answer = session.answer
        for prompt, seat, chosen in match.answers:
            answer(prompt, seat, chosen)
    return sum(match.turns for match in matches) / (time.process_time() - begun)


def fold_again(matches: Sequence[Recorded]) -> float:
    """Facts per second."""
    begun = time.process_time()
    for match in matches:
        fold(match.facts)
    return sum(len(match.facts) for match in matches) / (time.process_time() - begun)


def rebuild_again(matches: Sequence[Recorded]) -> float:
    """Microseconds per open turn."""
    game = matches[0].begin()[0].game
    begun = time.process_time()
    for match in matches:
        for before, facts in match.open_turns:
            Session.resume(before, facts, seed=match.seed, game=game)
    count = sum(len(match.open_turns) for match in matches)
    return (time.process_time() - begun) / count * 1e6


class _Yard(msgspec.Struct, frozen=True, gc=False):
    a: int = 0
    b: int = 0
    c: str = ""
    d: tuple[int, ...] = ()


def yardstick() -> float:
    """Thousands of fixed steps per second: replace a field, call, look up, build a tuple."""
    steps = 100_000
    table = {number: number + 1 for number in range(64)}
    value = _Yard()
    begun = time.process_time()
    for number in range(steps):
        value = msgspec.structs.replace(value, a=_next(table, number & 63))
        value = msgspec.structs.replace(value, d=(value.a, value.b))
    return steps / (time.process_time() - begun) / 1000


def _next(table: Mapping[int, int], key: int) -> int:
    return table.get(key, 0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds. turns, crowd: turns per second; fold: facts per second; rebuild:
    microseconds; yard: thousands of steps per second."""

    yard: float
    turns: float
    crowd: float
    fold: float
    rebuild: float


def measure(matches: int, rounds: int) -> Figures:
    """Record matches, then measure everything in every round."""
    collect_seldom()
    plain = [ordinary(number) for number in range(1, matches + 1)]
    crowds = [crowded(number) for number in range(1, max(matches // 4, 2) + 1)]
    assert fold(plain[0].facts) != empty_state()
    gc.collect()
    taken = [
        (
            yardstick(),
            play_again(plain),
            play_again(crowds),
            fold_again(plain),
            rebuild_again(plain),
        )
        for _ in range(rounds)
    ]
    return Figures(*(statistics.median(column) for column in zip(*taken, strict=True)))


# -- the report ------------------------------------------------------------------------------------

_HEAD: Final = """\
# Speed of the engine, one core

Written by `python -m load_tests.engine_speed --record LABEL`; one line for each recorded run, the
newest last. Engine only (answers drawn beforehand), processor time, medians of all rounds.

- **turns/s**: whole matches of 2 to 6 random players, full deck; goal 10,000.
- **turns/s, crowded**: six players, all 48 keep cards in front of them from the start.
- **facts/s**: folding those matches; goal 1,000,000.
- **rebuild**: microseconds to run an open turn again and compare every fact; goal below 200.
- **yardstick**: thousands of fixed steps per second on that machine at that minute; in brackets
  behind each figure: how many times as fast as in the line before, after dividing by the yardstick.

| what | Python | yardstick | turns/s | turns/s, crowded | facts/s | rebuild µs |
|---|---|---|---|---|---|---|
"""


def _row(label: str, now: Figures, before: Figures | None) -> str:
    def ratio(name: str) -> str:
        if before is None:
            return ""
        value = getattr(now, name) / getattr(before, name)
        machine = now.yard / before.yard
        # Of microseconds fewer are faster.
        return f" ({1 / value / machine if name == 'rebuild' else value / machine:.2f})"

    cells = [
        label,
        platform.python_version(),
        f"{now.yard:,.0f}",
        f"{now.turns:,.0f}{ratio('turns')}",
        f"{now.crowd:,.0f}{ratio('crowd')}",
        f"{now.fold:,.0f}{ratio('fold')}",
        f"{now.rebuild:,.0f}{ratio('rebuild')}",
    ]
    return f"| {' | '.join(cells)} |"


def last_recorded(text: str) -> Figures | None:
    """The figures of the last line of a report."""
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    if not rows:
        return None
    cells = [cell.strip().split(" ")[0].replace(",", "") for cell in rows[-1].strip("|").split("|")]
    yard, turns, crowd, folded, rebuild = (float(cell) for cell in cells[2:])
    return Figures(yard, turns, crowd, folded, rebuild)


def main() -> None:
    """Measure, print, and record when asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--matches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", metavar="LABEL", default="")
    options = parser.parse_args()
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else _HEAD
    now = measure(options.matches, options.rounds)
    row = _row(options.record or "now", now, last_recorded(text))
    print(row)
    for name, goal in _GOALS.items():
        value = getattr(now, name)
        reached = value < goal if name == "rebuild" else value >= goal
        print(f"{name}: {value:,.0f}, goal {goal:,.0f}: {'reached' if reached else 'missed'}")
    if options.record:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + row + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
