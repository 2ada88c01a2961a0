"""Updates as bytes: encoded once for each commit and viewer, however many watch it.

A serialised protobuf message is the concatenation of its fields, so what differs from watcher to
watcher (`live`, `prompts`, `actions`) is appended to what was encoded before, and the envelope of
the stream's response is put around it. Tests compare the bytes with what protobuf itself makes.
"""

from collections.abc import Sequence
from typing import Final

from diceledger.match.v1 import match_pb2
from engine import Seat
from services.common.commits import ParsedCommit
from services.common.redaction import redact_commit

# Field 6 of Update, a varint: true.
LIVE: Final = match_pb2.Update(live=True).SerializeToString()
# Field 1 of WatchMatchResponse and field 2 of PlayResponse, length-delimited: the update.
_WATCH_TAG: Final = b"\x0a"
_PLAY_TAG: Final = b"\x12"


def encode_update(
    commit: ParsedCommit,
    seat: int,
    *,
    everything: bool,
    status: match_pb2.MatchStatus.ValueType,
) -> bytes:
    """The part of an Update that depends on the commit and on what the viewer may know only."""
    return match_pb2.Update(
        match_id=commit.match_id,
        sequence=commit.sequence,
        commit=redact_commit(commit, Seat(seat) if seat else None, everything=everything),
        status=status,
    ).SerializeToString()


def encode_own(prompts: Sequence[match_pb2.Prompt], actions: Sequence[match_pb2.Action]) -> bytes:
    """The part of an Update that holds the viewer's open prompts, and what it may do."""
    return match_pb2.Update(prompts=prompts, actions=actions).SerializeToString()


def watch_response(update: bytes) -> bytes:
    """The WatchMatchResponse around an encoded Update."""
    return _WATCH_TAG + _varint(len(update)) + update


def play_response(update: bytes) -> bytes:
    """The PlayResponse around an encoded Update."""
    return _PLAY_TAG + _varint(len(update)) + update


def unwrap_watch_response(response: bytes) -> bytes:
    """The encoded Update in a WatchMatchResponse of another process of ours.

    Raises ValueError when it holds anything else.
    """
    if response[:1] != _WATCH_TAG:
        raise ValueError("not a WatchMatchResponse with an update")
    length, shift, at = 0, 0, 1
    while True:
        byte = response[at]
        length |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            break
    if len(response) != at + length:
        raise ValueError("a WatchMatchResponse with more than an update")
    return response[at:]


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
