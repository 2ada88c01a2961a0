"""Where commands print: people's text through rich, programs' JSON plain, errors on stderr."""

import json
import os
from typing import Any

from rich.console import Console

# Without a terminal (a file, a pipe, CI) nothing says how wide the text may be.
_WIDTH_WITHOUT_TERMINAL = 100


def console() -> Console:
    """Standard output for people; colours only on a terminal, and never with NO_COLOR."""
    plain = Console(highlight=False, soft_wrap=False)
    if plain.is_terminal or "COLUMNS" in os.environ:
        return plain
    return Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


def errors_to(sentence: str) -> None:
    """One sentence on standard error."""
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    stderr.print("[bold red]diceledger:[/]", end=" ")
    stderr.print(sentence, markup=False)


def print_json(content: Any) -> None:
    """One JSON object, one line, on standard output; bytes must be turned into text before."""
    print(json.dumps(content, ensure_ascii=False, sort_keys=False))
