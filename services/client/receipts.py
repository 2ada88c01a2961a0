"""What the server answers to commands."""

from dataclasses import dataclass

from diceledger.match.v1 import match_pb2


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a command is in the log: its sequence, and a token for queries after it."""

    match_id: str
    sequence: int
    position: str


@dataclass(frozen=True, slots=True)
class Created:
    """A new match in its lobby, and the server's promise about its dice."""

    match_id: str
    receipt: Receipt
    # SHA-256 of the seed that is revealed when the match is over.
    commitment: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    """The seat that was taken."""

    seat: int
    receipt: Receipt


def receipt_from_wire(message: match_pb2.Receipt) -> Receipt:
    """Read a receipt."""
    return Receipt(message.match_id, message.sequence, message.position)
