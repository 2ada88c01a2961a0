"""How many matches there are that are not over, of whom, and whether one more may be opened."""

from collections import Counter
from collections.abc import Callable, Iterable

from services.common.commits import ParsedCommit
from services.common.errors import refuse
from services.match.limits import Limits


class Census:
    """The matches of one partition that are not over, by what its commits say."""

    def __init__(self) -> None:
        """Nobody has opened a match yet."""
        self._hosts: dict[str, str] = {}
        self._running: set[str] = set()
        self._of_host: Counter[str] = Counter()

    @property
    def running(self) -> int:
        """Matches that were started."""
        return len(self._running)

    @property
    def lobbies(self) -> int:
        """Matches that wait for players, or for their start."""
        return len(self._hosts) - len(self._running)

    def of_host(self, subject: str) -> int:
        """Lobbies and running matches that the subject opened."""
        return self._of_host[subject]

    def note(self, commit: ParsedCommit) -> None:
        """Take the next admitted commit into account."""
        match_id, cause = commit.match_id, commit.cause
        if commit.sequence == 1 and cause is not None:
            self._hosts[match_id] = cause.actor
            self._of_host[cause.actor] += 1
        if cause is not None and cause.command == "start":
            self._running.add(match_id)
        if commit.final:
            self._running.discard(match_id)
            host = self._hosts.pop(match_id, None)
            if host is not None:
                self._of_host[host] -= 1
                if not self._of_host[host]:
                    del self._of_host[host]


class Capacity:
    """What one process takes on, over all of its partitions."""

    def __init__(self, limits: Limits, censuses: Callable[[], Iterable[Census]]) -> None:
        """`censuses` gives those of the partitions that the process owns now."""
        self._limits = limits
        self._censuses = censuses

    def check_create(self, host: str, *, is_organiser: bool) -> None:
        """Refuse (TOO_MANY_MATCHES) one more lobby when there are too many already.

        Lobbies have a limit of their own: however many there are, those who play may go on.
        """
        limits = self._limits
        lobbies = mine = 0
        for census in self._censuses():
            lobbies += census.lobbies
            mine += census.of_host(host)
        if lobbies >= limits.lobbies:
            raise refuse("TOO_MANY_MATCHES")
        if not is_organiser and mine >= limits.matches_per_host:
            metadata = {"limit": str(limits.matches_per_host), "of": "host"}
            raise refuse("TOO_MANY_MATCHES", metadata=metadata)

    def check_start(self) -> None:
        """Refuse (TOO_MANY_MATCHES) one more running match when there are too many already."""
        if sum(census.running for census in self._censuses()) >= self._limits.live_matches:
            raise refuse("TOO_MANY_MATCHES")
