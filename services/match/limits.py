"""What one match process takes on at most, and the counters that refuse the rest."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from services.common.errors import refuse
from services.common.settings import Settings

# Longest name of a preset, option, option value, expansion, prompt or picked option.
TEXT_MAX: Final = 64
# Most options or expansions of a new match, and most picks or amounts of one answer.
ITEMS_MAX: Final = 200
ANSWER_TIMEOUT_S_MAX: Final = 30 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one match process. Times are in seconds."""

    # Commands that were taken on and are not answered yet.
    in_flight: int = 256
    in_flight_per_caller: int = 128
    # Submissions of one Play stream that have no reply yet; beyond it the stream is not read.
    in_flight_per_stream: int = 64
    watchers: int = 5_000
    watchers_per_match: int = 1_000
    watchers_per_caller: int = 500
    # Running matches of the partitions that this process serves.
    live_matches: int = 20_000
    # Matches that wait for players or for their start.
    lobbies: int = 100_000
    # Lobbies and running matches opened by one subject; organisers may open more.
    matches_per_host: int = 200
    # Bytes of log records whose matches are kept in memory; matches in use stay beyond it.
    memory_bytes: int = 256 << 20
    # A watcher that was live and is this many commits behind is cut off …
    watch_lag: int = 500
    # … and so is one whose connection takes nothing for so long.
    write_stall_s: float = 20.0
    # A match that nobody starts ends so long after the last player took a seat.
    lobby_s: float = 86_400.0
    # How long a query waits until the read model has got to its position.
    views_wait_s: float = 2.0
    # How long a command waits for a partition that is being taken over.
    takeover_wait_s: float = 3.0
    # After a takeover nobody's time to answer ends earlier than this.
    takeover_grace_s: float = 10.0
    # How long a command whose outcome is not known yet is held back before the caller is told so.
    outcome_wait_s: float = 20.0
    # How long a partition that goes is kept for the commands in flight.
    release_wait_s: float = 2.0
    # Once another process claimed a partition that is still ours by assignment, how long it has
    # before it is claimed back.
    reclaim_s: float = 8.0

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits that an operator chose, with our defaults for the others."""
        each = max(1, settings.in_flight_max // 2)
        return cls(
            in_flight=settings.in_flight_max,
            in_flight_per_caller=each,
            in_flight_per_stream=min(64, each),
            watchers=settings.watchers_max,
            watchers_per_caller=settings.watchers_per_caller_max,
            live_matches=settings.live_matches_max,
            lobbies=5 * settings.live_matches_max,
            lobby_s=settings.lobby_s,
        )


class Quota:
    """Counts something that each caller has, and refuses (RESOURCE_EXHAUSTED) what is too much."""

    def __init__(self, reason: str, total_max: int, each_max: int) -> None:
        """`reason` is what a refusal says; `each_max` is for one caller."""
        self._reason = reason
        self._total_max = total_max
        self._each_max = each_max
        self._each: Counter[str] = Counter()
        self.total = 0

    def take(self, caller: str) -> None:
        """Count one more of `caller`; ApiError when it would be one too many."""
        if self.total >= self._total_max:
            raise refuse(self._reason)
        if self._each[caller] >= self._each_max:
            raise refuse(self._reason, metadata={"limit": str(self._each_max), "of": "caller"})
        self.total += 1
        self._each[caller] += 1

    def give_back(self, caller: str) -> None:
        """Count one less of `caller`."""
        self.total -= 1
        self._each[caller] -= 1
        if not self._each[caller]:
            del self._each[caller]
