"""Bots: they answer prompts over the wire and in the same process alike."""

from services.client.bots.base import (
    BOT_KINDS,
    Advice,
    Bot,
    GreedyBot,
    RandomBot,
    random_answer,
    seeded,
)

__all__ = ["BOT_KINDS", "Advice", "Bot", "GreedyBot", "RandomBot", "random_answer", "seeded"]
