"""Who plays in a demo, and against a person: bots with names, tokens and seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import typer

from engine import AnyGame, Refusal, find_game
from services.cli.main_guard import CommandFailed
from services.client import Client, Player
from services.client.bots import ADVICE, BotKind, make_bot

# Monsters of the box; games without monsters get the same, which does no harm.
_NAMES: Final = (
    "Gigazaur",
    "Cyber Bunny",
    "The King",
    "Kraken",
    "Meka Dragon",
    "Alienoid",
)


@dataclass(frozen=True, slots=True)
class Role:
    """One bot."""

    subject: str
    name: str
    kind: BotKind
    seed: str


@dataclass(frozen=True, slots=True)
class Cast:
    """The bots of one match, in seat order."""

    game: str
    roles: tuple[Role, ...]

    def players(self, anybody: Client, token: Callable[..., str]) -> list[Player]:
        """Each bot with a client of its own."""
        return [
            Player(
                client=anybody.for_token(token(role.subject, "player", name=role.name)),
                bot=make_bot(role.kind, self.game, role.seed),
                name=role.name,
            )
            for role in self.roles
        ]


def cast_of(game: str, seats: int, seed: str) -> Cast:
    """Bots for all seats: sensible ones, and a random one last where there are three or more.

    Raises CommandFailed for an unknown game, BadParameter for a number that it does not allow.
    """
    known = known_game(game)
    check_players(known, seats, seats)
    return Cast(game, tuple(_role(game, seat, seats, seed) for seat in range(1, seats + 1)))


def _role(game: str, seat: int, seats: int, seed: str) -> Role:
    name = _NAMES[(seat - 1) % len(_NAMES)]
    if seat > len(_NAMES):
        name = f"{name} {1 + (seat - 1) // len(_NAMES)}"
    is_sensible = game in ADVICE and (seats < 3 or seat < seats)
    kind: BotKind = "greedy" if is_sensible else "random"
    return Role(f"bot-{seat}", name, kind, f"{seed}/{seat}")


def known_game(game: str) -> AnyGame:
    """The game. Raises CommandFailed with the known ones."""
    try:
        return find_game(game)
    except Refusal as refusal:
        raise CommandFailed(f"{refusal.message('en')}") from None


def check_players(game: AnyGame, low: int, high: int) -> None:
    """Raises BadParameter unless the game allows every number from `low` to `high`."""
    if not game.seats_low <= low <= high <= game.seats_high:
        raise typer.BadParameter(
            f"{game.name} is for {game.seats_low} to {game.seats_high} players.",
            param_hint="'--players'",
        )
