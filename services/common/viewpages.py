"""Merges the sorted indexes of many partitions into one list, a page at a time.

An index is a Redis sorted set of match ids by time of creation. Each partition has its own; the
merge reads a few entries of each, and more only of those that turn out to hold the newest matches.
"""

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_TOKEN: Final = re.compile(r"([0-9]{1,16})\.([a-z0-9]{1,64})")


class BadPageToken(ValueError):
    """The page token was not given out by us."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a match stands in a list; lists go from the greatest place to the least."""

    created_ms: int
    match_id: str

    def __str__(self) -> str:
        return f"{self.created_ms}.{self.match_id}"


def parse_token(token: str) -> Place | None:
    """The last place of the page before; None for the first page. Raises BadPageToken."""
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise BadPageToken(f"not a page token: {token[:80]!r}")
    return Place(int(match[1]), match[2])


@dataclass(slots=True)
class _Cursor:
    """The reading of one index: what was read and not yet taken, greatest place last."""

    key: str
    last: Place | None
    limit: int
    ahead: list[Place] = field(default_factory=list)
    exhausted: bool = False

    def ask(self, pipe: Any) -> None:
        """Queue the reading of the next entries in a Redis pipeline."""
        top = self.last.created_ms if self.last else "+inf"
        pipe.zrevrangebyscore(self.key, top, "-inf", 0, self.limit, True)

    def told(self, entries: Sequence[tuple[bytes, float]]) -> None:
        """Take over what was read, but for the places that were taken before."""
        places = [Place(int(score), member.decode(errors="replace")) for member, score in entries]
        self.ahead = [p for p in reversed(places) if self.last is None or p < self.last]
        self.exhausted = len(entries) < self.limit
        if not self.ahead:
            # So many matches of the same millisecond that none of them was new: look further.
            self.limit *= 2


class Merge:
    """The matches of all indexes from `after` on, greatest place first."""

    def __init__(self, indexes: Sequence[str], after: Place | None, page_size: int) -> None:
        each = max(2, min(page_size, 2 * page_size // max(1, len(indexes)) + 1))
        self._cursors = [_Cursor(key, after, each) for key in indexes]
        self._last = after

    def hungry(self) -> list[_Cursor]:
        """The indexes that must be read before the next place can be told."""
        return [c for c in self._cursors if not c.ahead and not c.exhausted]

    def take(self, count: int) -> list[Place]:
        """Up to `count` next places; fewer when an index must be read first, or at the end."""
        if self.hungry():
            return []
        heap = [_Last(cursor.ahead[-1], cursor) for cursor in self._cursors if cursor.ahead]
        heapq.heapify(heap)
        taken: list[Place] = []
        while heap and len(taken) < count:
            cursor = heap[0].cursor
            cursor.last = self._last = cursor.ahead.pop()
            taken.append(self._last)
            if cursor.ahead:
                heapq.heapreplace(heap, _Last(cursor.ahead[-1], cursor))
            elif cursor.exhausted:
                heapq.heappop(heap)
            else:
                break
        return taken

    @property
    def more(self) -> bool:
        """There may be places that were not taken yet."""
        return any(cursor.ahead or not cursor.exhausted for cursor in self._cursors)

    @property
    def token(self) -> str:
        """What continues after the last place taken; empty at the end."""
        return str(self._last) if self._last and self.more else ""


@dataclass(frozen=True, slots=True)
class _Last:
    """A heap entry: the greatest place comes out first."""

    place: Place
    cursor: _Cursor

    def __lt__(self, other: "_Last") -> bool:
        return self.place > other.place
