"""Which scenarios cover a card: for the list of cards, and for the test that every card has one."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from services.cli.scenario_model import DEFAULT_GAME, read_scenarios

# In a source tree beside the packages; a wheel may bring them along inside services/cli.
_PLACES: Final = (
    Path(__file__).parents[2] / "tests" / "scenarios",
    Path(__file__).parent / "scenario_files",
)


def scenario_directory(game: str = DEFAULT_GAME) -> Path | None:
    """Where the scenarios of a game lie, or None where they were not installed."""
    return next((place / game for place in _PLACES if (place / game).is_dir()), None)


def covers(card_id: str, game: str = DEFAULT_GAME) -> list[str]:
    """Names of the scenarios that cover a card ("cards/wings#2", "worked/s42"), sorted; none where
    scenarios were not installed. Raises ScenarioError when a file cannot be read.
    """
    return list(_coverage(game).get(card_id, ()))


@cache
def _coverage(game: str) -> Mapping[str, Sequence[str]]:
    directory = scenario_directory(game)
    found: dict[str, list[str]] = {}
    for path in sorted(directory.rglob("*.yaml")) if directory else ():
        place = path.parent.relative_to(directory or path.parent)
        for scenario in read_scenarios(path):
            for card in scenario.cards:
                found.setdefault(card, []).append((place / scenario.name).as_posix())
    return MappingProxyType({card: tuple(names) for card, names in found.items()})
