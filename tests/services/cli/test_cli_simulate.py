"""`diceledger simulate`: the same seed gives the same matches, and faults are found and named."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import Fact, Session, find_game
from engine.games.kings import facts as f
from services.cli import simulate_play
from services.cli.main import app
from services.cli.simulate_check import Checks
from services.cli.simulate_jobs import Stopped, simulate
from services.cli.simulate_plan import Plan, parse_bots, parse_players
from services.cli.simulate_play import Failure, Outcome, play_numbered
from services.cli.simulate_tally import Tally
from tests.support.commands import clean_environ, command, run

PLAN = Plan(game="king_of_tokyo", players_low=2, players_high=6, seed="7", check=True)


def simulated(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["simulate", "--json", *arguments])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def without_speed(summary: dict[str, Any]) -> dict[str, Any]:
    speed = ("seconds", "turns_per_second", "matches_per_second", "jobs")
    return {name: value for name, value in summary.items() if name not in speed}


# -- what is played --------------------------------------------------------------------------------


def test_the_summary_is_one_object_and_adds_up() -> None:
    summary = simulated("--players", "3", "--matches", "12", "--seed", "5")
    assert summary["matches"] == 12
    assert summary["complete"] is True
    assert summary["turns"] > 12
    assert summary["turns_per_second"] > 0
    assert summary["matches_per_second"] > 0
    assert set(summary["win_share_by_seat"]) == {"1", "2", "3"}
    shares = sum(summary["win_share_by_seat"].values())
    assert shares == pytest.approx(1 - summary["no_winner"] / 12, abs=0.001)
    assert sum(summary["end_reasons"].values()) == 12
    assert summary["turns_per_match"]["low"] <= summary["turns_per_match"]["median"]
    assert len(summary["cards"]) == len(find_game("king_of_tokyo").decks[0].cards)
    assert summary["failures"] == []


def test_one_seed_gives_one_result_whatever_the_processes() -> None:
    """With a range of players, mixed options and both bots; another seed gives another result."""
    arguments = ("--players", "2-6", "--matches", "30", "--bots", "mixed", "--mixed-options")
    alone = simulated(*arguments, "--seed", "x")
    assert set(alone["matches_by_players"]) == {"2", "3", "4", "5", "6"}
    shared = run("simulate", "--json", *arguments, "--seed", "x", "--jobs", "2", cwd=Path.cwd())
    assert shared.returncode == 0, shared.stderr
    assert without_speed(json.loads(shared.stdout)) == without_speed(alone)
    assert simulated(*arguments, "--seed", "y")["digest"] != alone["digest"]


def test_a_run_can_be_split() -> None:
    """Matches have numbers, so one long run equals several short ones."""
    plan = Plan(game="king_of_tokyo", players_low=2, players_high=3, seed="s")
    whole, parts = Tally(), Tally()
    for number in range(1, 9):
        whole.add(play_numbered(plan, number))
    for numbers in (range(5, 9), range(1, 5)):
        part = Tally()
        for number in numbers:
            part.add(play_numbered(plan, number))
        parts.merge(part)
    assert whole == parts


def test_seats_rotate() -> None:
    plan = Plan(
        game="king_of_tokyo", players_low=3, players_high=3, seed="", bots=("greedy", "random")
    )
    first, second = plan.kinds(1, 3), plan.kinds(2, 3)
    assert first == ("random", "greedy", "random")
    assert second == ("greedy", "random", "greedy")


def test_options_are_fixed_drawn_or_preset() -> None:
    summary = simulated(
        "--matches", "2", "--preset", "classic", "--option", "card_text_edition=first"
    )
    assert summary["preset"] == "classic"
    assert summary["options"] == {"card_text_edition": "first"}
    plan = Plan(
        "king_of_tokyo", 2, 2, "1", options=(("score_cap_20", "false"),), mixed_options=True
    )
    drawn = [
        {each.id: each.value for each in plan.open(number)[0].state.options}
        for number in range(1, 40)
    ]
    assert {each["score_cap_20"] for each in drawn} == {"false"}
    assert {each["card_text_edition"] for each in drawn} == {"2016", "first"}


def test_the_table_for_people_goes_to_stdout_and_nothing_else_does() -> None:
    done = run("simulate", "--matches", "3", "--check", cwd=Path.cwd())
    assert done.returncode == 0
    assert "3 matches" in done.stdout
    assert "seat 4" in done.stdout
    assert "checked" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--players", "7"), 2, "2 to 6 players"),
        (("--players", "four"), 2, "neither a number nor a range"),
        (("--players", "4-2"), 2, "is empty"),
        (("--bots", "clever"), 2, "random, greedy, mixed"),
        (("--option", "tempo"), 2, "NAME=VALUE"),
        (("--option", "tempo=1"), 1, "card_text_edition"),
        (("--option", "score_cap_20=maybe"), 1, "true, false"),
        (("--preset", "modern"), 1, "classic, online"),
        (("--game", "chess"), 1, "king_of_tokyo"),
    ],
)
def test_wrong_usage_says_what_would_be_right(
    arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = run("simulate", *arguments, cwd=Path.cwd())
    assert done.returncode == code
    assert sentence in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == ""


def test_words_for_players_and_bots() -> None:
    assert parse_players("4") == (4, 4)
    assert parse_players("2-6") == (2, 6)
    assert parse_bots("greedy, random,random") == ("greedy", "random", "random")
    assert parse_bots("mixed") == ("greedy", "random")


# -- checks ----------------------------------------------------------------------------------------


@pytest.fixture
def sound() -> Iterator[None]:
    """The checks pass before anything is broken."""
    yield
    assert isinstance(play_numbered(PLAN, 1), Outcome), "the fault outlived its test"


def failure(plan: Plan = PLAN, matches: int = 12) -> Failure:
    for number in range(1, matches + 1):
        result = play_numbered(plan, number)
        if isinstance(result, Failure):
            return result
    raise AssertionError("no fault was found")


def tampering(monkeypatch: pytest.MonkeyPatch, change: Callable[[Fact], Fact]) -> None:
    """Let the checks see other facts than the session recorded."""
    honest = Checks.after

    def after(self: Checks, session: Session, step: Any) -> None:
        facts = tuple(change(fact) for fact in step.facts)
        honest(self, session, type(step)(facts, step.waiting))

    monkeypatch.setattr(Checks, "after", after)


@pytest.mark.usefixtures("sound")
def test_a_log_that_differs_from_the_live_state_is_found() -> None:
    def steal(fact: Fact) -> Fact:
        if isinstance(fact, f.EnergyGained):
            return f.EnergyGained(fact.seat, fact.amount + 1, fact.cause)
        return fact

    with pytest.MonkeyPatch.context() as patch:
        tampering(patch, steal)
        found = failure()
    assert "the fold of the facts is not the live state" in found.error


@pytest.mark.usefixtures("sound")
def test_a_fold_that_loses_energy_is_found() -> None:
    """Live and fold agree with each other here; only the second book-keeping can see it."""
    from engine.core import state

    evolvers: dict[Any, Any] = state._TABLE
    honest = evolvers[f.EnergyLost]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(evolvers, f.EnergyLost, lambda table, fact: table)
        found = failure()
    assert evolvers[f.EnergyLost] is honest
    assert "energy is not conserved" in found.error


@pytest.mark.usefixtures("sound")
def test_a_default_that_is_not_legal_is_found() -> None:
    from services.cli import simulate_check

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate_check, "check_answer", lambda prompt, answer: "no")
        found = failure()
    assert "the default of question" in found.error


@pytest.mark.usefixtures("sound")
def test_a_match_without_end_is_found() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate_play, "PROMPTS_PER_MATCH_MAX", 5)
        found = failure()
    assert "no end after 5 questions" in found.error


def test_a_fault_names_seed_match_and_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_play, "PROMPTS_PER_MATCH_MAX", 5)
    arguments = ["simulate", "--seed", "z 1", "--players", "2-4", "--check", "--first", "9"]
    done = CliRunner().invoke(app, [*arguments, "--matches", "2"])
    assert done.exit_code == 1
    said = " ".join(done.stderr.split())
    assert "Match 9 of seed z 1 failed: LawBroken: no end after 5 questions" in said
    again = "diceledger simulate --game king_of_tokyo --players 2-4 --seed 'z 1' --bots random"
    assert f"{again} --check --first 9 --matches 1" in said
    assert "Match 10" not in said
    done = CliRunner().invoke(app, [*arguments, "--matches", "2", "--keep-going", "--json"])
    assert [each["match"] for each in json.loads(done.stdout)["failures"]] == [9, 10]


# -- stopping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_simulation_keeps_what_was_played(jobs: int) -> None:
    told: list[int] = []

    def stop_soon(matches: int, turns: int) -> None:
        told.append(matches)
        if sum(told) >= 3:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as stopped:
        simulate(PLAN, 1, 40, jobs=jobs, keep_going=False, progress=stop_soon)
    assert stopped.value.tally.matches == sum(told) < 40


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_with_a_summary(jobs: str) -> None:
    """Standard error is a terminal here, so the bar tells when matches are being played."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("simulate", "--matches", "1000000", "--jobs", jobs, "--json"),
        env=clean_environ() | {"TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        start_new_session=True,
    )
    os.close(theirs)
    said = ""
    while "turns/s" not in said:
        said += os.read(ours, 10_000).decode(errors="replace")
    # As a terminal does: everybody in the foreground gets it.
    os.killpg(process.pid, signal.SIGINT)
    reader = threading.Thread(target=lambda: rest.append(_all_of(ours)))
    rest: list[str] = []
    reader.start()
    out, _ = process.communicate(timeout=60)
    reader.join()
    os.close(ours)
    assert process.returncode == 130
    summary = json.loads(out)
    assert 0 < summary["matches"] < 1_000_000
    assert summary["complete"] is False
    assert "Stopped; this is what had been played." in rest[0]
    assert "Traceback" not in rest[0]


def _all_of(terminal: int) -> str:
    """What is still said on a terminal until its other end is closed."""
    said = ""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 10_000):
            said += chunk.decode(errors="replace")
    return said
