"""Plays scenarios: lays the position, follows the script, checks the expectations.

While it plays, the laws of scenario_laws are checked after every answer and action, so each
scenario tests them too.
"""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from engine import (
    Answer,
    Fact,
    GameState,
    MatchEnded,
    MatchStarted,
    MatchState,
    Prompt,
    PromptId,
    Refusal,
    Seat,
    Session,
    Step,
    describe_fact,
    fold,
)
from engine.core.position import LETTERS, BadPosition, letter_of
from services.cli.scenario_actions import action_of, check_may_use, refused_action
from services.cli.scenario_expect import differences, missing_fact, unwanted_fact
from services.cli.scenario_laws import check_rebuilt, check_whole_log
from services.cli.scenario_model import (
    NOTHING,
    Action,
    Asked,
    Draws,
    EndTurn,
    Expect,
    MayUse,
    Refused,
    Reply,
    Scenario,
    TurnOf,
    read_scenarios,
)
from services.cli.scenario_text import Entries, Part, ScenarioError, near, words_of
from services.cli.scenario_words import answer_of, check_offered, letters_of, offers_of, shown

_SEED: Final = b"scenario".ljust(32, b"\0")
_DEFAULTS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario went. message: why it failed, with the line; "" when it passed."""

    path: Path
    name: str
    title: str
    number: str
    line: int
    message: str
    story: tuple[str, ...]
    facts: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Did it pass?"""
        return not self.message


def run_file(path: Path) -> list[Outcome]:
    """Play every scenario of a file; a file that cannot be read as scenarios is one failure."""
    try:
        scenarios = read_scenarios(path)
    except ScenarioError as error:
        name = path.with_suffix("").name
        return [Outcome(path, name, "", "", error.line, error.message, (), 0, 0.0)]
    return [run_scenario(each) for each in scenarios]


def run_scenario(scenario: Scenario) -> Outcome:
    """Play one scenario."""
    started = perf_counter()
    play = _Play(scenario)
    line, message = scenario.line, ""
    try:
        play.run()
    except ScenarioError as error:
        line, message = error.line, error.message
    except Exception as error:  # the rules broke: an error of the program, shown as such
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = play.line
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        message = f"the rules broke here: {type(error).__name__} {error} ({where})"
    return Outcome(
        path=scenario.path,
        name=scenario.name,
        title=scenario.title,
        number=scenario.number,
        line=line,
        message=message,
        story=play.story(),
        facts=len(play.facts),
        seconds=perf_counter() - started,
    )


