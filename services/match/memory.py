"""Which matches are in memory: the least recently used ones go when there are too many bytes."""

from collections import OrderedDict
from collections.abc import Callable

from services.match.live_match import LiveMatch

# How many matches in use are passed over before making room is put off.
_PASSED_MAX = 32


class Memory:
    """All matches in memory of one process, the least recently used first."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._matches: OrderedDict[LiveMatch, Callable[[LiveMatch], bool]] = OrderedDict()
        self._counted: dict[LiveMatch, int] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._matches)

    def touch(self, match: LiveMatch, evict: Callable[[LiveMatch], bool]) -> None:
        """The match was used and may have grown; `evict` lets it go, or says that it is in use."""
        self._matches[match] = evict
        self._matches.move_to_end(match)
        self.bytes += match.memory_bytes - self._counted.get(match, 0)
        self._counted[match] = match.memory_bytes
        if self.bytes > self._bytes_max:
            self._make_room(match)

    def forget(self, match: LiveMatch) -> None:
        """The match is in memory no more."""
        if self._matches.pop(match, None) is not None:
            self.bytes -= self._counted.pop(match)

    def _make_room(self, kept: LiveMatch) -> None:
        """Let matches go, but not the one that is just being used."""
        for match, evict in list(self._matches.items())[:_PASSED_MAX]:
            if self.bytes <= self._bytes_max or match is kept:
                return
            if evict(match):
                self.forget(match)
            else:
                self._matches.move_to_end(match)
