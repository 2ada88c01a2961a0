"""What becomes of a command: the proof that it is in the log, or why it is not."""

from dataclasses import dataclass

from diceledger.match.v1 import match_pb2
from services.common.errors import ApiError
from services.common.log import Position


@dataclass(frozen=True, slots=True)
class Applied:
    """The command is in the log: its commit was read back and counts."""

    match_id: str
    sequence: int
    # Token for queries that must have seen the commit.
    position: str
    # JoinMatch: the seat that was taken.
    seat: int = 0
    # CreateMatch: SHA-256 of the secret seed.
    commitment: bytes = b""

    def receipt(self) -> match_pb2.Receipt:
        """The proof as the caller gets it."""
        return match_pb2.Receipt(
            match_id=self.match_id, sequence=self.sequence, position=self.position
        )


Outcome = Applied | ApiError


class NotApplied(Exception):
    """The commit does not count and never will: sending the command again is safe."""


class Superseded(NotApplied):
    """As NotApplied, because this process does not serve the partition (any more)."""


def position_of(partition: int, offset: int) -> str:
    """The token that names the commit at `offset`."""
    return str(Position(partition, offset))
