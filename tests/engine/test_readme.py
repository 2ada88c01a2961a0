"""What engine/README.md shows must work: its worked card is taken from the page and played."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

import engine
from engine.games.kings.cards import KingDeck, keep
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import SmashesResolved
from tests.engine.tokyo import kit as kit_module
from tests.engine.tokyo.boxes import with_expansion
from tests.engine.tokyo.kit import Kit

PAGE = (Path(engine.__file__).parent / "README.md").read_text()


def test_the_worked_card_works(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.partition("<!-- worked card -->")[2], re.S)
    card, scenario = blocks[:2]
    deck = KingDeck("imaginary")
    names = {"BASE": deck, "keep": keep, "SmashesResolved": SmashesResolved, "KingMe": KingMe}
    exec(card, names)
    game = with_expansion(deck)
    monkeypatch.setattr(kit_module, "find_game", lambda _: game)
    names = {"Kit": Kit}
    exec(scenario, names)
    cast("type", names["test_leech_fangs_turn_energy_into_a_heart"])()


def test_every_hook_and_verb_on_the_page_exists() -> None:
    from engine.games.kings import proposals

    names = re.findall(
        r"`([A-Z][A-Za-z]+)`", PAGE.partition("### Which hook?")[2].partition("##")[0]
    )
    for name in names:
        assert hasattr(proposals, name), name
    for verb in re.findall(r"\bme\.([a-z_]+)\(", PAGE):
        assert hasattr(KingMe, verb), verb
