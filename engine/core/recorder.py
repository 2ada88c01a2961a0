"""Where a session's facts go and its chance comes from: live, read again from the log, and once
more within the turn when somebody acted at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.core.chance import draw_from, prefix
from engine.core.differences import comparison
from engine.core.facts import (
    ChanceDrawn,
    ChanceDrawnInSecret,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
    SeedRevealed,
)
from engine.core.prompts import Answer, Prompt, PromptId
from engine.core.state import MatchState
from engine.core.visibility import Fact, Seat

FACTS_PER_COMMIT_MAX: Final = 2_000
_QUESTIONS: Final = (Prompted, PromptedInSecret, PromptsWithdrawn)


class RebuildMismatch(Exception):  # the word of the contract with the services
    """Running the rules again gave another fact than the log has.

    index: of the fact within the match, from 0. expected: the logged fact (None: the log ends
    before). got: what the rules recorded (None: they stopped to ask, or were over).
    """

    def __init__(self, index: int, expected: Fact | None, got: Fact | None) -> None:
        self.index = index
        self.expected = expected
        self.got = got
        super().__init__(f"fact {index}: {comparison(expected, got)}")


class SeedMissing(Exception):  # a state of the session, met by a caller's mistake
    """The session was rebuilt without the seed, so it cannot draw anything new."""


class Splice(NamedTuple):
    """An action that was taken between two facts of the rules, while they waited.

    at: how many of the turn's facts lay before the open questions. end: how many there were after
    the action. group, answers: the questions that were open, and those of them already answered.
    """

    at: int
    end: int
    group: tuple[Prompt, ...]
    answers: Mapping[PromptId, Answer]


class Recorder:
    """Live: collects facts and draws from the seed. Rebuilding: compares with the log and draws
    from it. Repeating (either way): compares with what the open turn has recorded so far.
    """

    def __init__(self, match: MatchState, seed: bytes | None, logged: Sequence[Fact]) -> None:
        self.facts: list[Fact] = []
        self.logged = logged
        self.cursor = 0
        self.rebuilding = bool(logged)
        self.first_index = match.fact_count
        self._match_id = match.match_id
        self._entropies = tuple(player.entropy for player in match.players)
        self._prefixes: dict[str, bytes] = {}
        self.seed = seed
        self.script: Callable[[str, int, int], tuple[int, ...]] | None = None
        self.base = match
        """The match before the turn's first fact (or before its setting up)."""
        self.turn: list[Fact] = []
        """The facts since then."""
        self.splices: list[Splice] = []
        """Where actions were taken in the turn."""
        self.actions: Counter[Seat] = Counter()
        """How many of them each seat took."""
        self._past: Sequence[Fact] | None = None
        self._at = 0
        self._stop = 0
        self._at_stop: Callable[[], None] = _nothing

    # -- what the table calls ----------------------------------------------------------------------

    def accept(self, fact: Fact) -> None:
        """Live: append; rebuilding: must equal the logged fact."""
        if self._past is not None:
            self._repeated(fact)
            return
        self.turn.append(fact)
        if not self.rebuilding:
            self.facts.append(fact)
            assert len(self.facts) <= FACTS_PER_COMMIT_MAX, "too many facts for one commit"
            return
        if self.next_logged() != fact:
            raise self.mismatch(fact)
        self.cursor += 1

    def chance(self, domain: str, number: int, bound: int, count: int) -> tuple[int, ...]:
        """Values of the draw: live from the seed, rebuilding from the log."""
        if self.rebuilding or self._past is not None:
            logged = self.next_logged() if self._past is None else self._expected()
            if isinstance(logged, ChanceDrawn | ChanceDrawnInSecret) and isinstance(
                logged.values, tuple
            ):
                return logged.values
            raise self._differs(ChanceDrawn(domain, number, bound, count, ()))
        if self.script is not None:
            return self.script(domain, bound, count)
        if self.seed is None:
            raise SeedMissing(f"no seed for draw {number} ({domain}) of match {self._match_id}")
        start = self._prefixes.get(domain)
        if start is None:
            start = self._prefixes[domain] = prefix(domain, self._match_id, self._entropies)
        return draw_from(self.seed, start, number, bound, count)

    def turn_begins(self, match: MatchState) -> None:
        """The next fact is the first of a turn, or of the setting up; `match` is the state before
        it.
        """
        if self._past is None:
            count = self.base.fact_count + len(self.turn)
            self.base = msgspec.structs.replace(match, fact_count=count)
            self.turn = []
            self.splices = []
            self.actions.clear()

    # -- what the session calls --------------------------------------------------------------------

    def next_logged(self) -> Fact | None:
        """Rebuilding: the fact that must come next."""
        return self.logged[self.cursor] if self.cursor < len(self.logged) else None

    def mismatch(self, got: Fact | None) -> RebuildMismatch:
        """What the log has here is not what the rules gave."""
        return RebuildMismatch(self.first_index + self.cursor, self.next_logged(), got)

    def reveal(self) -> bytes:
        """The seed, which is about to become a fact."""
        logged = self.next_logged()
        if isinstance(logged, SeedRevealed):
            return logged.seed
        if self.seed is None:
            raise SeedMissing(f"no seed to reveal for match {self._match_id}")
        return self.seed

    # -- running the turn once more ----------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many facts of the turn have been recorded, or repeated."""
        return len(self.turn) if self._past is None else self._at

    @property
    def is_repeating(self) -> bool:
        """Does what is recorded now lie in the past?"""
        return self._past is not None

    def repeat(self, stop: int, at_stop: Callable[[], None]) -> None:
        """From now on facts are compared with those of the turn so far; after `stop` of them
        `at_stop` is called, which says where to stop next (`stop_at`) or that all has been
        repeated (`go_on`).
        """
        self._past, self._at = self.turn, 0
        self.stop_at(stop, at_stop)

    def stop_at(self, stop: int, at_stop: Callable[[], None]) -> None:
        """Stop there next."""
        self._stop, self._at_stop = stop, at_stop

    def go_on(self) -> None:
        """What comes now is new."""
        assert self._past is not None
        assert self._at == len(self._past), "not everything has been repeated"
        self._past = None

    def next_past(self) -> Fact:
        """The fact that must be repeated next."""
        assert self._past is not None
        return self._past[self._at]

    def before_questions(self, asked_at: int) -> int:
        """How many facts of the turn lay before the questions that were put last, when they ended
        with number `asked_at`.
        """
        at = asked_at
        while at and isinstance(self.turn[at - 1], _QUESTIONS):
            at -= 1
        return at

    def _expected(self) -> Fact | None:
        past = self._past
        return past[self._at] if past is not None and self._at < len(past) else None

    def _differs(self, got: Fact) -> RebuildMismatch:
        if self._past is None:
            return self.mismatch(got)
        return RebuildMismatch(self.base.fact_count + self._at, self._expected(), got)

    def _repeated(self, fact: Fact) -> None:
        if self._expected() != fact:
            raise self._differs(fact)
        self._at += 1
        if self._at == self._stop:
            self._at_stop()


def _nothing() -> None:
    """Nothing is being repeated."""
