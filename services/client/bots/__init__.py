"""Bots: they answer prompts over the wire and in the same process alike."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from services.client.bots.base import (
    Advice,
    Bot,
    GreedyBot,
    RandomBot,
    random_answer,
    seeded,
)
from services.client.bots.kings import KingsAdvice

BotKind = Literal["greedy", "random"]

# Game id to what makes a greedy bot good at it.
ADVICE: Final[Mapping[str, Callable[[], Advice]]] = MappingProxyType({"king_of_tokyo": KingsAdvice})


def make_bot(kind: BotKind, game: str, seed: str) -> Bot:
    """A bot of a kind; "greedy" is random in a game that nobody wrote advice for."""
    if kind == "greedy" and game in ADVICE:
        return GreedyBot(ADVICE[game](), seed)
    return RandomBot(seed)


__all__ = [
    "ADVICE",
    "Advice",
    "Bot",
    "BotKind",
    "GreedyBot",
    "KingsAdvice",
    "RandomBot",
    "make_bot",
    "random_answer",
    "seeded",
]
