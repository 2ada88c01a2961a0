"""Every game that is installed, found by scanning engine.games: there is no list to edit."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import cast

from engine.core.game import AnyGame
from engine.core.refusals import Refusal


@cache
def catalogue() -> Mapping[str, AnyGame]:
    """Game id to game, sorted by id: every module `game` with a GAME below engine.games."""
    package = importlib.import_module("engine.games")
    games: dict[str, AnyGame] = {}
    for name in sorted(_module_names(package.__path__, "engine.games.")):
        if name.rpartition(".")[2] == "game":
            game = cast("AnyGame", importlib.import_module(name).GAME)
            assert game.id not in games, game.id
            games[game.id] = game
    return MappingProxyType({each: games[each] for each in sorted(games)})


def _module_names(path: Iterable[str], prefix: str) -> list[str]:
    return [module.name for module in pkgutil.walk_packages(path, prefix)]


def find_game(game_id: str) -> AnyGame:
    """The game with this id. Raises Refusal UNKNOWN_GAME, with the known ones."""
    games = catalogue()
    game = games.get(game_id)
    if game is None:
        raise Refusal("UNKNOWN_GAME", "game", detail=game_id, legal=tuple(games))
    return game
