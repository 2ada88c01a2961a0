"""Playing at the terminal, by somebody who only ever presses Enter."""

import asyncio
import re
import subprocess
from pathlib import Path

from tests.support.commands import Up, clean_environ, command, read_until, run, up

ENTERS = "\n" * 600
_AGAIN = re.compile(r"play .*--match\s+([a-z2-7]{26})")


def test_a_match_is_left_and_gone_on_with(tmp_path: Path) -> None:
    left = run("play", "--data", "mine", "--name", "Ada", cwd=tmp_path, stdin="?\nt\n\n\nq\n")
    assert left.returncode == 0, left.stderr
    assert "Ada" in left.stdout
    assert "The match is kept" in left.stdout
    again = _AGAIN.search(" ".join(left.stdout.split()))
    assert again is not None
    ended = run("play", "--data", "mine", "--match", again[1], cwd=tmp_path, stdin=ENTERS)
    assert ended.returncode == 0, ended.stderr
    assert "Turn" in ended.stdout
    assert "win" in ended.stdout


def test_blanks_around_a_name_are_not_part_of_it(tmp_path: Path) -> None:
    left = run("play", "--data", "mine", "--name", "  Ada ", cwd=tmp_path, stdin="q\n")
    assert left.returncode == 0, left.stderr
    assert "Ada" in left.stdout


def test_the_end_of_the_input_leaves_the_match_as_q_does(tmp_path: Path) -> None:
    ended = run("play", "--data", "mine", "--players", "2", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "The match is kept" in ended.stdout
    other = run("play", "--data", "mine", "--match", "a" * 26, cwd=tmp_path)
    assert other.returncode == 1
    assert "no such match" in other.stderr


def test_a_standing_answer_outlasts_the_sitting(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("play", "--data", "mine", "--players", "2", "--locale", "zh"),
        cwd=tmp_path,
        env=clean_environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdin is not None
        # The first question is which dice to roll again; where others begin, it comes later.
        read_until(process, "? ")
        process.stdin.write("s\n")
        process.stdin.flush()
        read_until(process, "今后照此回答")
        # The input ends: so does the sitting.
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 0, shown
    assert "对局已保留" in shown
    again = _AGAIN.search(" ".join(shown.split()))
    assert again is not None
    listed = run(*("play", "--data", "mine", "--match", again[1]), cwd=tmp_path, stdin="d1\nd\nq\n")
    assert listed.returncode == 0, listed.stderr
    assert "[d1] " in listed.stdout
    assert "asked again" in listed.stdout


async def _token(tmp_path: Path, data: Path, subject: str) -> Path:
    made = await asyncio.to_thread(run, "token", "--data", data, "--subject", subject, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    path = tmp_path / f"{subject}.token"
    path.write_text(made.stdout)
    return path


async def test_a_match_on_a_server_against_a_bot_is_played_and_exported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with up(data) as server:
        ann = await _token(tmp_path, data, "ann")
        bot = await _token(tmp_path, data, "helper")
        ended = await asyncio.to_thread(
            run,
            *("play", "--server", server.address, "--players", "2", "--name", "Ann"),
            *("--token-file", ann, "--bot-token-file", bot),
            cwd=tmp_path,
            stdin=ENTERS,
        )
        assert ended.returncode == 0, ended.stderr
        assert "win" in ended.stdout
        match = re.search(r"Match ([a-z2-7]{26})", ended.stdout)
        assert match is not None
        await _export(tmp_path, server, ann, match[1])
        await _refused_exports(tmp_path, server, ann)


async def _export(tmp_path: Path, server: Up, token: Path, match_id: str) -> None:
    ended = await asyncio.to_thread(
        run,
        *("export", "--server", server.address, "--match", match_id, "--token-file", token),
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    verified = await asyncio.to_thread(run, "verify", f"{match_id}.dlmatch", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout


async def _refused_exports(tmp_path: Path, server: Up, token: Path) -> None:
    unknown = await asyncio.to_thread(
        run,
        *("export", "--server", server.address, "--match", "a" * 26, "--token-file", token),
        cwd=tmp_path,
    )
    assert unknown.returncode == 1
    assert "MATCH_NOT_FOUND" in unknown.stderr
    nobody = await asyncio.to_thread(
        run, *("export", "--server", server.address, "--match", "a" * 26), cwd=tmp_path
    )
    assert nobody.returncode == 1
    assert "TOKEN_MISSING" in nobody.stderr