class _Play:
    """One scenario being played.

    The script sees the match up to its horizon: the end of the turn it is in. What the rules have
    already done in the turn after that (its first roll) is only seen after a `turn` step.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._steps = scenario.steps
        self._at = -1
        self.line = scenario.line
        self.facts: list[Fact] = []
        self._laid = 0
        self._turns = 0
        self._used: set[int] = set()
        self._unwritten_turns: set[int] = set()
        self._prepared = {
            domain: list(words)
            for domain, words in scenario.positions.prepared(scenario.table).items()
        }
        self._mark = 0
        self._asked_at = -1
        self._winner_expected = False

    # -- the whole ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Raises ScenarioError."""
        self._session = self._lay()
        self._pass_over_defaults()
        for index, step in enumerate(self._steps):
            if not isinstance(step, Draws | Expect):
                self._pass_over_defaults()
            self._at = index
            self.line = step.line
            match step:
                case Reply():
                    self._reply(step)
                case Action():
                    self._use(step)
                case Refused():
                    self._refused(step)
                case Asked():
                    self._asked(step)
                case MayUse():
                    self._may_use(step)
                case Expect():
                    self._expect(step)
                case TurnOf():
                    self._turn_of(step)
                case EndTurn():
                    self._need_end_of_turn(step.line, "the turn is not over")
                case Draws():
                    pass  # taken when chance is asked for it
        self._check_nothing_left()
        check_whole_log(self._session, self.facts, laid=self._laid, seed=_SEED, line=self.line)

    def story(self) -> tuple[str, ...]:
        """What happened, one line each."""
        if not self._laid:
            return ()
        match = fold(self.facts)
        lines = [
            describe_fact(match, fact, "en") for fact in self.facts[self._laid : self._horizon]
        ]
        return tuple(line for line in lines if line)

    def _lay(self) -> Session:
        scenario = self._scenario
        session, step = Session.create(
            scenario.game,
            match_id="scenario",
            host="arbiter",
            seats=len(scenario.players),
            options=scenario.options,
            preset=scenario.preset,
            seed=_SEED,
        )
        self.facts += step.facts
        for index in range(len(scenario.players)):
            letter = LETTERS[index]
            self.facts += session.join(letter, letter, letter.encode() * 16).facts
        self.facts.append(MatchStarted())
        if scenario.turn is not None:
            self.facts += self._position(scenario.turn, session.state)
        self._laid = self._mark = len(self.facts)
        session, step = Session.lay(self.facts, seed=_SEED, game=scenario.game, chance=self._chance)
        self._session = session
        self._take(step)
        return session

    def _position(self, turn: Seat, lobby: MatchState) -> Sequence[Fact]:
        scenario = self._scenario
        options = {each.id: each.value for each in lobby.options}
        try:
            return scenario.positions.lay(
                scenario.players, scenario.table, turn=turn, options=options
            )
        except BadPosition as error:
            line = scenario.reader.line_of(error.path, scenario.line)
            hint = near(error.message.split("'")[1], error.legal) if error.legal else ""
            raise ScenarioError(line, f"{error.message}{hint}") from error

    def _take(self, step: Step) -> None:
        self.facts += step.facts
        check_rebuilt(self._session, self.facts, seed=_SEED, line=self.line)

    # -- where the script is -----------------------------------------------------------------------

    @property
    def _horizon(self) -> int:
        """How many facts the script sees."""
        checkpoint = self._scenario.game.checkpoint
        turns = -1
        for index in range(self._laid, len(self.facts)):
            turns += type(self.facts[index]) is checkpoint
            if turns > self._turns:
                return index
        return len(self.facts)

    @property
    def _is_turn_over(self) -> bool:
        return self._horizon < len(self.facts) or self._is_over

    @property
    def _is_over(self) -> bool:
        return isinstance(self.facts[-1], MatchEnded)

    @property
    def _open(self) -> tuple[Prompt, ...]:
        return () if self._is_turn_over else self._session.waiting

    def _view(self) -> MatchState:
        horizon = self._horizon
        return self._session.state if horizon == len(self.facts) else fold(self.facts[:horizon])

    # -- answers -----------------------------------------------------------------------------------

    def _reply(self, step: Reply) -> None:
        prompt = self._reach(step)
        self._need_written_turn(step.line)
        answer = answer_of(self._session.state, prompt, step.answer)
        self._mark = len(self.facts)
        try:
            self._answer(prompt, answer)
        except Refusal as refusal:
            raise ScenarioError(step.line, f"{step.kind.text}: {refusal.message()}") from refusal
        self._pass_over_defaults()

    def _need_written_turn(self, line: int) -> None:
        if self._is_unwritten:
            raise ScenarioError(
                line, "say what chance brought in this turn: `- roll: …` after `- turn: …`"
            )

    def _use(self, step: Action) -> None:
        action = action_of(self._view_of_open(step.line), step, self._situation())
        self._need_written_turn(step.line)
        self._mark = len(self.facts)
        self._take(self._session.take_action(step.seat, action))
        self._pass_over_defaults()

    def _view_of_open(self, line: int) -> MatchState:
        """The match while it waits: only then cards may be used."""
        if not self._open:
            raise ScenarioError(line, f"nobody can use a card here: {self._situation()}")
        return self._session.state

    def _answer(self, prompt: Prompt, answer: Answer) -> None:
        self._take(self._session.answer(prompt.id, prompt.seat, answer))

    def _reach(self, step: Reply) -> Prompt:
        """The question that is answered."""
        for prompt in self._open:
            if prompt.seat == step.seat and prompt.kind == step.kind.text:
                return prompt
        who = letter_of(step.seat)
        raise ScenarioError(
            step.line, f"{who} is not asked {step.kind.text!r} here: {self._situation()}"
        )

    def _pass_over_defaults(self) -> None:
        """Uninteresting questions get their default, unless the script comes to them next."""
        for _ in range(_DEFAULTS_MAX):
            prompt = next((each for each in self._open if self._is_uninteresting(each)), None)
            if prompt is None:
                return
            self._answer(prompt, prompt.default)
        raise ScenarioError(self.line, f"no end of default answers: {self._situation()}")

    def _is_uninteresting(self, prompt: Prompt) -> bool:
        if prompt.kind not in self._scenario.defaults:
            return False
        for step in self._steps[self._at + 1 :]:
            match step:
                case TurnOf() | EndTurn():
                    return True
                case Draws() | Expect():
                    continue
                case _ if self._is_unwritten:
                    return False
                case Reply():
                    return (step.seat, step.kind.text) != (prompt.seat, prompt.kind)
                case Action() | MayUse() | Refused(what=Action()):
                    return False  # it happens now, while this is asked
                case Refused(what=Reply(kind=kind)):
                    return kind.text != prompt.kind
                case Asked():
                    asked = [(seat, kind.text) for seat, kind, _ in step.questions]
                    return (prompt.seat, prompt.kind) not in asked
        return not self._is_unwritten

    @property
    def _is_unwritten(self) -> bool:
        """Has chance brought something in this turn that nobody wrote down?"""
        return self._turns in self._unwritten_turns

    def _situation(self) -> str:
        """What is going on instead of what the script wants, and what to do about it."""
        if self._is_over:
            ended = self.facts[-1]
            assert isinstance(ended, MatchEnded)
            return f"the match is over ({ended.reason}, winner: {letters_of(ended.winners)})"
        if self._is_turn_over:
            now = letter_of(self._session.state.table.active)  # type: ignore[union-attr]  # laid
            return f"the turn is over; write `- turn: {now}` if the script goes on"
        match = self._session.state
        if not self._open:
            return f"the rules wait, but nobody is asked (after {self.facts[-1]!r})"
        asked = [
            f"{letter_of(prompt.seat)} is asked {prompt.kind}, offered: "
            f"{shown(prompt, offers_of(match, prompt))}"
            for prompt in self._open
        ]
        defaults = self._scenario.defaults
        kinds = dict.fromkeys(each.kind for each in self._open if each.kind not in defaults)
        advice = f"answer it, or add `{', '.join(kinds)}` to `defaults`"
        if not kinds:
            # After an action nothing is passed over before the script goes on.
            advice = "go on with `- end: turn`, or say what is `asked` next"
        return f"{'; '.join(asked)} — {advice}"

    def _need_end_of_turn(self, line: int, failure: str) -> None:
        if not self._is_turn_over:
            raise ScenarioError(line, f"{failure}: {self._situation()}")

    def _refused(self, step: Refused) -> None:
        before = self._session.state
        try:
            what = self._try(step)
        except Refusal as refusal:
            if refusal.reason != step.reason.text:
                raise ScenarioError(
                    step.reason.line, f"refused for another reason: {refusal}"
                ) from refusal
        else:
            raise ScenarioError(step.line, f"{what} is legal: it was taken")
        if self._session.state != before:
            raise ScenarioError(step.line, "what was refused changed the match")

    def _try(self, step: Refused) -> str:
        """Do what should be refused; says what it was."""
        who = letter_of(step.what.seat)
        if isinstance(step.what, Action):
            match = self._session.state if self._is_over else self._view_of_open(step.line)
            self._session.take_action(step.what.seat, refused_action(match, step.what))
            return f"that {who} uses {step.what.card.text}"
        reply, kind = step.what, step.what.kind.text
        if step.reason.text == "ILLEGAL_ANSWER":
            prompt: Prompt | None = self._reach(reply)
        else:
            prompt = next((each for each in self._open if each.kind == kind), None)
        if prompt is None:
            prompt_id, answer = self._closed(kind), Answer()
        else:
            prompt_id = prompt.id
            answer = answer_of(self._session.state, prompt, reply.answer, raw=True)
        self._session.answer(prompt_id, reply.seat, answer)
        return f"the answer of {who} to {kind}"

    def _closed(self, kind: str) -> PromptId:
        """The last question of a kind that was asked and is no longer open."""
        asked = [fact.prompt for fact in self.facts if hasattr(fact, "prompt")]
        ids = [each.id for each in asked if isinstance(each, Prompt) and each.kind == kind]
        return ids[-1] if ids else PromptId("p0")

    # -- expectations ------------------------------------------------------------------------------

    def _asked(self, step: Asked) -> None:
        wanted = sorted((seat, kind.text) for seat, kind, _ in step.questions)
        there = sorted((prompt.seat, prompt.kind) for prompt in self._open)
        if there != wanted:
            words = [f"{letter_of(seat)} to be asked {kind}" for seat, kind in wanted]
            expected = " and ".join(words) or "nobody to be asked"
            raise ScenarioError(step.line, f"expected {expected}, but {self._situation()}")
        for seat, kind, offered in step.questions:
            if offered is not None:
                prompt = next(p for p in self._open if (p.seat, p.kind) == (seat, kind.text))
                check_offered(self._session.state, prompt, offered)
        self._asked_at = len(self.facts)

    def _may_use(self, step: MayUse) -> None:
        over = self._is_over and self._horizon == len(self.facts)
        check_may_use(self._session.state if over else self._view_of_open(step.line), step)

    def _expect(self, step: Expect) -> None:
        view = self._view()
        table = view.table
        assert table is not None
        players, middle = self._scenario.positions.look(table)
        since = self.facts[self._mark : self._horizon]
        wrong: list[tuple[int, str]] = []
        for key, part in step.entries:
            if key.text == "winner":
                wrong += self._check_winner(part)
            elif key.text in ("happened", "not_happened"):
                wrong += self._check_facts(since, part, wanted=key.text == "happened")
            elif len(key.text) == 1:
                seat = LETTERS.index(key.text)
                wrong += differences(players[seat], part, key.text)
            else:
                wrong += differences(middle, Entries(key.line, ((key, part),)), "the table")
        if wrong:
            asked = f" — meanwhile {self._situation()}" if self._open else ""
            raise ScenarioError(wrong[0][0], "; ".join(each for _, each in wrong) + asked)

    def _check_facts(
        self, since: Sequence[Fact], part: Part, *, wanted: bool
    ) -> list[tuple[int, str]]:
        game = self._scenario.game
        pattern = (missing_fact if wanted else unwanted_fact)(since, part, game)
        if pattern is None:
            return []
        if not wanted:
            return [(pattern.line, f"it happened: {pattern}")]
        match = self._view()
        story = [describe_fact(match, fact, "en") for fact in since]
        told = " / ".join(line for line in story if line) or "nothing"
        return [(pattern.line, f"it did not happen (in this order): {pattern}. What did: {told}")]

    def _check_winner(self, part: Part) -> list[tuple[int, str]]:
        self._winner_expected = True
        if not self._is_over or self._horizon < len(self.facts):
            return [(part.line, "the match is not over")]
        ended = self.facts[-1]
        assert isinstance(ended, MatchEnded)
        words = [word.text for word in words_of(part, "winner") if word.text not in NOTHING]
        actual = [letter_of(seat) for seat in ended.winners]
        if sorted(words) == sorted(actual):
            return []
        return [(part.line, f"the winner is {letters_of(ended.winners)} ({ended.reason})")]

    def _turn_of(self, step: TurnOf) -> None:
        self._need_end_of_turn(step.line, "the turn before is not over")
        if self._is_over:
            raise ScenarioError(step.line, f"there is no other turn: {self._situation()}")
        self._mark = self._horizon
        began = self.facts[self._horizon]
        self._turns += 1
        seat, cause = Seat(getattr(began, "seat", 0)), getattr(began, "cause", "")
        if (seat, cause) != (step.seat, step.because):
            because = f" (because: {cause})" if cause else ""
            raise ScenarioError(step.line, f"it is the turn of {letter_of(seat)}{because}")
        self._pass_over_defaults()

    # -- chance ------------------------------------------------------------------------------------

    def _chance(self, state: GameState, domain: str, bound: int, count: int) -> tuple[int, ...]:
        turn = max(state.turn - 1, 0)  # 0 while the table is set up
        index = self._next_draws(domain, turn)
        if index is not None:
            draws = self._steps[index]
            assert isinstance(draws, Draws)
            self._used.add(index)
            return self._values(state, domain, count, draws.words, draws.line)
        prepared = self._prepared.get(domain, [])
        if len(prepared) >= count:
            words = tuple(prepared[:count])
            del prepared[:count]
            return self._values(state, domain, count, words, self.line)
        if turn > self._turns:
            # The turn after the one the script is in: its first roll matters to nobody, unless the
            # script goes on with answers in that turn (which _reply refuses).
            self._unwritten_turns.add(turn)
            return tuple(number // 2 % bound for number in range(count))
        name = self._name_of(domain)
        raise ScenarioError(
            self.line, f"chance decides here ({count} × {domain}): write `- {name}: …` after this"
        )

    def _name_of(self, domain: str) -> str:
        scripts = self._scenario.positions.scripts
        return next((name for name, each in scripts.items() if each == domain), domain)

    def _next_draws(self, domain: str, turn: int) -> int | None:
        """The next written draws, unless an answer or action stands before them."""
        scripts = self._scenario.positions.scripts
        for index, step in enumerate(self._steps):
            if isinstance(step, Reply | Action | Refused) and index > self._at:
                return None
            if (
                isinstance(step, Draws)
                and index not in self._used
                and scripts[step.script] == domain
                and step.turn == turn
            ):
                return index
        return None

    def _values(
        self, state: GameState, domain: str, count: int, words: Sequence[str], line: int
    ) -> tuple[int, ...]:
        if len(words) != count:
            raise ScenarioError(
                line, f"{count} are drawn here ({domain}), but {len(words)} are written"
            )
        try:
            return self._scenario.positions.values(state, domain, words)
        except BadPosition as error:
            word = words[int(error.path[0])]
            raise ScenarioError(line, f"{error.message}{near(word, error.legal)}") from error

    # -- the end -----------------------------------------------------------------------------------

    def _check_nothing_left(self) -> None:
        for index, step in enumerate(self._steps):
            if isinstance(step, Draws) and index not in self._used:
                raise ScenarioError(
                    step.line, f"nothing was drawn for this: {step.script} {' '.join(step.words)}"
                )
        last = self._steps[-1].line if self._steps else self._scenario.line
        if self._open and self._asked_at != len(self.facts) and not self._is_unwritten:
            raise ScenarioError(
                last,
                f"the scenario stops while {self._situation()}; or end with `- asked: …` or "
                "`- end: turn`",
            )
        if self._is_over and self._horizon == len(self.facts) and not self._winner_expected:
            raise ScenarioError(last, f"{self._situation()}: expect it (`winner: …`)")


__all__ = ["Outcome", "run_file", "run_scenario"]
