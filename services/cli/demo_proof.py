"""The second half of a demo: look back at three points, verify, export, verify the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.text import Text

from diceledger.replay.v1 import replay_pb2
from engine import MatchState
from services.cli.main_guard import CommandFailed
from services.cli.main_options import Locale
from services.cli.render_words import say
from services.cli.verify import show_checks, show_identity
from services.client import Client
from services.common.bundle import SUFFIX
from services.common.verify import Check, CheckStatus, verify_file, with_origin

_STATUS = {
    replay_pb2.CHECK_STATUS_PASSED: CheckStatus.PASSED,
    replay_pb2.CHECK_STATUS_FAILED: CheckStatus.FAILED,
}


class Proof(Protocol):
    """Where the results go."""

    verified: bool
    checks: list[dict[str, object]]
    file: str
    file_bytes: int
    file_verified: bool
    commitment: str
    last_hash: str


async def opened(client: Client, match_id: str) -> MatchState:
    """A finished match as the log opens it to everybody: also what was hidden while it ran."""
    state: MatchState | None = None
    async for update in client.watch(match_id, fold=True):
        state = update.state
    assert state is not None, "a match has at least one commit"
    return state


async def look_back(
    out: Console,
    locale: Locale,
    client: Client,
    match_id: str,
    hashes: Mapping[int, bytes],
) -> list[dict[str, object]]:
    """Have the server rebuild three states from the log, and compare them with what was seen.

    Raises CommandFailed when one differs.
    """
    heading(out, say(locale, "looking_back"))
    replayed: list[dict[str, object]] = []
    last = max(hashes)
    for sequence in (max(1, last // 3), max(1, 2 * last // 3), last):
        state = await client.replays.state(match_id, sequence=sequence)
        digest = state.state_hash.hex()
        is_equal = state.state_hash == hashes[sequence]
        replayed.append({"sequence": sequence, "state_hash": digest, "equal": is_equal})
        if not is_equal:
            raise CommandFailed(f"The replay at sequence {sequence} differs from the match.")
        where = say(locale, "after_command", f"{sequence:>4}", last)
        seen = say(locale, "as_seen", digest[:16])
        out.print(f"  [bold green]✓[/] {where}   [dim]{seen}[/]")
    return replayed


def show_promise(out: Console, locale: Locale, state: MatchState) -> None:
    """What the server promised before anybody sat down, and what it showed at the end."""
    heading(out, say(locale, "verifying"))
    for key, value in (("promised", state.commitment), ("revealed", state.seed)):
        out.print(f"  [dim]{say(locale, key)}[/]")
        out.print(f"    {value.hex()}")
    committed = sum(1 for player in state.players if player.entropy_commitment)
    out.print(f"  [dim]{say(locale, 'entropy', committed, len(state.players))}[/]")


async def prove(
    out: Console,
    locale: Locale,
    client: Client,
    match_id: str,
    target: Path,
    proof: Proof,
    seen: tuple[bytes, bytes],
) -> None:
    """Verify on the server; export to `target`; verify the file without the server.

    `seen`: the commitment and the last commit's hash, as the players saw them.
    """
    response = await client.replays.verify(match_id)
    checks = tuple(check_from_wire(each) for each in response.checks)
    show_checks(out, checks, locale)
    proof.verified = response.passed
    proof.checks = [
        {"check": each.check, "status": str(each.status), "count": each.count} for each in checks
    ]
    heading(out, say(locale, "exporting"))
    path = target / f"{match_id}{SUFFIX}"
    proof.file_bytes = await client.replays.export_to(match_id, path)
    proof.file = str(path)
    # What the clients saw while they played, against what the file says.
    report = with_origin(verify_file(path), commitment=seen[0], last_hash=seen[1])
    show_checks(out, report.checks, locale)
    show_identity(out, report, locale)
    proof.commitment, proof.last_hash = (value.hex() for value in seen)
    proof.file_verified = report.passed
    out.print(f"  {escape(path.name)} [dim]{proof.file_bytes:,} bytes[/]")


def check_from_wire(check: replay_pb2.Check) -> Check:
    """A check as the service reports it."""
    status = _STATUS.get(check.status, CheckStatus.NOT_APPLICABLE)
    name = check.check
    return Check(name, status, check.count, check.sequence, check.finding)  # type: ignore[arg-type]  # newer servers may have more checks


def heading(out: Console, text: str) -> None:
    """A chapter of the demo."""
    out.print()
    out.print(Rule(Text(text, style="bold"), align="left", style="grey42"))
