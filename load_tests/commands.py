"""Durable commands per second through one match process, as ratios to the bare transport.

    python -m load_tests.commands [--seconds 10] [--matches 64] [--rounds 3] [--only sqlite]

In each round the bare echoes and the services are measured one after the other, on the same machine
in the same minute; what counts is the ratio. The last run is committed in results/commands.md.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from load_tests.bare import stream_rate, unary_rate
from load_tests.generator import Load, Mode
from services.cli.datadir import DataDir, TokenMaker

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One measurement."""

    name: str
    rate: float
    ratio: float
    p50_ms: float = 0.0
    p99_ms: float = 0.0


@contextlib.contextmanager
def _process(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextlib.contextmanager
def _bare_server() -> Iterator[str]:
    with _process(sys.executable, "-m", "load_tests.bare", "0") as process:
        assert process.stdout is not None
        yield f"127.0.0.1:{int(process.stdout.readline())}"


@contextlib.asynccontextmanager
async def _service(log: str, data: Path) -> AsyncIterator[tuple[str, TokenMaker]]:
    """The service on `log`, with one match process; its address and its maker of tokens."""
    command = [sys.executable, "-m", "services.cli.main", "up", "--data", str(data), "--json"]
    command += ["--port", "0", "--metrics-port", "0"]
    if log == "kafka":
        command += ["--distributed", "--match-processes", "1"]
    with _process(*command) as process:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        ready = json.loads(line)
        address = ready["address"] if log == "sqlite" else ready["match"][0]
        yield address, TokenMaker(DataDir(data).token_secret())


async def _round(only: str, seconds: float, matches: int) -> list[Row]:
    rows = []
    with _bare_server() as address:
        unary = await unary_rate(address, seconds, matches)
        stream = await stream_rate(address, seconds, matches)
    rows += [Row("bare unary echo", unary, 1.0), Row("bare two-way stream", stream, 1.0)]
    for log in ("sqlite", "kafka"):
        if only not in ("", log):
            continue
        with tempfile.TemporaryDirectory() as directory:
            async with _service(log, Path(directory)) as (address, token):
                modes: tuple[tuple[Mode, float], ...] = (("unary", unary), ("play", stream))
                for mode, base in modes:
                    load = Load(address, lambda s: token(s, "player"), matches=matches, mode=mode)
                    tally = await load.measure(2.0, seconds)
                    assert not tally.refused, tally.refused
                    percentiles = tally.percentile(0.5), tally.percentile(0.99)
                    rows.append(Row(f"{log}, {mode}", tally.rate, tally.rate / base, *percentiles))
                    print(rows[-1], file=sys.stderr)
    return rows


def _median(rounds: list[list[Row]]) -> list[Row]:
    return [
        Row(
            same[0].name,
            *(
                statistics.median(getattr(row, column) for row in same)
                for column in ("rate", "ratio", "p50_ms", "p99_ms")
            ),
        )
        for same in zip(*rounds, strict=True)
    ]


def _table(rows: list[Row]) -> str:
    lines = ["| what | per second | ratio to bare | p50 ms | p99 ms |", "|---|---|---|---|---|"]
    for row in rows:
        latency = f"{row.p50_ms:.1f} | {row.p99_ms:.1f}" if row.p50_ms else " | "
        lines.append(f"| {row.name} | {row.rate:,.0f} | {row.ratio:.2f} | {latency} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--matches", type=int, default=64, help="matches (calls) at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["sqlite", "kafka"], default="")
    options = parser.parse_args()
    rounds = [
        asyncio.run(_round(options.only, options.seconds, options.matches))
        for _ in range(options.rounds)
    ]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, medians of", end=" ")
    print(
        f"{options.rounds} rounds of {options.seconds:.0f} s, {options.matches} matches at a time\n"
    )
    print(_table(_median(rounds)))


if __name__ == "__main__":
    main()
