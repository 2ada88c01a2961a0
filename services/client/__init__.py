"""The Python client: connect, play, watch, look back.

What a third party may rely on is listed in `__all__`; services and commands of this project use
the same names.
"""

from services.client.bots import Bot, GreedyBot, RandomBot
from services.client.channels import Tls
from services.client.client import Client, connect
from services.client.matches import (
    Command,
    Player,
    Record,
    open_match,
    play_match,
    play_on,
    take_part,
)
from services.client.play import PlayStream
from services.client.questions import Action, Question
from services.client.receipts import Created, Joined, Receipt
from services.client.replays import ALL_OPEN, seat_viewer
from services.client.requests import new_entropy, new_request_id
from services.client.retry import RetryPolicy
from services.client.tokens import TokenSource, token_file
from services.client.updates import ChainBroken, MatchUpdate
from services.common.errors import ApiError

__all__ = [
    "ALL_OPEN",
    "Action",
    "ApiError",
    "Bot",
    "ChainBroken",
    "Client",
    "Command",
    "Created",
    "GreedyBot",
    "Joined",
    "MatchUpdate",
    "PlayStream",
    "Player",
    "Question",
    "RandomBot",
    "Receipt",
    "Record",
    "RetryPolicy",
    "Tls",
    "TokenSource",
    "connect",
    "new_entropy",
    "new_request_id",
    "open_match",
    "play_match",
    "play_on",
    "seat_viewer",
    "take_part",
    "token_file",
]
