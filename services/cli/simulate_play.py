"""Playing one simulated match directly on the engine, with bots that see what their seat may."""

import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine import MatchState, Prompt, Seat, Session, Step, empty_state, state_hash
from services.cli.simulate_check import Checks
from services.cli.simulate_kings import purchase_of
from services.cli.simulate_law import LawBroken
from services.cli.simulate_plan import Plan
from services.client.bots import Bot, make_bot, random_answer
from services.common.viewfold import MatchFold

# Ten times as many as the longest match that bots have played so far.
PROMPTS_PER_MATCH_MAX: Final = 50_000
# With mixed options seats also leave standing answers: in this share of the matches, at one
# question of so many; the others of those times they ask to be asked again.
_MATCHES_WITH_STANDING: Final = 0.3
_STANDING_ONE_IN: Final = 40
_STANDING_KEPT: Final = 0.7
_NOTHING_SEEN: Final = empty_state()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A match that was played to its end. held: cards in front of the winners, one each."""

    number: int
    kinds: tuple[str, ...]
    winners: tuple[int, ...]
    reason: str
    turns: int
    prompts: int
    facts: int
    state_hash: bytes
    bought: tuple[str, ...]
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A match in which something was wrong."""

    number: int
    error: str
    trace: str


def play_numbered(plan: Plan, number: int) -> Outcome | Failure:
    """Play match `number`. Whatever goes wrong is a Failure, except being told to stop."""
    try:
        with warnings.catch_warnings(record=plan.check) as caught:
            outcome = _Play(plan, number).to_the_end()
        # A rule that was begun and thrown away unfinished warns when it is collected.
        if caught:
            raise LawBroken(f"a rule was left open: {caught[0].message}")
        return outcome
    except Exception as error:
        # A simulation is there to find what nobody thought of: any kind of exception counts.
        text = str(error) or repr(error)
        return Failure(number, f"{type(error).__name__}: {text}", traceback.format_exc())


class _Play:
    """One match in play, its bots and its checks."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._number = number
        self._session, opening = plan.open(number)
        self._kinds = plan.kinds(number, self._session.state.seats)
        self._bots: Mapping[Seat, Bot] = {
            Seat(seat): make_bot(kind, plan.game, f"{plan.seed}/{number}/{seat}")
            for seat, kind in enumerate(self._kinds, start=1)
        }
        self._order = plan.dice(number, "order")
        standing = plan.dice(number, "standing")
        is_mixed = plan.mixed_options and standing.random() < _MATCHES_WITH_STANDING
        self._standing = standing if is_mixed else None
        seeing = [seat for seat, kind in enumerate(self._kinds, start=1) if kind != "random"]
        self._views = MatchFold(seeing) if seeing else None
        self._checks = Checks(plan, number) if plan.check else None
        self._bought: list[str] = []
        self._prompts = 0
        self._take(opening)

    def to_the_end(self) -> Outcome:
        self._take(self._session.start())
        while self._session.waiting:
            self._prompts += 1
            if self._prompts > PROMPTS_PER_MATCH_MAX:
                raise LawBroken(f"no end after {PROMPTS_PER_MATCH_MAX} questions")
            if self._session.actions and self._acts():
                continue
            prompt = self._next_prompt()
            if self._standing is not None and self._leaves_standing_answer(prompt):
                continue
            answer = self._bots[prompt.seat].answer(prompt, self._seen_by(prompt.seat))
            self._take(self._session.answer(prompt.id, prompt.seat, answer))
        if self._checks is not None:
            self._checks.at_end(self._session)
        return self._outcome(self._session)

    def _acts(self) -> bool:
        """A seat does what it may do at any time, whoever is asked."""
        for each in self._session.actions:
            bot = self._bots[each.seat]
            action = bot.act(each.seat, each.actions, self._seen_by(each.seat))
            if action is not None:
                self._take(self._session.take_action(each.seat, action))
                return True
        return False

    def _next_prompt(self) -> Prompt:
        """Questions that are open at the same time are answered in any order."""
        waiting = self._session.waiting
        return waiting[0] if len(waiting) == 1 else self._order.choice(waiting)

    def _leaves_standing_answer(self, prompt: Prompt) -> bool:
        """Now and then a seat says how it wants such questions answered, or to be asked again."""
        dice = self._standing
        assert dice is not None
        if dice.randrange(_STANDING_ONE_IN):
            return False
        answer = random_answer(prompt, dice) if dice.random() < _STANDING_KEPT else None
        below = dice.choice((0, 3, 6))
        step = self._session.set_standing_answer(prompt.seat, prompt.kind, answer, below=below)
        self._take(step)
        return True

    def _seen_by(self, seat: Seat) -> MatchState:
        if self._views is None or self._kinds[seat - 1] == "random":
            return _NOTHING_SEEN
        return self._views.state(seat)

    def _take(self, step: Step) -> None:
        for fact in step.facts:
            card = purchase_of(fact)
            if card:
                self._bought.append(card)
        if self._views is not None:
            self._views.apply(step.facts, final=False)
        if self._checks is not None:
            self._checks.after(self._session, step)

    def _outcome(self, session: Session) -> Outcome:
        state = session.state
        table = state.table
        holdings = () if table is None else table.holdings
        return Outcome(
            number=self._number,
            kinds=self._kinds,
            winners=tuple(state.winners),
            reason=state.end_reason,
            turns=0 if table is None else table.turn,
            prompts=self._prompts,
            facts=session.facts,
            state_hash=state_hash(state),
            bought=tuple(self._bought),
            held=tuple(sorted({each.card for each in holdings if each.seat in state.winners})),
        )
