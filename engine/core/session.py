"""A match that is being played: accepts commands, runs the rules to the next question, hands out
facts.

A session is thrown away after any exception but a Refusal, and rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from engine.core.catalogue import find_game
from engine.core.chance import commitment
from engine.core.facts import (
    ActionsOffered,
    ActionTaken,
    Answered,
    EntropyRevealed,
    MatchCreated,
    MatchEnded,
    MatchStarted,
    SeatTaken,
    SeedRevealed,
    StandingAnswerDropped,
    StandingAnswerSet,
)
from engine.core.game import AnyGame, MatchOver
from engine.core.lobby import ENTROPY_LENGTHS, check_reveal, check_reveals, unrevealed
from engine.core.prompts import Answer, Prompt, PromptId, SeatActions, StandingAnswer, check_answer
from engine.core.recorder import RebuildMismatch, Recorder
from engine.core.refusals import Refusal
from engine.core.standing import check_standing, standing_answer
from engine.core.state import GameState, MatchState, empty_state, evolve, fold
from engine.core.table import Table
from engine.core.visibility import Fact, Seat

STANDING_ANSWERS_PER_STEP_MAX: Final = 32
ACTIONS_PER_TURN_MAX: Final = 32
"""So many actions at any time one seat may take within a turn."""
_NAME_LENGTH_MAX: Final = 40
_COMMITMENT_LENGTH: Final = 32


class WrongSeed(ValueError):  # named for what is wrong
    """The seed is not the one that the match committed to."""


class UnknownRules(ValueError):
    """The match was begun under a newer revision of the rules than this software has."""


class Step(msgspec.Struct, frozen=True):
    """What one command did: append the facts atomically, then wait for the prompts.

    No prompts: the match is over, or still in its lobby.
    """

    facts: tuple[Fact, ...]
    waiting: tuple[Prompt, ...]


Chance = Callable[[GameState, str, int, int], tuple[int, ...]]
"""Scripted draws: (table, domain, bound, count) to values."""


_Running = Coroutine[tuple[Prompt, ...], tuple[Answer, ...], None]


class Session:
    """One match in play. See `create` for a new one and `rebuild` for one that is in a log."""

    def __init__(self, game: AnyGame, match: MatchState, seed: bytes | None) -> None:
        """Private: use `create` or `rebuild`."""
        if seed is not None and commitment(seed) != match.commitment:
            raise WrongSeed(f"the seed does not fit the commitment of match {match.match_id}")
        self.game = game
        self._seed = seed
        self._lobby = match
        self._counted = match.fact_count
        self._recorder = Recorder(match, seed, ())
        self._table: Table[GameState] | None = None
        self._rule: _Running | None = None
        self._group: tuple[Prompt, ...] = ()
        self._answers: dict[PromptId, Answer] = {}
        # How many facts of the turn there were when the open questions had been put.
        self._asked_at = 0
        # Answers to questions that may be put again just as they were.
        self._carried: Mapping[PromptId, Answer] = {}

    # -- what there is to see ----------------------------------------------------------------------

    @property
    def state(self) -> MatchState:
        """The fold of all facts so far."""
        if self._table is None:
            return self._lobby
        return msgspec.structs.replace(
            self._table.match, table=self._table.state, fact_count=self._counted
        )

    @property
    def _match(self) -> MatchState:
        return self._lobby if self._table is None else self._table.match

    @property
    def waiting(self) -> tuple[Prompt, ...]:
        """The open prompts."""
        return self._match.prompts

    @property
    def actions(self) -> tuple[SeatActions, ...]:
        """What the seats may do now, whoever is asked; see `take_action`."""
        return self._match.actions

    @property
    def facts(self) -> int:
        """How many facts the match has so far."""
        return self._counted

    # -- commands ----------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        game: AnyGame,
        *,
        match_id: str,
        host: str,
        seats: int,
        options: Mapping[str, str] | None = None,
        expansions: tuple[str, ...] = (),
        preset: str = "",
        seed: bytes,
        key_id: str = "",
        answer_timeout_s: int = 0,
    ) -> tuple[Session, Step]:
        """Open a lobby. Refusals: BAD_SEAT_COUNT, UNKNOWN_OPTION, BAD_OPTION_VALUE."""
        if not game.seats_low <= seats <= game.seats_high:
            legal = tuple(str(each) for each in range(game.seats_low, game.seats_high + 1))
            raise Refusal("BAD_SEAT_COUNT", "seats", detail=str(seats), legal=legal)
        for expansion in expansions:
            if expansion not in game.expansions:
                raise Refusal(
                    "UNKNOWN_OPTION", "expansions", detail=expansion, legal=game.expansions
                )
        fact = MatchCreated(
            match_id=match_id,
            game=game.id,
            revision=game.revision,
            expansions=tuple(sorted(frozenset(expansions))),
            options=game.resolve_options(preset, options or {}),
            seats=seats,
            host=host,
            commitment=commitment(seed),
            key_id=key_id,
            answer_timeout_s=answer_timeout_s,
        )
        session = cls(game, evolve(empty_state(), fact), seed)
        return session, Step((fact,), ())

    def join(
        self,
        player: str,
        name: str,
        entropy: bytes = b"",
        seat: Seat | None = None,
        *,
        entropy_commitment: bytes = b"",
    ) -> Step:
        """Take a seat (None: the first free one), with entropy, a commitment to it (`reveal` opens
        it later), or neither.

        Refusals: NOT_IN_LOBBY, BAD_NAME, BAD_ENTROPY, ALREADY_SEATED, MATCH_FULL, SEAT_TAKEN.
        """
        self._need_lobby()
        if not 1 <= len(name) <= _NAME_LENGTH_MAX or not name.isprintable() or not name.strip():
            raise Refusal("BAD_NAME", "name")
        if entropy and len(entropy) not in ENTROPY_LENGTHS:
            raise Refusal("BAD_ENTROPY", "entropy")
        if entropy_commitment and (entropy or len(entropy_commitment) != _COMMITMENT_LENGTH):
            raise Refusal("BAD_ENTROPY", "entropy_commitment")
        match = self._lobby
        if any(each.player == player for each in match.players):
            raise Refusal("ALREADY_SEATED")
        taken = [each.seat for each in match.players]
        free = [Seat(each) for each in range(1, match.seats + 1) if each not in taken]
        if not free:
            raise Refusal("MATCH_FULL")
        chosen = seat or free[0]
        if chosen not in free:
            raise Refusal("SEAT_TAKEN", "seat", legal=tuple(str(each) for each in free))
        fact = SeatTaken(
            seat=chosen,
            player=player,
            name=name,
            entropy=entropy,
            entropy_commitment=entropy_commitment,
        )
        return self._in_lobby(fact)

    def reveal(self, seat: Seat, entropy: bytes) -> Step:
        """Open the commitment that a seat brought when it joined; all seats must be taken.

        Earlier, who joins later could choose its entropy to suit this one. Refusals: NOT_IN_LOBBY,
        MATCH_FINISHED, ENTROPY_TOO_EARLY, NOTHING_TO_REVEAL, BAD_ENTROPY.
        """
        self._need_lobby()
        fact = EntropyRevealed(seat=seat, entropy=entropy)
        refusal = check_reveal(self._lobby, fact)
        if refusal is not None:
            raise refusal
        return self._in_lobby(fact)

    def start(self) -> Step:
        """Close the lobby and run to the first prompt.

        Refusals: NOT_IN_LOBBY, NOT_ENOUGH_PLAYERS, ENTROPY_MISSING.
        """
        self._need_lobby()
        if len(self._lobby.players) < self._lobby.seats:
            raise Refusal("NOT_ENOUGH_PLAYERS")
        missing = unrevealed(self._lobby)
        if missing:
            raise Refusal("ENTROPY_MISSING", detail=", ".join(str(seat) for seat in missing))
        first = self._in_lobby(MatchStarted())
        self._begin(self._lobby, ())
        step = self._advance(None)
        return Step(first.facts + step.facts, step.waiting)

    def _answer_standing(self, step: Step) -> Step:
        """Go on with the answers that seats left behind, a limited number of them per command."""
        for _ in range(STANDING_ANSWERS_PER_STEP_MAX):
            found = standing_answer(self.game, self.state) if self._match.standing else None
            if found is None:
                break
            more = self._take(*found)
            step = Step(step.facts + more.facts, more.waiting)
        return step

    def answer(self, prompt_id: PromptId | str, seat: Seat, answer: Answer) -> Step:
        """Answer an open prompt and run to the next one.

        Refusals (nothing has changed then): MATCH_NOT_STARTED, MATCH_FINISHED, PROMPT_CLOSED,
        NOT_YOUR_PROMPT, ILLEGAL_ANSWER. After any other exception the session must be thrown away.
        """
        match = self._running_match()
        for prompt in match.prompts:
            if prompt.id == prompt_id:
                break
        else:
            raise Refusal("PROMPT_CLOSED", "prompt_id")
        if prompt.seat != seat:
            raise Refusal("NOT_YOUR_PROMPT", "prompt_id")
        refusal = check_answer(prompt, answer)
        if refusal is not None:
            raise refusal
        step = self._take(Answered(seat, prompt.id, answer), answer)
        return self._answer_standing(step) if match.standing else step

    def take_action(self, seat: Seat, action: str) -> Step:
        """Do what a seat may do at any time (`MatchState.actions`), whoever is asked.

        It counts as done before the open questions were put; those that are other questions now,
        and secret ones, are put anew, the rest stay open or answered. Refusals (nothing has changed
        then): MATCH_NOT_STARTED, MATCH_FINISHED, ACTION_NOT_OFFERED.
        """
        match = self._running_match()
        offered = tuple([each.id for each in match.actions_of(seat)])
        if action not in offered:
            raise Refusal("ACTION_NOT_OFFERED", "action", legal=offered)
        step = self._act(ActionTaken(seat, action))
        return self._answer_standing(step) if match.standing else step

    def _running_match(self) -> MatchState:
        match = self._match
        if match.status != "running":
            raise Refusal("MATCH_FINISHED" if match.status == "finished" else "MATCH_NOT_STARTED")
        return match

    def set_standing_answer(
        self, seat: Seat, kind: str, answer: Answer | None, *, below: int = 0
    ) -> Step:
        """From now on answer the seat's prompts of a kind so, unasked (None: ask again).

        below: only while the game's measure for them is below it (0: always). Prompts that are open
        are answered at once. Refusals: MATCH_FINISHED, MATCH_NOT_STARTED, BAD_STANDING_ANSWER.
        """
        check_standing(self._running_match(), seat, kind, below)
        if answer is None:
            self._table_of().record(StandingAnswerDropped(seat, kind))
        else:
            standing = StandingAnswer(seat=seat, kind=kind, answer=answer, below=below)
            self._table_of().record(StandingAnswerSet(seat, standing))
        return self._answer_standing(self._hand_out())

    def standing_changes(self, seat: Seat) -> int:
        """How often the seat changed its standing answers since the turn began."""
        return self._recorder.count(seat, StandingAnswerSet, StandingAnswerDropped)

    def abandon(self, reason: str = "abandoned") -> Step:
        """End the match from outside its rules: without winners, the seed revealed.

        For lobbies that never begin and matches that nobody goes on with. Refusal: MATCH_FINISHED.
        """
        if self._match.status == "finished":
            raise Refusal("MATCH_FINISHED")
        ended = (SeedRevealed(self._recorder.reveal()), MatchEnded((), reason))
        if self._table is None:
            self._lobby = fold(ended, self._lobby)
            self._counted = self._lobby.fact_count
            return Step(ended, ())
        if self._rule is not None:
            self._rule.close()
        self._rule, self._group, self._answers = None, (), {}
        for fact in ended:
            self._table.record(fact)
        return self._hand_out()

    @classmethod
    def lay(
        cls, facts: Iterable[Fact], *, seed: bytes, game: AnyGame, chance: Chance
    ) -> tuple[Session, Step]:
        """Begin the next turn of a match whose facts make a position between two turns (or its
        setting up, when they only started it).

        For positions made by hand (engine.core.position). All draws of this session come from
        `chance`; such a log can be rebuilt, but its draws do not follow from the seed.
        """
        match = fold(facts)
        session = cls(game, match, seed)
        session._begin(match, ())
        session._recorder.script = lambda domain, bound, count: chance(
            session._table_of().state, domain, bound, count
        )
        return session, session._advance(None)

    # -- from the log ------------------------------------------------------------------------------

    @classmethod
    def rebuild(
        cls, facts: Iterable[Fact], *, seed: bytes | None, game: AnyGame | None = None
    ) -> Session:
        """The session as it was after the last fact.

        Folds to the start of the open turn, runs the rules again from there and compares every
        fact; raises RebuildMismatch at the first difference. Without a seed the session is
        read-only as far as new chance goes. `game` is only needed for games outside the catalogue.
        """
        return cls._from_log(tuple(facts), seed, game, from_start=False)

    @classmethod
    def verify_rules(cls, facts: Iterable[Fact], *, game: AnyGame | None = None) -> None:
        """Run every turn again from the start; raises RebuildMismatch at the first difference."""
        cls._from_log(tuple(facts), None, game, from_start=True)

    @classmethod
    def resume(
        cls, checkpoint: MatchState, facts: Sequence[Fact], *, seed: bytes | None, game: AnyGame
    ) -> Session:
        """Like rebuild, from the state before the checkpoint fact, and the facts from it on."""
        session = cls(game, checkpoint, seed)
        session._rerun(checkpoint, facts)
        return session

    @classmethod
    def _from_log(
        cls, facts: tuple[Fact, ...], seed: bytes | None, game: AnyGame | None, *, from_start: bool
    ) -> Session:
        if not facts or not isinstance(facts[0], MatchCreated):
            raise RebuildMismatch(0, facts[0] if facts else None, None)
        game = game or find_game(facts[0].game)
        if facts[0].revision > game.revision:
            message = f"{game.id} revision {facts[0].revision}, this software has {game.revision}"
            raise UnknownRules(message)
        started = next((i for i, fact in enumerate(facts) if type(fact) is MatchStarted), None)
        check_reveals(facts if started is None else facts[: started + 1])
        if started is None:
            return cls(game, fold(facts), seed)
        split = started + 1
        if not from_start:
            turns = (
                i for i in range(len(facts) - 1, started, -1) if type(facts[i]) is game.checkpoint
            )
            split = next(turns, split)
        return cls.resume(fold(facts[:split]), facts[split:], seed=seed, game=game)

    # -- running -----------------------------------------------------------------------------------

    def _need_lobby(self) -> None:
        if self._match.status == "finished":
            raise Refusal("MATCH_FINISHED")
        if self._match.status != "lobby":
            raise Refusal("NOT_IN_LOBBY")

    def _in_lobby(self, fact: Fact) -> Step:
        self._lobby = evolve(self._lobby, fact)
        self._counted = self._lobby.fact_count
        return Step((fact,), ())

    def _begin(self, match: MatchState, logged: Sequence[Fact]) -> None:
        self._recorder = Recorder(match, self._seed, logged)
        self._lay_out(match)

    def _lay_out(self, match: MatchState) -> None:
        """The rules stand before the turn that comes next, or before the setting up."""
        self._table = Table(self.game, match, self._recorder)
        self._rule = _play(self._table, self._recorder, fresh=match.table is None)

    def _advance(self, answers: tuple[Answer, ...] | None) -> Step:
        assert self._rule is not None
        assert self._table is not None
        try:
            self._group = self._rule.send(answers)  # type: ignore[arg-type]  # None starts a coroutine
        except StopIteration:
            self._group = ()
            self._rule = None
        self._answers = {}
        table = self._table
        if table.reopened:
            table.withdraw()
        if self._carried:
            carried, self._carried = self._carried, {}
            again = {each.id: carried[each.id] for each in self._group if each.id in carried}
            if again and len(again) == len(self._group):
                # They are answered for good: no later action falls before this.
                self._recorder.moment()
                return self._advance(tuple(again.values()))
            self._answers = again
        if table.match.actions or table.has_actions():
            self._asked_at = self._recorder.position
            self._offer_actions()
        return self._hand_out()

    def _offer_actions(self) -> None:
        """Say what has changed of what the seats may do at any time."""
        table = self._table_of()
        if self._rule is None:
            return
        now = {
            each.seat: each.actions
            for each in table.actions()
            if self._recorder.count(each.seat, ActionTaken) < ACTIONS_PER_TURN_MAX
        }
        before = {each.seat: each.actions for each in table.match.actions}
        for seat in sorted(now.keys() | before.keys()):
            actions = now.get(seat, ())
            if actions != before.get(seat, ()):
                table.record(ActionsOffered(seat, actions))

    def _act(self, taken: ActionTaken) -> Step:
        """Run the turn once more up to the last fact before the open questions, act there, and let
        the rules go on from it: so they ask what is to be asked now.
        """
        recorder = self._recorder
        recorder.place(self._asked_at, self._group, self._answers)
        assert self._rule is not None
        self._rule.close()
        recorder.repeat(recorder.splices[0], partial(self._splice, 0, taken))
        self._lay_out(recorder.base)
        step = self._advance(None)
        while recorder.is_repeating:
            fact = recorder.next_past()
            if isinstance(fact, Answered):
                assert isinstance(fact.answer, Answer), "rules run on the whole truth"
                step = self._take(fact, fact.answer)
            else:
                self._table_of().record(fact)
        return step

    def _splice(self, number: int, taken: ActionTaken) -> None:
        """Here the rules stopped to ask, and somebody acted: once more what came of it (`taken`:
        the newest action, for the first time), before they ask again.
        """
        recorder, table = self._recorder, self._table_of()
        splice = recorder.splices[number]
        is_last = number + 1 == len(recorder.splices)
        if not is_last:
            later = recorder.splices[number + 1]
            recorder.stop_at(later, partial(self._splice, number + 1, taken))
        table.reopen(())
        while recorder.position < splice.end:
            table.record(recorder.next_past())
        if is_last:
            recorder.go_on()
            table.record(taken)
            table.act(taken.seat, taken.action)
            recorder.splices[-1] = splice._replace(end=recorder.position, moments=recorder.moments)
        self._carried = splice.answers
        table.reopen(splice.group)
        if splice.secret:
            table.withdraw()

    def _table_of(self) -> Table[GameState]:
        assert self._table is not None
        return self._table

    def _hand_out(self) -> Step:
        assert self._table is not None
        facts = self._recorder.hand_out()
        self._counted += len(facts)
        return Step(facts, self._table.match.prompts)

    def _take(self, fact: Answered, answer: Answer) -> Step:
        """Record an answer; go on once every prompt that is open at the same time is answered."""
        assert self._table is not None
        self._table.record(fact)
        if len(self._group) == 1:
            return self._advance((answer,))
        self._answers[fact.prompt_id] = answer
        if len(self._answers) < len(self._group):
            return self._hand_out()
        return self._advance(tuple([self._answers[prompt.id] for prompt in self._group]))

    def _rerun(self, match: MatchState, logged: Sequence[Fact]) -> None:
        self._begin(match, logged)
        recorder = self._recorder
        if not logged:
            raise RebuildMismatch(match.fact_count, None, None)
        self._advance(None)
        while (fact := recorder.next_logged()) is not None:
            if isinstance(fact, SeedRevealed):
                last = logged[-1]
                self.abandon(last.reason if isinstance(last, MatchEnded) else "")
                continue
            if isinstance(fact, StandingAnswerSet | StandingAnswerDropped):
                self._table_of().record(fact)
                continue
            if isinstance(fact, ActionTaken):
                offered = self._table_of().match.actions_of(fact.seat)
                if all(each.id != fact.action for each in offered):
                    raise recorder.mismatch(None)
                self._act(fact)
                continue
            if not isinstance(fact, Answered) or not isinstance(fact.answer, Answer):
                raise recorder.mismatch(None)
            prompt = next((each for each in self.waiting if each.id == fact.prompt_id), None)
            if prompt is None or prompt.seat != fact.seat or check_answer(prompt, fact.answer):
                raise recorder.mismatch(None)
            self._take(fact, fact.answer)
        recorder.go_live()
        self._counted = match.fact_count + len(logged)


async def _play(table: Table[GameState], recorder: Recorder, *, fresh: bool) -> None:
    """The whole match: setting up, turn after turn, the end."""
    try:
        if fresh:
            await table.game.setup(table)
        while True:
            turn = table.state.turn
            table.turn_begins()
            await table.game.turn(table)
            assert table.state.turn > turn, "a turn must record its checkpoint"
    except MatchOver as over:
        table.withdraw()
        table.record(SeedRevealed(recorder.reveal()))
        table.record(MatchEnded(over.winners, over.reason))
