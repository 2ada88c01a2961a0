"""Records golden matches of a game: `python -m tests.golden.record GAME [--committed]`.

For every preset and every number of players it plays candidates, mostly with greedy bots, and keeps
short ones that show cards and kinds of facts which the others do not. The last match at each table
has options of its own and bots that buy whatever they can: it shows what is rare.

Only matches of the current revision are recorded, and files that exist are never touched: each
table is filled up to the number wanted. So after a new card (a new revision) record two at each
table, after a new option one more than there are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from engine import (
    ActionTaken,
    Answer,
    AnyGame,
    Fact,
    MatchState,
    Option,
    Prompt,
    PromptsWithdrawn,
    Seat,
    Session,
    Step,
    entropy_commitment,
    find_game,
)
from services.cli.simulate_kings import purchase_of
from services.cli.simulate_plan import Plan
from services.client.bots import Bot, BotKind, make_bot, random_answer, seeded
from services.common.viewfold import MatchFold
from tests.golden.files import Golden, golden_of, path_of, read, recorded, write, write_contents

_CANDIDATES: Final = 100
_STANDING_ONE_IN: Final = 60
# Bytes that one card or kind of fact, not shown by any match so far, is worth.
_NEWS_BYTES: Final = 200_000


class EagerBot:
    """Like a random bot, but takes something wherever it may: many cards come into play."""

    def __init__(self, seed: str) -> None:
        self._dice = seeded(seed)

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        """Any legal answer that is not a pass, if there is one."""
        if prompt.kind == "reroll":
            dice = [each.id for each in prompt.options if not each.subject.endswith(":energy")]
            return Answer(picks=tuple(dice))
        wanted = tuple([each for each in prompt.options if each.id != "sweep"])
        if prompt.form == "select" and not prompt.low and wanted:
            prompt = msgspec.structs.replace(prompt, low=1, options=wanted)
        return random_answer(prompt, self._dice)

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """Whatever is offered, half of the times."""
        return self._dice.choice((None, actions[0].id))


def open_committed(plan: Plan, number: int) -> tuple[Session, Step]:
    """Like plan.open, but the seats commit to their entropy and reveal it once all are seated."""
    match_id, seats = f"committed-{number}", plan.seats(number)
    game, seed = find_game(plan.game), plan.chance_seed(number)
    session, created = Session.create(
        game, match_id=match_id, host="golden", seats=seats, preset=plan.preset, seed=seed
    )
    facts = list(created.facts)
    entropies = [plan.dice(number, f"entropy/{seat}").randbytes(32) for seat in range(1, seats + 1)]
    for seat, entropy in enumerate(entropies, start=1):
        promise = entropy_commitment(entropy)
        facts += session.join(f"bot-{seat}", f"Seat {seat}", entropy_commitment=promise).facts
    for seat, entropy in enumerate(entropies, start=1):
        facts += session.reveal(Seat(seat), entropy).facts
    return session, Step(tuple(facts), ())


def facts_of(
    plan: Plan, number: int, *, eager: bool = False, committed: bool = False
) -> tuple[Fact, ...]:
    """Match `number` of a plan, played to its end."""
    session, opening = open_committed(plan, number) if committed else plan.open(number)
    kinds = plan.kinds(number, session.state.seats)
    bots: dict[Seat, Bot] = {
        Seat(seat): (
            EagerBot(f"{plan.seed}/{number}/{seat}")
            if eager
            else make_bot(kind, plan.game, f"{plan.seed}/{number}/{seat}")
        )
        for seat, kind in enumerate(kinds, start=1)
    }
    views = MatchFold(bots)
    facts = list(opening.facts)
    views.apply(opening.facts, final=False)
    step = session.start()
    while True:
        facts += step.facts
        views.apply(step.facts, final=False)
        if not session.waiting:
            return tuple(facts)
        acting = _act(session, bots, views)
        if acting is not None:
            step = acting
            continue
        dice = plan.dice(number, f"order/{len(facts)}")
        prompt = dice.choice(session.waiting)
        if eager and not dice.randrange(_STANDING_ONE_IN):
            # The seat leaves word how such questions are to be answered, or wants them put again.
            wanted = dice.choice((None, prompt.default))
            step = session.set_standing_answer(prompt.seat, prompt.kind, wanted, below=6)
            continue
        answer = bots[prompt.seat].answer(prompt, views.state(prompt.seat))
        step = session.answer(prompt.id, prompt.seat, answer)


def _act(session: Session, bots: Mapping[Seat, Bot], views: MatchFold) -> Step | None:
    """What a seat does at any time, whoever is asked; None: nobody does anything."""
    for each in session.actions:
        action = bots[each.seat].act(each.seat, each.actions, views.state(each.seat))
        if action is not None:
            return session.take_action(each.seat, action)
    return None


def _plans(game: AnyGame, preset: str, seats: int, wanted: int) -> Iterator[Plan]:
    """The last of the matches at a table is played with other options than the preset's."""
    bots: tuple[BotKind, ...] = ("greedy", "greedy", "random")
    for index in range(wanted):
        yield Plan(
            game=game.id,
            players_low=seats,
            players_high=seats,
            seed=f"golden/{preset}/{seats}/{index}",
            bots=bots,
            preset=preset,
            mixed_options=index > 0 and index == wanted - 1,
        )


