"""What is wrong with a scenario is said with its line, and with what would be right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from engine import ActionTaken, Ask, GameState, Seat, Session, Step, Table, find_game
from engine.games.kings.board import KingTable
from engine.games.kings.tokyo.turn import begin_turn, next_turn
from services.cli.main import app
from services.cli.scenario_covers import covers
from services.cli.scenario_play import Outcome, run_file

Play = Callable[[str], Outcome]

GOOD = """\
title: Wings save hearts
rule: Who pays loses nothing.
source: [S-BGA]
cards: [wings]
players:
  A: {energy: 3}
  B: {place: tokyo_city, energy: 2, cards: [wings]}
  C: {}
turn: A
market: [heal]
deck: [tank]
steps:
  - roll: smash 1 1 2 2 3
  - A: {reroll: 2 3}
  - roll: 1 3
  - A: {reroll: nothing}
  - B: {prevent_loss: wings}
  - A: {buy: heal}
  - end: turn
  - expect: {A: {energy: 0}, B: {hearts: 10, energy: 0}, market: [tank], discard: [heal]}
"""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(text: str) -> Outcome:
        path = tmp_path / "case.yaml"
        path.write_text(text, encoding="utf-8")
        (outcome,) = run_file(path)
        return outcome

    return run


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_a_good_scenario_passes(play: Play) -> None:
    outcome = play(GOOD)
    assert (outcome.ok, outcome.message, outcome.title) == (True, "", "Wings save hearts")
    assert any("A buys Heal for 3 energy." in line for line in outcome.story)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        # -- the head ------------------------------------------------------------------------------
        ("title:", "titel:", 1, "a scenario has no 'titel'; did you mean title?"),
        ("rule: Who pays loses nothing.\n", "", 1, "the scenario lacks 'rule'"),
        ("cards: [wings]\nplayers", "cards: [wingz]\nplayers", 4, "did you mean wings?"),
        ("cards: [wings]\nplayers", "cards: [jets]\nplayers", 4, "nowhere on the table"),
        ("turn: A\n", "turn: D\n", 9, "there is no player 'D'. Legal: A, B, C"),
        ("turn: A\n", "turn: nobody\n", 6, "nobody has anything yet"),
        (
            "  A: {energy: 3}\n  B: {place: tokyo_city, energy: 2, cards: [wings]}\n"
            "  C: {}\nturn: A\n",
            "  A: {}\n  B: {}\nturn: nobody\ndiscard: [wings]\n",
            9,
            "discard comes from setting up",
        ),
        ("  C: {}", "  D: {}", 8, "C is next"),
        ("  C: {}", "  C: {}\n  C: {}", 9, "the key 'C' is written twice"),
        ("turn: A\n", "turn: A\ngame: chess\n", 10, "There is no such game: chess"),
        ("turn: A\n", "turn: A\npreset: clasic\n", 10, "did you mean classic?"),
        ("turn: A\n", "turn: A\noptions: {poison_timming: x}\n", 10, "did you mean poison_timing?"),
        (
            "turn: A\n",
            "turn: A\noptions:\n  poison_timing: later\n",
            11,
            "Legal: own_turn_end, own_turn_start",
        ),
        # -- the position --------------------------------------------------------------------------
        ("energy: 3}", "enrgy: 3}", 6, "player A has no 'enrgy'; did you mean energy?"),
        ("energy: 3}", "energy: many}", 6, "player A: energy is a whole number, not 'many'"),
        ("energy: 3}", "energy: -1}", 6, "-1 is not between 0 and 999"),
        ("energy: 3}", "hearts: 13}", 6, "13 is not between 1 and 12"),
        ("energy: 3}", "place: tokyo_city}", 7, "tokyo_city is taken by A already"),
        ("energy: 3}", "place: tokio_city}", 6, "did you mean tokyo_city?"),
        ("energy: 3}", "place: tokyo_bay}", 6, "the Bay is closed with fewer than 5 monsters"),
        ("energy: 3}", "out: yes}", 9, "A is out of the game"),
        ("energy: 3}", "out: maybe}", 6, "out is yes or no, not 'maybe'"),
        ("energy: 3}", "cards: [skyscraper]}", 6, "skyscraper is not a card that is kept"),
        ("energy: 3}", "cards: [wings]}", 7, "there is only one of wings in the game"),
        ("energy: 3}", "cards: [{tokens: 2}]}", 6, "lacks card"),
        (
            "energy: 3}",
            "cards: [{card: mimic, copies: jets of B}]}",
            6,
            "there is no card 'jets of B' on the table to copy",
        ),
        ("market: [heal]", "market: [heel]", 10, "did you mean heal?"),
        ("market: [heal]", "market: heal jets gourmet herbivore", 10, "at most 3 cards are for"),
        # -- the steps -----------------------------------------------------------------------------
        ("  - end: turn", "  - stop: turn", 19, "there is no step 'stop'"),
        ("  - end: turn", "  - end: match", 19, "only a turn can be ended"),
        ("  - end: turn", "  - {end: turn, turn: B}", 19, "a step is one thing"),
        ("roll: smash 1 1 2 2 3", "roll: smash 1 1 2 2", 13, "6 are drawn here (die), but 5"),
        ("roll: smash 1 1 2 2 3", "roll: smash 1 1 2 2 4", 13, "a die has no face '4'"),
        ("roll: smash 1 1 2 2 3", "roll: smesh 1 1 2 2 3", 13, "did you mean smash?"),
        ("  - roll: 1 3\n", "", 14, "chance decides here (2 × die): write `- roll: …` after this"),
        (
            "  - roll: 1 3\n",
            "  - roll: 1 3\n  - roll: 1\n",
            16,
            "nothing was drawn for this: roll 1",
        ),
        ("deck: [tank]\n", "", 17, "chance decides here (1 × power deck): write `- reveal: …`"),
        (
            "A: {reroll: 2 3}",
            "A: {rerol: 2 3}",
            14,
            "A is not asked 'rerol' here: A is asked reroll",
        ),
        ("A: {reroll: 2 3}", "A: {reroll: 2 9}", 14, "reroll does not offer '9'"),
        ("A: {reroll: 2 3}", "A: reroll", 14, "what A answers is a map (key: value), not 'reroll'"),
        ("B: {prevent_loss: wings}", "B: {prevent_loss: jets}", 17, "Legal: wings"),
        ("B: {prevent_loss: wings}", "C: {prevent_loss: wings}", 17, "B is asked prevent_loss"),
        ("  - A: {buy: heal}\n", "", 18, "the turn is not over: A is asked buy, offered: heal"),
        ("  - end: turn\n", "  - A: {buy: nothing}\n", 19, "the turn is over; write `- turn: B`"),
        ("  - end: turn\n", "  - turn: C\n", 19, "it is the turn of B"),
        (
            "  - end: turn\n",
            "  - asked: {A: buy}\n",
            19,
            "expected A to be asked buy, but the turn",
        ),
        (
            "  - B: {prevent_loss: wings}",
            "  - asked: {B: {prevent_loss: []}}\n  - B: {prevent_loss: wings}",
            17,
            "prevent_loss also offers wings",
        ),
        (
            "  - B: {prevent_loss: wings}",
            "  - refuse: {B: {prevent_loss: wings}, reason: ILLEGAL_ANSWER}",
            17,
            "the answer of B to prevent_loss is legal: it was taken",
        ),
        (
            "  - B: {prevent_loss: wings}",
            "  - refuse: {C: {prevent_loss: wings}, reason: PROMPT_CLOSED}",
            17,
            "refused for another reason: NOT_YOUR_PROMPT",
        ),
        (
            "  - end: turn\n",
            "  - refuse: {A: {buy: heal}}\n",
            19,
            "one answer or card used, and a reason",
        ),
        # -- expectations --------------------------------------------------------------------------
        ("{hearts: 10, energy: 0}", "{hearts: 9, energy: 0}", 20, "B: hearts is 10, not 9"),
        ("{hearts: 10, energy: 0}", "{harts: 10}", 20, "did you mean hearts?"),
        ("{hearts: 10, energy: 0}", "{cards: [jets]}", 20, "B: cards lacks jets and also has card"),
        ("market: [tank], ", "market: [], ", 20, "the table: market also has tank"),
        ("market: [tank], ", "winner: A, ", 20, "the match is not over"),
        ("market: [tank], ", "happened: [heart_lost], ", 20, "did you mean hearts_lost?"),
        (
            "market: [tank], ",
            "happened: [{hearts_lost: {who: A}}], ",
            20,
            "hearts_lost has no 'who'",
        ),
        (
            "market: [tank], ",
            "happened: [{hearts_gained: {seat: A, amount: 2}}], ",
            20,
            "it did not happen (in this order): hearts_gained (seat: A, amount: 2). What did:",
        ),
        ("market: [tank], ", "not_happened: card_bought, ", 20, "it happened: card_bought"),
        (
            "market: [tank], ",
            "markt: [tank], ",
            20,
            "'markt' cannot be expected; did you mean market?",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    play: Play, old: str, new: str, line: int, message: str
) -> None:
    outcome = play(changed(old, new))
    assert not outcome.ok
    assert message in outcome.message
    assert outcome.line == line, outcome.message


ANY_TIME = """\
title: Rapid Healing at any time
rule: Whoever is asked.
source: [S-BGA]
cards: [rapid_healing]
players:
  A: {energy: 3}
  B: {place: tokyo_city, hearts: 5, energy: 3, cards: [rapid_healing]}
  C: {hearts: 5, energy: 5, cards: [{card: mimic, copies: rapid_healing of B}]}
