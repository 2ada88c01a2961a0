"""The states of one match as each of its viewers may know them: the only way views are made.

view(viewer) = fold(evolve, redact(facts, viewer)), and once the match is over everybody's view is
the fold of the unredacted facts (engine.md, section 7). Projector, replay and verification share
this fold, so they cannot disagree about what a viewer sees.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine import (
    Fact,
    MatchCreated,
    MatchState,
    Seat,
    empty_state,
    fold,
    has_hidden,
    hidden_fields,
    redact,
)

# Viewers are seats; these two are nobody's.
SPECTATOR: Final = 0
# Sees every fact; shown to others only when the match is over (and to arbiters).
EVERYTHING: Final = -1


class NotAMatch(ValueError):
    """The facts do not begin as the facts of a match begin."""


def redacted(facts: Iterable[Fact], viewer: int) -> tuple[Fact, ...]:
    """The facts as `viewer` may see them while the match runs."""
    if viewer == EVERYTHING:
        return tuple(facts)
    seat = Seat(viewer) if viewer != SPECTATOR else None
    return tuple(redact(fact, seat) for fact in facts)


class MatchFold:
    """One match, folded for all of its viewers at once.

    Viewers that saw the same so far share one state and are advanced together: a game without
    secrets costs one fold, not one a seat.
    """

    __slots__ = ("_groups", "_only", "finished")

    def __init__(self, only: Iterable[int] | None = None) -> None:
        """`only`: the viewers wanted; default: a spectator, every seat, and EVERYTHING."""
        self._only = tuple(only) if only is not None else None
        self._groups: list[tuple[MatchState, tuple[int, ...]]] = []
        if self._only is not None:
            self._groups = [(empty_state(), self._only)]
        # The last fact is in, and everybody sees everything.
        self.finished = False

    def apply(self, facts: Sequence[Fact], *, final: bool) -> None:
        """Take over the facts of the next commit; `final` when it ends the match.

        On an exception (the facts do not fit the state) nothing has changed.
        """
        groups = self._groups or self._opened(facts)
        sights = _Sights(facts, [viewer for _, group in groups for viewer in group])
        advanced = [
            (fold(seen, state), viewers)
            for state, group in groups
            for seen, viewers in sights.split(group)
        ]
        self._groups = _merged(advanced)
        if final:
            self._reveal()

    def _opened(self, facts: Sequence[Fact]) -> list[tuple[MatchState, tuple[int, ...]]]:
        created = facts[0] if facts else None
        if not isinstance(created, MatchCreated):
            raise NotAMatch(f"a match begins with match_created, not with {created!r:.80}")
        viewers = (SPECTATOR, *range(1, created.seats + 1), EVERYTHING)
        return [(empty_state(), viewers)]

    def _reveal(self) -> None:
        viewers = tuple(sorted(viewer for _, group in self._groups for viewer in group))
        self.finished = True
        if EVERYTHING in viewers:
            self._groups = [(self.state(EVERYTHING), viewers)]

    def state(self, viewer: int) -> MatchState:
        """The state as `viewer` may see it. KeyError for a viewer that the match does not have."""
        for state, group in self._groups:
            if viewer in group:
                return state
        raise KeyError(viewer)

    @property
    def groups(self) -> Iterator[tuple[MatchState, tuple[int, ...]]]:
        """Each different state with the viewers that see it."""
        return iter(self._groups)

    def states(self) -> Mapping[int, MatchState]:
        """The state of each viewer that may be shown now: not EVERYTHING while the match runs."""
        return {
            viewer: state
            for state, group in self._groups
            for viewer in group
            if viewer != EVERYTHING or self.finished
        }


class _Sights:
    """The facts of one commit as each viewer sees them; what looks the same is made only once."""

    __slots__ = ("_facts", "_keys", "_secret", "_versions", "_wholes")

    def __init__(self, facts: Sequence[Fact], viewers: Iterable[int]) -> None:
        self._facts = facts
        self._secret = [index for index, fact in enumerate(facts) if has_hidden(type(fact))]
        # Of each secret fact its different versions, by what is hidden in them.
        self._versions: list[list[tuple[tuple[str, ...], Fact]]] = [
            [((), facts[index])] for index in self._secret
        ]
        # Which version of each secret fact a viewer sees.
        self._keys: dict[int, tuple[int, ...]] = {}
        self._wholes: dict[tuple[int, ...], Sequence[Fact]] = {(0,) * len(self._secret): facts}
        if self._secret:
            for viewer in viewers:
                self._keys[viewer] = self._key(viewer)

    def _key(self, viewer: int) -> tuple[int, ...]:
        if viewer == EVERYTHING:
            return (0,) * len(self._secret)
        seat = Seat(viewer) if viewer != SPECTATOR else None
        return tuple(
            self._version(versions, redact(versions[0][1], seat)) for versions in self._versions
        )

    @staticmethod
    def _version(versions: list[tuple[tuple[str, ...], Fact]], seen: Fact) -> int:
        if seen is versions[0][1]:
            return 0
        hidden = hidden_fields(seen)
        for number, (names, _) in enumerate(versions):
            if names == hidden:
                return number
        versions.append((hidden, seen))
        return len(versions) - 1

    def split(self, group: tuple[int, ...]) -> Iterator[tuple[Sequence[Fact], tuple[int, ...]]]:
        """The facts for the viewers of a group; viewers that see the same stay together."""
        if not self._secret:
            yield self._facts, group
            return
        parts: dict[tuple[int, ...], list[int]] = {}
        for viewer in group:
            parts.setdefault(self._keys[viewer], []).append(viewer)
        for key, viewers in parts.items():
            yield self._whole(key), tuple(viewers)

    def _whole(self, key: tuple[int, ...]) -> Sequence[Fact]:
        whole = self._wholes.get(key)
        if whole is None:
            seen = list(self._facts)
            for index, versions, number in zip(self._secret, self._versions, key, strict=True):
                seen[index] = versions[number][1]
            whole = self._wholes[key] = seen
        return whole


def _merged(
    groups: list[tuple[MatchState, tuple[int, ...]]],
) -> list[tuple[MatchState, tuple[int, ...]]]:
    """Viewers whose states have become equal again are put together."""
    merged: list[tuple[MatchState, tuple[int, ...]]] = []
    for state, viewers in groups:
        for index, (other, others) in enumerate(merged):
            if other == state:
                merged[index] = (other, (*others, *viewers))
                break
        else:
            merged.append((state, viewers))
    return merged
