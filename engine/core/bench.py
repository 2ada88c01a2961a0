"""A table with a given position, scripted chance and scripted answers: for tests and scenario
files.

No log, no lobby, no fairness. A rule is run directly; it stops at each question.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from engine.core.game import Game, MatchOver
from engine.core.prompts import Answer, Prompt, PromptId, check_answer
from engine.core.state import GameState, MatchState
from engine.core.table import Table
from engine.core.visibility import Fact

S = TypeVar("S", bound=GameState)

Chance = Callable[[str, int, int], tuple[int, ...]]
"""(domain, bound, count) to values."""

_Rule = Coroutine[tuple[Prompt, ...], tuple[Answer, ...], None]


class _Recorder:
    def __init__(self, chance: Chance) -> None:
        self.facts: list[Fact] = []
        self._chance = chance

    def accept(self, fact: Fact) -> None:
        self.facts.append(fact)

    def chance(self, domain: str, number: int, bound: int, count: int) -> tuple[int, ...]:
        del number  # scripts go by the order of draws
        return self._chance(domain, bound, count)

    def turn_begins(self, match: MatchState, table: GameState) -> None:
        del match, table  # a bench never goes back

    def moment(self) -> None:
        """Nobody acts at any time on a bench."""


class Bench(Generic[S]):
    """Runs one rule at a time on a table that starts in the given state."""

    def __init__(self, game: Game[S], match: MatchState, chance: Chance) -> None:
        self._recorder = _Recorder(chance)
        self.table: Table[S] = Table(game, match, self._recorder)
        self.over: MatchOver | None = None
        self._rule: _Rule | None = None
        self._group: tuple[Prompt, ...] = ()
        self._answers: dict[PromptId, Answer] = {}

    @property
    def facts(self) -> list[Fact]:
        """Everything recorded so far."""
        return self._recorder.facts

    @property
    def waiting(self) -> tuple[Prompt, ...]:
        """Open questions of the running rule."""
        return tuple(prompt for prompt in self._group if prompt.id not in self._answers)

    @property
    def is_running(self) -> bool:
        """Has the rule neither come to its end nor ended the match?"""
        return self._rule is not None

    def run(self, rule: Callable[[Table[S]], Coroutine[object, object, None]]) -> None:
        """Start a rule and run it to its first question, or to its end."""
        assert self._rule is None, "a rule is still running"
        self._rule = rule(self.table)  # type: ignore[assignment]  # any coroutine of rules yields prompts
        self._advance(None)

    def answer(self, prompt: Prompt, answer: Answer) -> None:
        """Answer an open question. Raises Refusal when the answer is not legal."""
        refusal = check_answer(prompt, answer)
        if refusal is not None:
            raise refusal
        self._answers[prompt.id] = answer
        if not self.waiting:
            self._advance(tuple(self._answers[each.id] for each in self._group))

    def _advance(self, answers: tuple[Answer, ...] | None) -> None:
        assert self._rule is not None
        self._answers = {}
        try:
            self._group = self._rule.send(answers)  # type: ignore[arg-type]  # None starts a coroutine
        except StopIteration:
            self._group, self._rule = (), None
        except MatchOver as over:
            self._group, self._rule, self.over = (), None, over
        assert self._group or self._rule is None, "the rule waits, but nobody is asked"