turn: A
market: [heal]
defaults: [reroll, buy]
steps:
  - roll: smash 1 1 2 2 3
  - may_use: {B: rapid_healing, C: mimic}
  - C: {uses: rapid_healing}
  - B: {prevent_loss: nothing}
  - asked: {B: yield_tokyo}
  - B: {uses: rapid_healing}
  - refuse: {B: {uses: rapid_healing}, reason: ACTION_NOT_OFFERED}
  - B: {yield_tokyo: stay}
  - end: turn
  - expect: {B: {hearts: 5, energy: 1}, C: {hearts: 6, energy: 3}}
"""


def test_a_card_is_used_where_it_stands_in_the_script(play: Play) -> None:
    outcome = play(ANY_TIME)
    assert outcome.message == ""
    healed = [i for i, line in enumerate(outcome.story) if "gains 1 heart" in line]
    (smashed,) = [i for i, line in enumerate(outcome.story) if "smashes" in line]
    assert healed[0] < smashed < healed[1]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("C: {uses: rapid_healing}", "C: {uses: rapid_heeling}", 15, "did you mean rapid_healing?"),
        ("C: {uses: rapid_healing}", "C: {uses: []}", 15, "uses names a card"),
        ("C: {uses: rapid_healing}", "C: {uses: {rapid_healing: 1}}", 15, "uses is a list"),
        ("C: {uses: rapid_healing}", "C: {use: rapid_healing}", 15, "C is not asked 'use' here"),
        (
            "C: {uses: rapid_healing}",
            "A: {uses: rapid_healing}",
            15,
            "A cannot use rapid_healing here: B may use rapid_healing, C may use mimic (as "
            "rapid_healing); A is asked reroll",
        ),
        ("C: {uses: rapid_healing}", "B: {uses: wings}", 15, "B cannot use wings here: B may use"),
        (
            "C: {uses: rapid_healing}",
            "C: {uses: [rapid_healing, mimic, mimic]}",
            15,
            "C cannot use mimic here: B may use rapid_healing; A is asked reroll",
        ),
        (
            "  - end: turn",
            "  - end: turn\n  - C: {uses: rapid_healing}",
            22,
            "nobody can use a card here: the turn is over; write `- turn: B`",
        ),
        (
            "  - end: turn",
            "  - turn: B\n  - C: {uses: rapid_healing}",
            22,
            "say what chance brought in this turn",
        ),
        (
            "B: rapid_healing, C: mimic}",
            "B: rapid_healing, C: nothing}",
            14,
            "C may use mimic (as rapid_healing) too",
        ),
        (
            "B: rapid_healing, C: mimic}",
            "A: mimic, B: rapid_healing}",
            14,
            "A may not use mimic: B may use rapid_healing, C may use mimic (as rapid_healing)",
        ),
        (
            "B: rapid_healing, C: mimic}",
            "B: [rapid_healing, rapid_healing], C: mimic}",
            14,
            "B may not use rapid_healing: B may use rapid_healing, C may use mimic",
        ),
        (
            "may_use: {B: rapid_healing, C: mimic}",
            "may_use: nobody",
            14,
            "B may use rapid_healing, C may use mimic (as rapid_healing) too",
        ),
        ("C: mimic}", "C: mimik}", 14, "did you mean mimic?"),
        ("C: mimic}", "D: mimic}", 14, "may_use: there is no player 'D'"),
        ("  - may_use: {", "  - may_uses: {", 14, "did you mean may_use?"),
        (
            "  - end: turn",
            "  - end: turn\n  - may_use: {C: mimic}",
            22,
            "nobody can use a card here: the turn is over",
        ),
        (
            "refuse: {B: {uses: rapid_healing}",
            "refuse: {C: {uses: rapid_healing}",
            19,
            "that C uses rapid_healing is legal: it was taken",
        ),
        (
            "refuse: {B: {uses: rapid_healing}",
            "refuse: {B: {uses: [mimic, mimic]}",
            19,
            "one answer or card used, and a reason",
        ),
        (
            "reason: ACTION_NOT_OFFERED",
            "reason: NOT_YOUR_PROMPT",
            19,
            "refused for another reason: ACTION_NOT_OFFERED",
        ),
        (
            "  - end: turn",
            "  - end: turn\n  - refuse: {C: {uses: mimic}, reason: ACTION_NOT_OFFERED}",
            22,
            "nobody can use a card here: the turn is over",
        ),
        (
            "hearts: 6, energy: 3}",
            "hearts: 6}, happened: [action_takn]",
            22,
            "did you mean action_taken?",
        ),
    ],
)
def test_what_is_wrong_about_a_card_at_any_time_is_said(
    play: Play, old: str, new: str, line: int, message: str
) -> None:
    assert ANY_TIME.count(old) == 1, old
    outcome = play(ANY_TIME.replace(old, new))
    assert not outcome.ok
    assert message in outcome.message
    assert outcome.line == line, outcome.message


def test_a_card_that_is_not_used_makes_a_difference(play: Play) -> None:
    """The scenario stops holding without the action, and a question after one is not overlooked."""
    assert "C: hearts is 5" in play(ANY_TIME.replace("  - C: {uses: rapid_healing}\n", "")).message
    text = ANY_TIME[: ANY_TIME.index("  - refuse: ")]
    assert "the scenario stops while B is asked yield_tokyo" in play(text).message


def test_an_action_that_changes_what_was_answered_breaks_a_law(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The laws are checked after an action as after an answer."""
    take = Session.take_action

    def forgetful(self: Session, seat: Seat, action: str) -> Step:
        step = take(self, seat, action)
        return Step(tuple(f for f in step.facts if not isinstance(f, ActionTaken)), step.waiting)

    monkeypatch.setattr(Session, "take_action", forgetful)
    outcome = play(ANY_TIME)
    assert "law broken" in outcome.message
    assert outcome.line == 15


