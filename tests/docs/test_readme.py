"""What the README shows is true: its Python runs, its commands and files exist, CI tests alike."""

import asyncio
import re
from pathlib import Path

from typer.testing import CliRunner

from services.cli.embedded import embedded
from services.cli.main import app
from services.client import connect

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


async def test_the_python_example_plays_a_match(tmp_path: Path) -> None:
    """Two of the README's players finish a match that a third person hosts."""
    (source,) = _blocks("python")
    names: dict[str, object] = {}
    exec(compile(source, "README.md", "exec"), names)
    play = names["play"]
    assert callable(play)
    async with (
        embedded(tmp_path / "box") as running,
        connect(running.address, running.token("host", "player")) as host,
    ):
        match_id = (await host.create("king_of_tokyo", 2)).match_id
        players = [
            asyncio.create_task(play(running.address, running.token(name, "player"), match_id))
            for name in ("ann", "ben")
        ]
        async for update in host.watch(match_id, fold=True):
            assert update.state is not None
            status = update.state.status
            if status == "lobby" and len(update.state.players) == 2:
                await host.start(match_id)
        assert status == "finished"
        await asyncio.gather(*players)


def test_every_command_named_exists() -> None:
    """Each `diceledger WORD` in a shell block or in code is a command of the program."""
    code = [*_blocks("sh"), *re.findall(r"`[^`\n]+`", README)]
    shown = re.findall(r"diceledger ([a-z]+)", "\n".join(code))
    assert {"demo", "play", "up", "token", "replay", "verify"} <= set(shown)
    for command in sorted(set(shown)):
        result = CliRunner().invoke(app, [command, "--help"])
        assert result.exit_code == 0, command


def test_every_link_leads_to_a_file() -> None:
    """Relative links point at what is in the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """.ci/run installs and tests as a newcomer would."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [line for block in _blocks("sh") for line in block.splitlines()]
    test_line = next(line for line in lines if "pytest" in line)
    assert test_line.endswith("pip install --quiet -e '.[dev]' && .venv/bin/pytest")
    assert '"$venv/bin/pytest"' in ci
    assert "-e '.[dev]'" in ci
