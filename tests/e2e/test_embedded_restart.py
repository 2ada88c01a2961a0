"""The embedded server killed in the middle of a match, and started again on the same directory."""

import asyncio
import time
from pathlib import Path

from services.cli.datadir import DataDir, TokenMaker, read_token_secret
from tests.support.arena import Arena
from tests.support.cluster import check_match
from tests.support.commands import run, up
from tests.support.healer import Healer, check_actions
from tests.support.history import check_history
from tests.support.rawlog import sqlite_records


async def test_a_killed_server_goes_on_with_the_match(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with up(data) as first:
        port = first.port
        token = TokenMaker(read_token_secret(DataDir(data).token_secret_file))
        async with Arena([first.address], token) as arena:
            playing = asyncio.create_task(arena.play(2, hashes=True))
            assert await arena.reached(40, playing)
            await first.kill()
            await asyncio.sleep(0.5)
            async with up(data, port=port) as second:
                played = await asyncio.wait_for(playing, 60)
                for match in played:
                    report = await arena.arbiter.replays.verify(match.match_id)
                    assert report.passed, report
                    last = max(match.records[0].commit_hashes)
                    assert report.last_sequence == last
                assert await second.stop() == 0
            assert set(arena.failures) <= {
                "UNAVAILABLE CONNECTION_LOST",
                "UNAVAILABLE SHUTTING_DOWN",
                "UNAVAILABLE NO_OWNER",
            }
    assert check_history(sqlite_records(data / "log.sqlite"), arena.sent) == []


async def test_a_server_killed_while_seats_act(tmp_path: Path) -> None:
    """Actions at any time are rebuilt like all else, and each that was acknowledged counts once."""
    data = tmp_path / "data"
    async with up(data) as first:
        token = TokenMaker(read_token_secret(DataDir(data).token_secret_file))
        async with Arena([first.address], token) as arena:
            playing = asyncio.create_task(arena.play(6, hashes=True, bot_of=Healer))
            assert await arena.reached(0, playing, actions=4), "nobody acted"
            fault_s = time.monotonic()
            await first.kill()
            async with up(data, port=first.port):
                played = await asyncio.wait_for(playing, 90)
                for match in played:
                    await check_match(arena, match)
    records = [*sqlite_records(data / "log.sqlite")]
    assert check_history(records, arena.sent) == []
    check_actions(records, played, fault_s)


async def test_a_second_server_on_the_directory_is_refused_in_a_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with up(data) as first:
        arguments = ("up", "--data", data, "--port", "0", "--metrics-port", "0")
        ended = await asyncio.to_thread(run, *arguments, cwd=tmp_path)
        assert ended.returncode == 1
        assert str(first.process.pid) in ended.stderr
        same_port = ("up", "--data", tmp_path / "other", "--port", str(first.port))
        ended = await asyncio.to_thread(run, *same_port, cwd=tmp_path)
        assert ended.returncode == 1
        assert "in use" in ended.stderr or "another program" in ended.stderr
        assert "Traceback" not in ended.stderr