def test_a_scenario_may_not_stop_in_a_question(play: Play) -> None:
    text = GOOD[: GOOD.index("  - B: {prevent_loss")]
    outcome = play(text)
    assert "the scenario stops while B is asked prevent_loss, offered: wings" in outcome.message
    assert play(text + "  - asked: {B: prevent_loss}\n").ok


def test_rules_that_wait_for_nobody_are_told(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the rules, not in the scenario: the message says after which fact."""
    game = find_game("king_of_tokyo")
    whole_turn = game.turn

    async def turn(table: Table[GameState]) -> None:
        begin_turn(cast("KingTable", table), next_turn(cast("KingTable", table).state))
        await Ask(())
        await whole_turn(table)

    monkeypatch.setattr(game, "turn", turn)
    outcome = play(GOOD)
    assert "the rules wait, but nobody is asked (after TurnBegan(" in outcome.message


def test_a_match_that_ends_must_be_expected(play: Play) -> None:
    text = changed("energy: 3}", "energy: 3, points: 20}")
    text = text[: text.index("  - end: turn")]
    outcome = play(text)
    assert "the match is over (twenty_points, winner: A): expect it" in outcome.message
    assert play(text + "  - expect: {winner: A}\n").ok
    assert "the winner is A" in play(text + "  - expect: {winner: nobody}\n").message


def test_answers_in_a_turn_need_its_dice(play: Play) -> None:
    outcome = play(GOOD + "  - turn: B\n  - B: {reroll: nothing}\n")
    assert "say what chance brought in this turn" in outcome.message
    assert outcome.line == 22
    assert play(GOOD + "  - turn: B\n  - expect: {B: {points: 2}}\n").ok


# -- the text of files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "there is no scenario in this file"),
        ("just words\n", 1, "a scenario is a map"),
        ("title: [a\n", 2, "this is not YAML"),
        ("title: &a x\nrule: *a\n", 1, "anchors (&name) are not used"),
        ("title: *a\n", 1, "references (*name) are not used"),
        ("title: !!python/object:os.system x\n", 1, "tags (tag:yaml.org,2002:python/object"),
        (
            "title: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: x}}}}}}}}}}}}\n",
            1,
            "deeper than",
        ),
        ("? [a]\n: b\n", 1, "a key is a word"),
        ("x: [" + "a," * 20_001 + "]\n", 1, "more than 20000 values"),
        ("x: " + "a" * 300_000, 1, "larger than 256 KiB"),
        ("[" * 5_000, 1, "nest"),
    ],
)
def test_files_are_read_safely(play: Play, text: str, line: int, message: str) -> None:
    outcome = play(text)
    assert message in outcome.message
    assert outcome.line == line


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(b"title: \xff\xfe\n")
    (outcome,) = run_file(path)
    assert outcome.message == "the file is not UTF-8 text"


# -- the command -----------------------------------------------------------------------------------


def test_the_command_prints_a_line_for_each_and_its_exit_code_tells(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    result = CliRunner().invoke(app, ["scenario", str(tmp_path)])
    assert result.exit_code == 0
    assert "ok   Wings save hearts" in result.stdout
    assert "1 passed, 0 failed" in result.stdout
    (tmp_path / "wrong.yaml").write_text(changed("hearts: 10", "hearts: 9"), encoding="utf-8")
    result = CliRunner().invoke(app, ["scenario", str(tmp_path), "-v"])
    assert result.exit_code == 1
    assert "wrong.yaml:20" in result.stdout
    assert "B: hearts is 10, not 9" in result.stdout
    assert "A buys Heal for 3 energy." in result.stdout


def test_the_command_prints_one_object_for_programs(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(GOOD + "---\n" + GOOD, encoding="utf-8")
    result = CliRunner().invoke(app, ["scenario", "--json", str(tmp_path / "case.yaml")])
    (line,) = result.stdout.splitlines()
    answer = json.loads(line)
    assert (answer["passed"], answer["failed"]) == (2, 0)
    assert [each["name"] for each in answer["scenarios"]] == ["case#1", "case#2"]


def test_the_worked_example_of_the_readme_holds(tmp_path: Path) -> None:
    readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    example = readme.split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "example.yaml"
    path.write_text(example, encoding="utf-8")
    assert [outcome.message for outcome in run_file(path)] == [""]
    wrong = example.replace("A: {hearts: 2, place: outside}", "A: {hearts: 1, place: outside}")
    path.write_text(wrong, encoding="utf-8")
    (outcome,) = run_file(path)
    assert f"my_ruling.yaml:{outcome.line}" in readme
    assert f"     {outcome.message}\n" in readme


def test_covers_names_the_scenarios_of_a_card() -> None:
    assert "cards/wings#1" in covers("wings")
    assert "worked/s42_wings_against_the_own_card" in covers("wings")
    assert covers("no_such_card") == []
