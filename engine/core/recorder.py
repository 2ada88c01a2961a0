"""Where a session's facts go and its chance comes from: live, read again from the log, and once
more within the turn when somebody acted at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.core.chance import draw_from, prefix
from engine.core.differences import comparison
from engine.core.facts import (
    ActionTaken,
    ChanceDrawn,
    ChanceDrawnInSecret,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
    SeedRevealed,
    StandingAnswerDropped,
    StandingAnswerSet,
)
from engine.core.prompts import Answer, Prompt, PromptId
from engine.core.state import GameState, MatchState
from engine.core.visibility import Fact, Seat

FACTS_PER_COMMIT_MAX: Final = 2_000
_Answers = Mapping[PromptId, Answer]
_OfSeat = ActionTaken | StandingAnswerSet | StandingAnswerDropped
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

    It falls after the first `at` facts of the turn: at once, or (moment: not 0) at that moment of
    the turn. end, moments: how many facts and moments there were after the action (before it, as
    long as it has not been taken). group, answers:
    the questions that were open, and those of them already answered. secret: they were put in
    secret, so none of them stays open.
    """

    at: int
    moment: int
    end: int
    moments: int
    group: tuple[Prompt, ...]
    answers: _Answers
    secret: bool


class Recorder:
    """Live: collects facts and draws from the seed. Rebuilding: compares with the log and draws
    from it. Repeating (either way): compares with what the open turn has recorded so far.
    """

    def __init__(self, match: MatchState, seed: bytes | None, logged: Sequence[Fact]) -> None:
        self._live = not logged
        # Live: the step's facts; those before `_turn_at` are of an earlier turn, and `_handed` has
        # those of this turn that were handed out with earlier steps.
        self._facts: list[Fact] = []
        self._handed: list[Fact] = []
        # Rebuilding: the log and how far it has been compared.
        self._rebuilding = bool(logged)
        self.logged = logged
        self.cursor = 0
        # Where the turn's facts begin, in the step or in the log.
        self._turn_at = 0
        self.first_index = match.fact_count
        self._match_id = match.match_id
        self._entropies = tuple(player.entropy for player in match.players)
        self._prefixes: dict[str, bytes] = {}
        self.seed = seed
        self.script: Callable[[str, int, int], tuple[int, ...]] | None = None
        # The match before the turn's first fact (or before its setting up), how many facts there
        # were then, and the table if that lies apart.
        self._base = match
        self._base_facts = match.fact_count
        self._base_table = match.table
        self.splices: list[Splice] = []
        """Where actions were taken in the turn."""
        self.moments = 0
        """How many moments the turn has had at which an action may fall."""
        self._moment_at = -1
        self._past: Sequence[Fact] | None = None
        self._at = 0
        self._stop = (0, 0)
        self._at_stop: Callable[[], None] = _nothing

    # -- what the table calls ----------------------------------------------------------------------

    def accept(self, fact: Fact) -> None:
        """Live: append; rebuilding: must equal the logged fact."""
        if self._live:
            facts = self._facts
            facts.append(fact)
            assert len(facts) <= FACTS_PER_COMMIT_MAX, "too many facts for one commit"
        elif self._past is not None:
            self._repeated(fact)
        elif self.next_logged() != fact:
            raise self.mismatch(fact)
        else:
            self.cursor += 1

    def chance(self, domain: str, number: int, bound: int, count: int) -> tuple[int, ...]:
        """Values of the draw: live from the seed, rebuilding from the log."""
        if not self._live:
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

    def turn_begins(self, match: MatchState, table: GameState) -> None:
        """The next fact is the first of a turn; match and table are the state before it."""
        if self._past is None:
            self._base_facts += self.position
            self._base, self._base_table = match, table
            self._handed = []
            self._turn_at = self.cursor if self._rebuilding else len(self._facts)
            self.moments, self._moment_at = 0, -1
            self.splices = []

    def moment(self) -> None:
        """Here an action may fall; what lies before is not looked at again because of it."""
        self.moments += 1
        self._moment_at = self.position
        if self._past is not None and self._stop[1] == self.moments:
            self._at_stop()

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

    def hand_out(self) -> tuple[Fact, ...]:
        """The facts of the step that ends here."""
        facts = self._facts
        if not facts:
            return ()
        self._facts = []
        if self._turn_at:
            self._handed = facts[self._turn_at :]
            self._turn_at = 0
        else:
            self._handed += facts
        return tuple(facts)

    def go_live(self) -> None:
        """The log has been read to its end."""
        self._handed = list(self.logged[self._turn_at :])
        self._turn_at = 0
        self._rebuilding, self._live = False, True

    # -- running the turn once more ----------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many facts of the turn have been recorded, or repeated."""
        if self._live:
            return len(self._handed) + len(self._facts) - self._turn_at
        return self.cursor - self._turn_at if self._past is None else self._at

    @property
    def turn(self) -> Sequence[Fact]:
        """The facts of the turn so far; while repeating, those that have been repeated."""
        if self._past is not None:
            return self._past[: self._at]
        if self._rebuilding:
            return self.logged[self._turn_at : self.cursor]
        return [*self._handed, *self._facts[self._turn_at :]]

    @property
    def is_repeating(self) -> bool:
        """Does what is recorded now lie in the past?"""
        return self._past is not None

    @property
    def base(self) -> MatchState:
        """The match before the turn's first fact, or before its setting up."""
        return msgspec.structs.replace(
            self._base, table=self._base_table, fact_count=self._base_facts
        )

    def repeat(self, splice: Splice, at_stop: Callable[[], None]) -> None:
        """From now on facts are compared with those of the turn so far; where the action falls
        `at_stop` is called, which says where to stop next (`stop_at`) or that all has been
        repeated (`go_on`).
        """
        self._past, self._at, self._live = self.turn, 0, False
        self.moments, self._moment_at = 0, -1
        self.stop_at(splice, at_stop)

    def stop_at(self, splice: Splice, at_stop: Callable[[], None]) -> None:
        """Stop there next."""
        self._stop, self._at_stop = (splice.at, splice.moment), at_stop

    def go_on(self) -> None:
        """What comes now is new."""
        assert self._past is not None
        assert self._at == len(self._past), "not everything has been repeated"
        self._past, self._live = None, not self._rebuilding

    def next_past(self) -> Fact:
        """The fact that must be repeated next."""
        assert self._past is not None
        return self._past[self._at]

    def count(self, seat: Seat, *kinds: type[_OfSeat]) -> int:
        """How many facts of these kinds the turn has of a seat so far."""
        return sum([isinstance(fact, kinds) and fact.seat == seat for fact in self.turn])

    def place(self, asked_at: int, group: tuple[Prompt, ...], answers: _Answers) -> None:
        """Say where an action falls while the group is open, whose questions ended with fact
        `asked_at` of the turn. An earlier action that fell there becomes part of the new one.
        """
        at, turn = asked_at, self.turn
        # Not back over a moment: answers that an earlier action left complete count before it.
        while at > max(self._moment_at, 0) and isinstance(turn[at - 1], _QUESTIONS):
            at -= 1
        moment = self.moments if self._moment_at == at else 0
        if self.splices and (at, self.moments) == self.splices[-1][2:4]:
            at, moment = self.splices.pop()[:2]
        secret = isinstance(turn[asked_at - 1], PromptedInSecret)
        self.splices.append(Splice(at, moment, len(turn), 0, group, dict(answers), secret))

    def _expected(self) -> Fact | None:
        past = self._past
        return past[self._at] if past is not None and self._at < len(past) else None

    def _differs(self, got: Fact) -> RebuildMismatch:
        if self._past is None:
            return self.mismatch(got)
        return RebuildMismatch(self._base_facts + self._at, self._expected(), got)

    def _repeated(self, fact: Fact) -> None:
        if self._expected() != fact:
            raise self._differs(fact)
        self._at += 1
        if self._stop == (self._at, 0):
            self._at_stop()


def _nothing() -> None:
    """Nothing is being repeated."""
