"""The state of a match as the fold of its facts, and its encodings.

`evolve` is dumb arithmetic: it never asks about rules, options or randomness, it accepts facts with
hidden fields, and its meaning never changes once a fact has been written to a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar, cast

import msgspec

from engine.core.facts import (
    ActionsOffered,
    ActionTaken,
    Answered,
    ChanceDrawn,
    ChanceDrawnInSecret,
    EntropyRevealed,
    MatchCreated,
    MatchEnded,
    MatchStarted,
    OptionValue,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
    SeatTaken,
    SeedRevealed,
    StandingAnswerDropped,
    StandingAnswerSet,
)
from engine.core.prompts import Option, Prompt, SeatActions, StandingAnswer
from engine.core.visibility import NOBODY, Fact, Hidden, Seat


class Holding(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A card lying in front of a seat.

    copies: the id of the holding that this one acts as (0: it acts as itself). counter: tokens on
    it. used: how often it was used in this turn. paid: what its owner paid.
    """

    id: int
    seat: Seat
    card: str
    copies: int = 0
    counter: int = 0
    used: int = 0
    paid: int = 0


class GameState(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="state"
):
    """What every game's state has; each game's own state inherits from it with a tag of its own.

    A struct inside a state may have omit_defaults only when all its defaults are None, a bool, a
    small int, "", b"" or (): msgspec leaves out what IS the default, not what equals it, and equal
    states must have equal encodings.
    """

    turn: int = 0
    active: Seat = NOBODY
    holdings: tuple[Holding, ...] = ()