def _shown(facts: Iterable[Fact]) -> set[str]:
    """What a match shows: its kinds of facts, and the cards bought in it."""
    shown: set[str] = set()
    for fact in facts:
        shown.add(type(fact).__name__)
        shown.add(purchase_of(fact))
    return shown


def _best(plan: Plan, game: AnyGame, shown: set[str]) -> Golden:
    """The candidate with the fewest bytes for what is new in it."""
    best: tuple[int, Golden, set[str]] | None = None
    for number in range(1, _CANDIDATES + 1):
        facts = facts_of(plan, number, eager=plan.mixed_options)
        news = _shown(facts)
        kinds = plan.kinds(number, plan.players_low)
        bots = ("eager",) * len(kinds) if plan.mixed_options else kinds
        golden = golden_of(game, facts, preset=plan.preset, bots=bots)
        weight = sum(map(len, golden.lines)) - _NEWS_BYTES * len(news - shown)
        if best is None or weight < best[0]:
            best = (weight, golden, news)
    assert best is not None
    shown |= best[2]
    return best[1]


def record(game: AnyGame, matches_per_table: int) -> None:
    """Fill the tables of the current revision up; what older matches show is no news."""
    shown: set[str] = set().union(*(_shown(read(path).facts()) for path in recorded(game.id)))
    size = 0
    for preset in sorted(game.presets) or [""]:
        for seats in range(game.seats_low, game.seats_high + 1):
            for index, plan in enumerate(_plans(game, preset, seats, matches_per_table), start=1):
                path = path_of(game, preset, seats, index)
                if path.exists():
                    continue
                golden = _best(plan, game, shown)
                write(path, golden)
                size += sum(map(len, golden.lines))
                print(f"{path.name}: {golden.header.facts} facts, {golden.header.turns} turns")
    write_contents(game)
    missing = sorted(set(game.cards) - shown)
    print(f"{size:,} bytes; not bought in any: {', '.join(missing) or 'nothing'}")


def record_committed(game: AnyGame) -> None:
    """Record one match whose seats committed to their entropy, unless there is one."""
    preset, seats = min(game.presets, default=""), game.seats_low
    path = path_of(game, "committed", seats, 1)
    if path.exists():
        return
    (plan,) = _plans(game, preset, seats, 1)
    facts = facts_of(plan, 1, committed=True)
    write(path, golden_of(game, facts, preset=preset, bots=plan.kinds(1, seats)))
    write_contents(game)


def record_acting(game: AnyGame) -> None:
    """Record two matches in which seats often act at any time and change what is asked."""
    for seats in (3, 4):
        path = path_of(game, "acting", seats, 1)
        if path.exists():
            continue
        (plan,) = _plans(game, "", seats, 1)
        matches = [facts_of(plan, number, eager=True) for number in range(1, _CANDIDATES + 1)]
        best = max(matches, key=_acts)
        write(path, golden_of(game, best, preset=plan.preset, bots=("eager",) * seats))
    write_contents(game)


def _acts(facts: Iterable[Fact]) -> int:
    return sum(isinstance(fact, ActionTaken | PromptsWithdrawn) for fact in facts)


def main(arguments: list[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--matches-per-table", type=int, default=4)
    parser.add_argument(
        "--committed", action="store_true", help="only the match of committed seats"
    )
    chosen = parser.parse_args(arguments)
    game = find_game(chosen.game)
    if not chosen.committed:
        record(game, chosen.matches_per_table)
        record_acting(game)
    record_committed(game)


if __name__ == "__main__":
    main(sys.argv[1:])
