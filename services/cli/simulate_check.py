"""What must hold in every match: looked at after every step, and once more at its end."""

from collections.abc import Sequence
from typing import Final

from engine import (
    Fact,
    Prompt,
    Session,
    Step,
    check_answer,
    empty_state,
    find_game,
    fold,
    state_hash,
)
from services.cli.simulate_kings import KingsLedger
from services.cli.simulate_law import LawBroken
from services.cli.simulate_plan import Plan

# Rebuilding runs the open turn again, so only some questions are taken: one of so many.
_REBUILD_ONE_IN: Final = 8


class Checks:
    """Follows one match. Every method raises LawBroken, or whatever else went wrong."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._game = find_game(plan.game)
        self._seed = plan.chance_seed(number)
        self._dice = plan.dice(number, "checks")
        self._facts: list[Fact] = []
        self._folded = empty_state()
        # The state before the open turn's first fact, and where that fact is.
        self._before_turn = empty_state()
        self._turn_at = 0
        self._ledger = KingsLedger()

    def after(self, session: Session, step: Step) -> None:
        """Take over a step's facts; look at the state and the open questions."""
        self._take(step.facts)
        if self._folded != session.state:
            raise LawBroken("the fold of the facts is not the live state")
        if session.facts != len(self._facts):
            raise LawBroken(f"the session counts {session.facts} facts of {len(self._facts)}")
        self._ledger.compare(self._folded)
        for prompt in session.waiting:
            _look_at(prompt)
        if self._turn_at and session.waiting and self._dice.randrange(_REBUILD_ONE_IN) == 0:
            self._rebuild(session)

    def _take(self, facts: Sequence[Fact]) -> None:
        start = 0
        for index, fact in enumerate(facts):
            if type(fact) is self._game.checkpoint:
                self._folded = fold(facts[start:index], self._folded)
                self._before_turn, self._turn_at = self._folded, len(self._facts)
                # A step may hold more than a turn's beginning: standing answers go on with it.
                self._ledger.between_turns(self._folded)
                start = index
            self._ledger.book(fact)
            self._facts.append(fact)
        self._folded = fold(facts[start:], self._folded)

    def _rebuild(self, session: Session) -> None:
        turn = self._facts[self._turn_at :]
        again = Session.resume(self._before_turn, turn, seed=self._seed, game=self._game)
        if again.state != session.state:
            raise LawBroken("the rebuilt state is not the live one")
        if again.waiting != session.waiting:
            raise LawBroken("the rebuilt session asks something else")

    def at_end(self, session: Session) -> None:
        """The match is over: nothing is left open, and the log alone tells the same story."""
        state = session.state
        if state.status != "finished" or state.prompts:
            raise LawBroken(f"the match stopped while {state.status}, with {state.prompts} open")
        # Private, but the only place that knows: a rule that waits without a question would hang.
        if session._rule is not None:
            raise LawBroken("a rule is still open after the end")
        if state.seed != self._seed:
            raise LawBroken("the seed was not revealed")
        Session.verify_rules(self._facts)
        whole = Session.rebuild(self._facts, seed=None)
        if whole.state != state or whole.waiting:
            raise LawBroken("the match rebuilt from its log is not the live one")
        if state_hash(fold(self._facts)) != state_hash(state):
            raise LawBroken("the hash of the fold is not that of the live state")


def _look_at(prompt: Prompt) -> None:
    """A question must have a legal answer, and a legal default for who lets its time run out."""
    where = f"question {prompt.id} ({prompt.kind})"
    low, high = prompt.low, prompt.high
    match prompt.form:
        case "select":
            possible = 0 <= low <= high <= len(prompt.options)
        case "number":
            possible = low <= high
        case "allocate":
            fits = len(prompt.limits) == len(prompt.options)
            possible = fits and 0 <= low <= high <= sum(prompt.limits)
    if not possible:
        raise LawBroken(f"{where} has no legal answer: {prompt}")
    if check_answer(prompt, prompt.default) is not None:
        raise LawBroken(f"the default of {where} is not legal: {prompt}")
    ids = [option.id for option in prompt.options]
    if len(frozenset(ids)) != len(ids):
        raise LawBroken(f"{where} offers something twice: {prompt}")
