"""What a newcomer runs first, as real subprocesses: demo, verify, replay, export files."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import clean_environ, command, read_until, run


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(workplace: Path) -> dict[str, object]:
    """The summary of one demo, whose file is kept."""
    ended = run("demo", "--json", "--export", ".", cwd=workplace)
    assert ended.returncode == 0, ended.stderr
    summary: dict[str, object] = json.loads(ended.stdout)
    return summary


@pytest.fixture(scope="module")
def recorded(workplace: Path, demo: dict[str, object]) -> Path:
    return workplace / str(demo["file"])


def _failed_in_a_sentence(ended: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr + ended.stdout
    assert ended.stderr.startswith("diceledger: ") or code == 2
    return ended.stderr + ended.stdout


def test_the_demo_plays_replays_verifies_and_exports(
    demo: dict[str, object], recorded: Path
) -> None:
    assert demo["verified"] is True
    assert demo["file_verified"] is True
    assert demo["winners"] or demo["reason"]
    assert [each["equal"] for each in demo["replayed"]] == [True, True, True]  # type: ignore[attr-defined]  # JSON
    assert recorded.name == f"{demo['match_id']}.dlmatch"
    assert recorded.stat().st_size == demo["file_bytes"]


def test_the_demo_is_told_for_people_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = run("demo", "--players", "2", "--seed", "7", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for expected in ("King of Tokyo", "Turn 1", "Gigazaur", "♥", "⚡", "✓", "wins"):
        assert expected in ended.stdout
    assert max(len(line) for line in ended.stdout.splitlines()) <= 100
    assert list(tmp_path.iterdir()) == []


def test_the_demo_speaks_chinese(tmp_path: Path) -> None:
    ended = run("demo", "--locale", "zh", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "第 1 回合" in ended.stdout


def test_verify_accepts_the_exported_file(workplace: Path, recorded: Path) -> None:
    ended = run("verify", recorded.name, cwd=workplace)
    assert ended.returncode == 0, ended.stdout
    assert "verified" in ended.stdout
    as_json = run("verify", recorded.name, "--json", cwd=workplace)
    report = json.loads(as_json.stdout)
    assert report["passed"] is True
    assert {each["check"] for each in report["checks"]} >= {"file", "chain", "rules", "dice"}


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_flipped_bit_is_found_and_located(tmp_path: Path, recorded: Path, place: float) -> None:
    content = bytearray(recorded.read_bytes())
    content[int(len(content) * place)] ^= 0x10
    damaged = tmp_path / "damaged.dlmatch"
    damaged.write_bytes(content)
    ended = run("verify", damaged, cwd=tmp_path)
    assert ended.returncode == 1
    assert "NOT verified" in ended.stdout
    assert "record" in ended.stdout
    assert "byte" in ended.stdout
    _failed_in_a_sentence(run("replay", damaged, cwd=tmp_path))


def test_replay_shows_the_match_and_any_point_of_it(
    workplace: Path, recorded: Path, demo: dict[str, object]
) -> None:
    whole = run("replay", recorded.name, cwd=workplace)
    assert whole.returncode == 0, whole.stderr
    assert "Turn 1" in whole.stdout
    at = run("replay", recorded.name, "--at", "12", "--viewer", "1", cwd=workplace)
    assert at.returncode == 0, at.stderr
    assert "12" in at.stdout
    as_json = run("replay", recorded.name, "--json", cwd=workplace)
    steps = json.loads(as_json.stdout)["steps"]
    assert len(steps) == demo["commits"]
    assert steps[-1]["state_hash"] == demo["state_hash"]


def test_a_recorded_match_has_the_same_states_under_every_hash_seed(
    workplace: Path, recorded: Path
) -> None:
    outputs = set()
    for seed in ("0", "1", "random"):
        environ = {"PYTHONHASHSEED": seed}
        replayed = run("replay", recorded.name, "--json", cwd=workplace, environ=environ)
        verified = run("verify", recorded.name, "--json", cwd=workplace, environ=environ)
        assert replayed.returncode == verified.returncode == 0
        outputs.add((replayed.stdout, verified.stdout))
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["verify", "missing.dlmatch"], 1, "no file missing.dlmatch"),
        (["verify", "."], 1, "directory"),
        (["verify"], 2, "FILE"),
        (["replay", "missing.dlmatch"], 1, "no file missing.dlmatch"),
        (["demo", "--players", "9"], 2, "2 to 6"),
        (["demo", "--players", "1"], 2, "2 to 6"),
        (["demo", "--game", "chess"], 1, "chess"),
        (["demo", "--players", "three"], 2, "integer"),
        (["export", "--server", "127.0.0.1:1", "--match", "a" * 26], 1, "No server answers"),
        (["play", "--server", "127.0.0.1:1"], 1, "token"),
        (["play", "--name", "\x1b[31mx"], 2, "printable"),
        (["play", "--name", "x" * 41], 2, "1 to 40"),
        (["play", "--name", " "], 2, "1 to 40"),
        (["play", "--data", ""], 2, "directory"),
        (["up", "--data", ""], 2, "directory"),
        (["up", "--data", "d", "--match-processes", "3"], 2, "--distributed"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_mistakes_get_a_sentence_and_the_right_exit_code(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    shown = _failed_in_a_sentence(run(*arguments, cwd=tmp_path), code)
    assert said in " ".join(shown.split())
    assert list(tmp_path.iterdir()) == []


def test_replay_refuses_points_and_viewers_that_are_not_there(
    workplace: Path, recorded: Path, demo: dict[str, object]
) -> None:
    beyond = run("replay", recorded.name, "--at", "99999", cwd=workplace)
    assert str(demo["commits"]) in _failed_in_a_sentence(beyond)
    _failed_in_a_sentence(run("replay", recorded.name, "--viewer", "9", cwd=workplace), 2)


def test_help_needs_no_terminal_and_names_every_command(tmp_path: Path) -> None:
    ended = run("--help", cwd=tmp_path)
    assert ended.returncode == 0
    for name in ("demo", "play", "replay", "verify", "export", "up", "serve", "token"):
        assert name in ended.stdout
    assert run("--version", cwd=tmp_path).stdout.startswith("diceledger ")


def test_a_terminal_of_few_characters_and_a_closed_pipe_are_no_failure(tmp_path: Path) -> None:
    ascii_only = run("demo", cwd=tmp_path, environ={"PYTHONIOENCODING": "ascii"})
    assert ascii_only.returncode == 0, ascii_only.stderr
    assert "Turn 1" in ascii_only.stdout
    first = " ".join(command("demo"))
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{first} | head -n 2"],
        cwd=tmp_path,
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert piped.stderr == ""


@pytest.mark.parametrize("arguments", [("demo", "--pace", "5"), ("play", "--data", "mine")])
def test_ctrl_c_ends_quietly(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        command(*arguments),
        cwd=tmp_path,
        env=clean_environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    read_until(process, "rolls")
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said + shown
    assert ("The match is kept" in shown) == (arguments[0] == "play")
