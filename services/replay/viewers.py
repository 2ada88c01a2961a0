"""Whose eyes a caller may look through.

While a match runs: everybody sees what spectators see, players see their own seat's view, arbiters
see everything; but an arbiter who sits at the table is a player like the others. Once the match is
over, everybody may look through all eyes.
"""

from dataclasses import dataclass

from diceledger.replay.v1 import replay_pb2
from engine import Seat
from services.common.auth import Caller
from services.common.errors import refuse
from services.common.viewfold import EVERYTHING, SPECTATOR
from services.replay.recorded import RecordedMatch


@dataclass(frozen=True, slots=True)
class Eyes:
    """A viewer that the caller was granted: a seat, SPECTATOR or EVERYTHING."""

    viewer: int

    @property
    def seat(self) -> Seat | None:
        """The seat for redaction; None for a spectator (and for EVERYTHING, which redacts not)."""
        return Seat(self.viewer) if self.viewer > SPECTATOR else None

    @property
    def everything(self) -> bool:
        """Nothing is hidden from these eyes."""
        return self.viewer == EVERYTHING


def sees_all(match: RecordedMatch, caller: Caller) -> bool:
    """Whether nothing of the match may be kept from the caller."""
    return match.finished or (caller.has("arbiter") and not match.seat_of(caller.subject))


def granted(match: RecordedMatch, caller: Caller, wanted: replay_pb2.Viewer) -> Eyes:
    """The eyes that the caller asks for; none asked for: its own seat's, else a spectator's.

    Raises ApiError BAD_VIEWER, ROLE_REQUIRED.
    """
    own = match.seat_of(caller.subject)
    match wanted.WhichOneof("viewer"):
        case "seat":
            seat = wanted.seat
            if not 1 <= seat <= match.whole().seats:
                raise refuse("BAD_VIEWER", field="viewer.seat")
            if seat != own and not sees_all(match, caller):
                raise refuse(
                    "ROLE_REQUIRED",
                    "While the match is being played, a seat's view is for its player.",
                    field="viewer.seat",
                    message_zh="游戏进行中，座位的视角只属于该玩家。",
                )
            return Eyes(seat)
        case "everything":
            if wanted.everything and not sees_all(match, caller):
                raise refuse(
                    "ROLE_REQUIRED",
                    "While the match is being played, only arbiters without a seat see everything.",
                    field="viewer.everything",
                    message_zh="游戏进行中，只有未入座的裁判可以查看全部内容。",
                )
            return Eyes(EVERYTHING if wanted.everything else SPECTATOR)
        case "spectator":
            return Eyes(SPECTATOR)
        case _:
            return Eyes(own or SPECTATOR)