class Player(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Who sits where, and the entropy it brought: empty while only committed to."""

    seat: Seat
    player: str
    name: str
    entropy: bytes = b""
    entropy_commitment: bytes = b""


class MatchState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Everything that the log says about a match: lobby, open prompts, the game's table and the
    result.
    """

    match_id: str = ""
    game: str = ""
    revision: int = 0
    expansions: tuple[str, ...] = ()
    options: tuple[OptionValue, ...] = ()
    seats: int = 0
    host: str = ""
    commitment: bytes = b""
    key_id: str = ""
    answer_timeout_s: int = 0
    players: tuple[Player, ...] = ()
    status: Literal["lobby", "running", "finished"]
    prompts: tuple[Prompt, ...] = ()
    standing: tuple[StandingAnswer, ...] = ()
    actions: tuple[SeatActions, ...] = ()
    prompt_count: int = 0
    draws: int = 0
    fact_count: int = 0
    winners: tuple[Seat, ...] = ()
    end_reason: str = ""
    seed: bytes = b""
    table: GameState | None = None

    def actions_of(self, seat: Seat) -> tuple[Option, ...]:
        """What a seat may do now, whoever is asked."""
        for each in self.actions:
            if each.seat == seat:
                return each.actions
        return ()

    def name_of(self, seat: Seat) -> str:
        """The name shown for a seat."""
        for player in self.players:
            if player.seat == seat:
                return player.name
        return f"#{seat}"


S = TypeVar("S", bound=GameState)
F = TypeVar("F", bound=Fact)
_Core = Callable[[MatchState, Fact], MatchState]
_Table = Callable[[GameState | None, Fact], GameState]

_CORE: dict[type[Fact], _Core] = {}
_TABLE: dict[type[Fact], _Table] = {}


def evolves(fact_type: type[F]) -> Callable[[Callable[[S, F], S]], Callable[[S, F], S]]:
    """Declare how a game's fact changes the game's state: one function per type of fact."""

    def register(function: Callable[[S, F], S]) -> Callable[[S, F], S]:
        assert fact_type not in _TABLE, fact_type
        _TABLE[fact_type] = cast("_Table", function)
        return function

    return register


def begins(fact_type: type[F]) -> Callable[[Callable[[F], S]], Callable[[F], S]]:
    """Declare the fact that lays the game's table: the first one after MatchStarted."""

    def register(function: Callable[[F], S]) -> Callable[[F], S]:
        assert fact_type not in _TABLE, fact_type
        _TABLE[fact_type] = cast("_Table", lambda _, fact: function(fact))
        return function

    return register


TABLE_EVOLVERS: Mapping[type[Fact], _Table] = _TABLE
"""The functions that apply the games' facts."""
CORE_EVOLVERS: Mapping[type[Fact], _Core] = _CORE
"""The functions that apply core facts, without counting them."""


def has_evolver(fact_type: type[Fact]) -> bool:
    """Is it declared how this type of fact changes the state?"""
    return fact_type in _TABLE or fact_type in _CORE


def empty_state() -> MatchState:
    """The state before the first fact."""
    return MatchState(status="lobby")


def evolve(state: MatchState, fact: Fact) -> MatchState:
    """The state after one more fact, redacted or not."""
    apply = _TABLE.get(type(fact))
    if apply is not None:
        table = apply(state.table, fact)
        return msgspec.structs.replace(state, table=table, fact_count=state.fact_count + 1)
    state = _CORE[type(fact)](state, fact)
    return msgspec.structs.replace(state, fact_count=state.fact_count + 1)


def fold(facts: Iterable[Fact], state: MatchState | None = None) -> MatchState:
    """All facts applied in order, to the empty state or to the given one."""
    match = empty_state() if state is None else state
    table = match.table
    count = match.fact_count
    tables = _TABLE
    for fact in facts:
        apply = tables.get(type(fact))
        if apply is not None:
            table = apply(table, fact)
        else:
            match = _CORE[type(fact)](match, fact)
        count += 1
    return msgspec.structs.replace(match, table=table, fact_count=count)


# -- core facts ------------------------------------------------------------------------------------


def _core(fact_type: type[F]) -> Callable[[Callable[[MatchState, F], MatchState]], None]:
    def register(function: Callable[[MatchState, F], MatchState]) -> None:
        _CORE[fact_type] = cast("_Core", function)

    return register


@_core(MatchCreated)
def _match_created(state: MatchState, fact: MatchCreated) -> MatchState:
    return msgspec.structs.replace(
        state,
        match_id=fact.match_id,
        game=fact.game,
        revision=fact.revision,
        expansions=fact.expansions,
        options=fact.options,
        seats=fact.seats,
        host=fact.host,
        commitment=fact.commitment,
        key_id=fact.key_id,
        answer_timeout_s=fact.answer_timeout_s,
    )


@_core(SeatTaken)
def _seat_taken(state: MatchState, fact: SeatTaken) -> MatchState:
    player = Player(
        seat=fact.seat,
        player=fact.player,
        name=fact.name,
        entropy=fact.entropy,
        entropy_commitment=fact.entropy_commitment,
    )
    players = sorted((*state.players, player), key=lambda each: each.seat)
    return msgspec.structs.replace(state, players=tuple(players))


@_core(EntropyRevealed)
def _entropy_revealed(state: MatchState, fact: EntropyRevealed) -> MatchState:
    players = [
        msgspec.structs.replace(each, entropy=fact.entropy) if each.seat == fact.seat else each
        for each in state.players
    ]
    return msgspec.structs.replace(state, players=tuple(players))


@_core(MatchStarted)
def _match_started(state: MatchState, _: MatchStarted) -> MatchState:
    return msgspec.structs.replace(state, status="running")


@_core(Prompted)
def _prompted(state: MatchState, fact: Prompted) -> MatchState:
    return msgspec.structs.replace(
        state, prompts=(*state.prompts, fact.prompt), prompt_count=state.prompt_count + 1
    )


@_core(PromptedInSecret)
def _prompted_in_secret(state: MatchState, fact: PromptedInSecret) -> MatchState:
    prompt = fact.prompt
    if isinstance(prompt, Hidden):
        prompt = Prompt(
            id=fact.prompt_id,
            seat=fact.seat,
            kind=fact.kind,
            form=fact.form,
            cause=fact.cause,
            concealed=True,
        )
    return msgspec.structs.replace(
        state, prompts=(*state.prompts, prompt), prompt_count=state.prompt_count + 1
    )


@_core(Answered)
def _answered(state: MatchState, fact: Answered) -> MatchState:
    left = tuple([prompt for prompt in state.prompts if prompt.id != fact.prompt_id])
    return msgspec.structs.replace(state, prompts=left)


@_core(ActionsOffered)
def _actions_offered(state: MatchState, fact: ActionsOffered) -> MatchState:
    rest = [each for each in state.actions if each.seat != fact.seat]
    offered = [SeatActions(fact.seat, fact.actions)] if fact.actions else []
    actions = tuple(sorted(rest + offered, key=lambda each: each.seat))
    return msgspec.structs.replace(state, actions=actions)


@_core(ActionTaken)
def _action_taken(state: MatchState, _: ActionTaken) -> MatchState:
    return state


@_core(PromptsWithdrawn)
def _prompts_withdrawn(state: MatchState, fact: PromptsWithdrawn) -> MatchState:
    left = tuple([prompt for prompt in state.prompts if prompt.id not in fact.prompt_ids])
    return msgspec.structs.replace(state, prompts=left)


@_core(StandingAnswerSet)
def _standing_answer_set(state: MatchState, fact: StandingAnswerSet) -> MatchState:
    new = fact.standing
    if isinstance(new, Hidden):
        return state
    rest = [each for each in state.standing if (each.seat, each.kind) != (new.seat, new.kind)]
    return msgspec.structs.replace(state, standing=(*rest, new))


@_core(StandingAnswerDropped)
def _standing_answer_dropped(state: MatchState, fact: StandingAnswerDropped) -> MatchState:
    gone = (fact.seat, fact.kind)
    rest = [each for each in state.standing if (each.seat, each.kind) != gone]
    return msgspec.structs.replace(state, standing=tuple(rest))


@_core(ChanceDrawn)
def _chance_drawn(state: MatchState, _: ChanceDrawn) -> MatchState:
    return msgspec.structs.replace(state, draws=state.draws + 1)


@_core(ChanceDrawnInSecret)
def _chance_drawn_in_secret(state: MatchState, _: ChanceDrawnInSecret) -> MatchState:
    return msgspec.structs.replace(state, draws=state.draws + 1)


@_core(SeedRevealed)
def _seed_revealed(state: MatchState, fact: SeedRevealed) -> MatchState:
    return msgspec.structs.replace(state, seed=fact.seed)


@_core(MatchEnded)
def _match_ended(state: MatchState, fact: MatchEnded) -> MatchState:
    return msgspec.structs.replace(
        state,
        status="finished",
        winners=fact.winners,
        end_reason=fact.reason,
        prompts=(),
        actions=(),
    )


# -- encodings -------------------------------------------------------------------------------------

_canonical = msgspec.msgpack.Encoder(order="sorted")
_header = msgspec.msgpack.Decoder(tuple[MatchState, str, msgspec.Raw])


def _tag_of(table: GameState | None) -> str:
    return "" if table is None else str(type(table).__struct_config__.tag)


def encode_state(state: MatchState) -> bytes:
    """Canonical msgpack: sorted names, defaults left out. Hidden values are kept as such."""
    header = msgspec.structs.replace(state, table=None)
    return _canonical.encode((header, _tag_of(state.table), state.table))


def decode_state(data: bytes) -> MatchState:
    """The exact inverse of encode_state. The state's game must be importable. Raises
    msgspec.DecodeError.
    """
    header, tag, raw = _header.decode(data)
    if not tag:
        return header
    table = msgspec.msgpack.decode(raw, type=_state_type(tag))
    return msgspec.structs.replace(header, table=table)


def state_hash(state: MatchState) -> bytes:
    """SHA-256 of the canonical encoding; equal states have equal hashes on every machine."""
    return hashlib.sha256(encode_state(state)).digest()


def _state_type(tag: str) -> type[GameState]:
    found = _subclass(GameState, tag)
    if found is None:
        from engine.core.catalogue import catalogue  # the catalogue needs this module first

        catalogue()
        found = _subclass(GameState, tag)
    if found is None:
        message = f"no game with state {tag!r}"
        raise msgspec.DecodeError(message)
    return found


def _subclass(base: type[GameState], tag: str) -> type[GameState] | None:
    for each in base.__subclasses__():
        if each.__struct_config__.tag == tag:
            return each
        deeper = _subclass(each, tag)
        if deeper is not None:
            return deeper
    return None
