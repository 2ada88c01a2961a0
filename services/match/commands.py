"""Commands: checked requests, and what each of them does to a session.

Everything here is decided without I/O. `read_*` turn a request into a command and refuse
(ApiError) what no match could accept; `decide` lets the engine decide the rest.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple, assert_never

from diceledger.match.v1 import match_pb2
from engine import (
    Answer,
    Form,
    Prompt,
    PromptId,
    Refusal,
    Seat,
    SeatTaken,
    Session,
    Step,
    find_game,
)
from services.common.auth import Caller
from services.common.commits import Cause, How
from services.common.errors import ApiError, from_refusal, refuse
from services.common.prompts_wire import answer_from_wire, answer_to_wire, wire_field
from services.match.limits import ANSWER_TIMEOUT_S_MAX, ITEMS_MAX, TEXT_MAX
from services.match.standing import check_change

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_MATCH_ID: Final = re.compile(r"[a-z2-7]{26}")
_PROMPT_ID: Final = re.compile(r"p[1-9][0-9]{0,9}")
_NAME_MAX: Final = 40
_ENTROPY_LOW, _ENTROPY_HIGH = 16, 64
_COMMITMENT_BYTES: Final = 32
_SEATS_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request of `actor` to the match; `digest` tells whether a repeated id means the same."""

    match_id: str
    actor: str
    request_id: str
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Command):
    """Open a match in its lobby."""

    game: str
    seats: int
    preset: str
    options: Mapping[str, str]
    expansions: tuple[str, ...]
    answer_timeout_s: int
    is_organiser: bool
    request: match_pb2.CreateMatchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Command):
    """Take a seat; seat 0: the first free one."""

    name: str
    entropy: bytes
    entropy_commitment: bytes
    seat: int
    request: match_pb2.JoinMatchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal(Command):
    """Open the commitment to the seat's entropy."""

    entropy: bytes
    request: match_pb2.RevealEntropyRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Command):
    """Close the lobby and begin."""

    request: match_pb2.StartMatchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit(Command):
    """Answer a prompt."""

    prompt_id: str
    answer: Answer
    request: match_pb2.SubmitAnswerRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAction(Command):
    """Do what the seat may do at any time."""

    action: str
    request: match_pb2.TakeActionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStanding(Command):
    """Answer the seat's prompts of a kind so from now on; no answer: ask again."""

    kind: str
    answer: Answer | None
    below: int
    request: match_pb2.SetStandingAnswerRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon(Command):
    """End a match that has not begun: its host wants it."""

    request: match_pb2.AbandonMatchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire(Command):
    """Answer a prompt by its default: the time is over. Comes from the process itself."""

    prompt: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireLobby(Command):
    """End a match that has not begun: the time is over. Comes from the process itself."""


# Of players, on matches that are there already.
LaterPlayerCommand = Join | Reveal | Start | Submit | TakeAction | SetStanding | Abandon
PlayerCommand = Create | LaterPlayerCommand
LaterCommand = LaterPlayerCommand | Expire | ExpireLobby
AnyCommand = Create | LaterCommand


def name_of(command: AnyCommand) -> str:
    """What the command is called in causes and metrics."""
    match command:
        case Create():
            return "create"
        case Join():
            return "join"
        case Reveal():
            return "reveal"
        case Start():
            return "start"
        case Submit():
            return "answer"
        case Expire():
            return "timeout"
        case TakeAction():
            return "action"
        case SetStanding():
            return "standing"
        case Abandon() | ExpireLobby():
            return "abandon"
        case _:
            assert_never(command)


# -- requests ------------------------------------------------------------------------------------


def read_create(request: match_pb2.CreateMatchRequest, caller: Caller, log_id: str) -> Create:
    """Check a CreateMatchRequest. The match id follows from log, caller and request id."""
    request_id = _request_id(request.request_id)
    _text("game", request.game, "UNKNOWN_GAME")
    _text("preset", request.preset, "UNKNOWN_PRESET", may_be_empty=True)
    if not 1 <= request.seats <= _SEATS_MAX:
        raise refuse("BAD_SEAT_COUNT", field="seats")
    if len(request.options) > ITEMS_MAX:
        raise refuse("UNKNOWN_OPTION", "There are too many options.", field="options")
    for option, value in request.options.items():
        _text("options", option, "UNKNOWN_OPTION")
        _text("options", value, "BAD_OPTION_VALUE", may_be_empty=True)
    if len(request.expansions) > ITEMS_MAX:
        raise refuse("UNKNOWN_EXPANSION", "There are too many expansions.", field="expansions")
    for expansion in request.expansions:
        _text("expansions", expansion, "UNKNOWN_EXPANSION")
    if not 0 <= request.answer_timeout_seconds <= ANSWER_TIMEOUT_S_MAX:
        raise refuse("BAD_TIMEOUT", field="answer_timeout_seconds")
    options = dict(sorted(request.options.items()))
    return Create(
        match_id=new_match_id(log_id, caller.subject, request_id),
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("create", *_content(request, options)),
        game=request.game,
        seats=request.seats,
        preset=request.preset,
        options=options,
        expansions=tuple(request.expansions),
        answer_timeout_s=request.answer_timeout_seconds,
        is_organiser=caller.has("organiser"),
        request=request,
    )


def _content(
    request: match_pb2.CreateMatchRequest, options: Mapping[str, str]
) -> list[str | int | bytes]:
    content: list[str | int | bytes] = [request.game, request.seats, request.preset, len(options)]
    for option, value in options.items():
        content += (option, value)
    return [*content, *request.expansions, request.answer_timeout_seconds]


def read_join(request: match_pb2.JoinMatchRequest, caller: Caller) -> Join:
    """Check a JoinMatchRequest; an empty name becomes the token's."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    name = request.name or caller.name[:_NAME_MAX]
    if not (len(name) <= _NAME_MAX and name.isprintable() and name.strip()):
        raise refuse("BAD_NAME", field="name")
    if request.entropy and not _ENTROPY_LOW <= len(request.entropy) <= _ENTROPY_HIGH:
        raise refuse("BAD_ENTROPY", field="entropy")
    promise = request.entropy_commitment
    if promise and (request.entropy or len(promise) != _COMMITMENT_BYTES):
        raise refuse("BAD_ENTROPY", field="entropy_commitment")
    if not 0 <= request.seat <= _SEATS_MAX:
        raise refuse("BAD_SEAT", field="seat")
    return Join(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest(
            *("join", match_id, request.name, request.entropy, request.seat),
            *((promise,) if promise else ()),
        ),
        name=name,
        entropy=request.entropy,
        entropy_commitment=promise,
        seat=request.seat,
        request=request,
    )


def read_reveal(request: match_pb2.RevealEntropyRequest, caller: Caller) -> Reveal:
    """Check a RevealEntropyRequest, as far as that is possible without knowing the commitment."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    if not _ENTROPY_LOW <= len(request.entropy) <= _ENTROPY_HIGH:
        raise refuse("BAD_ENTROPY", field="entropy")
    return Reveal(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("reveal", match_id, request.entropy),
        entropy=request.entropy,
        request=request,
    )


def read_start(request: match_pb2.StartMatchRequest, caller: Caller) -> Start:
    """Check a StartMatchRequest."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    return Start(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("start", match_id),
        request=request,
    )


def read_submit(request: match_pb2.SubmitAnswerRequest, caller: Caller) -> Submit:
    """Check a SubmitAnswerRequest, as far as that is possible without knowing the prompt."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    if not _PROMPT_ID.fullmatch(request.prompt_id):
        raise refuse("BAD_REQUEST", "prompt_id names no prompt.", field="prompt_id")
    answer = _answer(request.answer)
    return Submit(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("answer", match_id, request.prompt_id, *_said(answer)),
        prompt_id=request.prompt_id,
        answer=answer,
        request=request,
    )


def read_take(request: match_pb2.TakeActionRequest, caller: Caller) -> TakeAction:
    """Check a TakeActionRequest, as far as that is possible without knowing the match."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    _text("action", request.action, "ACTION_NOT_OFFERED")
    return TakeAction(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("action", match_id, request.action),
        action=request.action,
        request=request,
    )


def _answer(wire: match_pb2.Answer) -> Answer:
    picks, amounts = wire.selection.options, wire.allocation.amounts
    if max(len(picks), len(amounts)) > ITEMS_MAX or any(len(p) > TEXT_MAX for p in picks):
        raise refuse("ILLEGAL_ANSWER", "The answer is too long.", field="answer")
    try:
        return answer_from_wire(wire)
    except Refusal as refusal:
        raise api_error(refusal) from None


def _said(answer: Answer | None) -> list[str | int | bytes]:
    """The content of an answer, for its digest."""
    if answer is None:
        return []
    number = "" if answer.number is None else answer.number
    return [len(answer.picks), *answer.picks, number, len(answer.amounts), *answer.amounts]


def read_standing(request: match_pb2.SetStandingAnswerRequest, caller: Caller) -> SetStanding:
    """Check a SetStandingAnswerRequest, as far as that is possible without knowing the match."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    _text("kind", request.kind, "BAD_STANDING_ANSWER")
    answer = _answer(request.answer) if request.HasField("answer") else None
    return SetStanding(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("standing", match_id, request.kind, request.below, *_said(answer)),
        kind=request.kind,
        answer=answer,
        below=request.below,
        request=request,
    )


def read_abandon(request: match_pb2.AbandonMatchRequest, caller: Caller) -> Abandon:
    """Check an AbandonMatchRequest."""
    request_id = _request_id(request.request_id)
    match_id = checked_match_id(request.match_id)
    return Abandon(
        match_id=match_id,
        actor=caller.subject,
        request_id=request_id,
        digest=_digest("abandon", match_id),
        request=request,
    )


def expire_lobby(match_id: str) -> ExpireLobby:
    """The command that ends a match that nobody started in time."""
    return ExpireLobby(
        match_id=match_id,
        actor="",
        request_id="timeout:lobby",
        digest=_digest("timeout", match_id, "lobby"),
    )


def expire(match_id: str, prompt: Prompt) -> Expire:
    """The command that takes the default of a prompt whose time is over."""
    return Expire(
        match_id=match_id,
        actor="",
        # The same for every process that finds the time to be over: it counts once.
        request_id=f"timeout:{prompt.id}",
        digest=_digest("timeout", match_id, prompt.id),
        prompt=prompt,
    )


def new_match_id(log_id: str, subject: str, request_id: str) -> str:
    """The id of the match that this request creates: a repeated request names the same match."""
    parts = _joined("diceledger.match-id.v1", log_id, subject, request_id)
    return base64.b32encode(sha256(parts).digest()).decode().lower()[:26]


def checked_match_id(match_id: str) -> str:
    """Refuse what cannot be the id of a match."""
    if not _MATCH_ID.fullmatch(match_id):
        raise refuse("BAD_MATCH_ID", field="match_id")
    return match_id


def api_error(refusal: Refusal) -> ApiError:
    """The engine's refusal as callers see it, naming the field of the request."""
    error = from_refusal(refusal)
    error.field = wire_field(refusal.field) or None
    return error


def _request_id(request_id: str) -> str:
    if not _REQUEST_ID.fullmatch(request_id):
        raise refuse("BAD_REQUEST_ID", field="request_id")
    return request_id


def _text(field: str, text: str, reason: str, *, may_be_empty: bool = False) -> None:
    if len(text) > TEXT_MAX or not (text or may_be_empty):
        raise refuse(reason, field=field)


def _digest(*parts: str | int | bytes) -> bytes:
    return sha256(_joined(*parts)).digest()


def _joined(*parts: str | int | bytes) -> bytes:
    encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


# -- decisions -----------------------------------------------------------------------------------


class Decision(NamedTuple):
    """What the engine made of a command, and the cause that goes into the log with it."""

    step: Step
    cause: Cause


def create_session(command: Create, *, seed: bytes, key_id: str) -> tuple[Session, Decision]:
    """Open the match that the command asks for. Raises engine.Refusal."""
    session, step = Session.create(
        find_game(command.game),
        match_id=command.match_id,
        host=command.actor,
        seats=command.seats,
        options=command.options,
        expansions=command.expansions,
        preset=command.preset,
        seed=seed,
        key_id=key_id,
        answer_timeout_s=command.answer_timeout_s,
    )
    return session, Decision(step, _cause(command, 0))


def decide(session: Session, command: LaterCommand, seat: int) -> Decision:
    """Apply the command to the session; `seat` is the actor's, 0 when it has none.

    Raises ApiError or engine.Refusal, then nothing was changed; after any other exception the
    session is of no use any more.
    """
    match command:
        case Join():
            if session.state.status == "lobby" and command.seat > session.state.seats:
                raise refuse("BAD_SEAT", field="seat")
            wanted = Seat(command.seat) if command.seat else None
            step = session.join(
                command.actor,
                command.name,
                command.entropy,
                wanted,
                entropy_commitment=command.entropy_commitment,
            )
            taken = step.facts[0]
            assert isinstance(taken, SeatTaken), taken
            return Decision(step, _cause(command, taken.seat))
        case Reveal():
            step = session.reveal(_own_seat(seat), command.entropy)
            return Decision(step, _cause(command, seat))
        case Start():
            if session.state.host != command.actor:
                raise refuse("NOT_HOST")
            return Decision(session.start(), _cause(command, 0))
        case Submit():
            step = session.answer(PromptId(command.prompt_id), _own_seat(seat), command.answer)
            return Decision(step, _cause(command, seat))
        case Expire():
            prompt = command.prompt
            step = session.answer(prompt.id, prompt.seat, prompt.default)
            return Decision(step, _cause(command, prompt.seat))
        case TakeAction():
            step = session.take_action(_own_seat(seat), command.action)
            return Decision(step, _cause(command, seat))
        case SetStanding():
            own = _own_seat(seat)
            check_change(session, own, command.kind, command.answer, command.below)
            step = session.set_standing_answer(
                own, command.kind, command.answer, below=command.below
            )
            return Decision(step, _cause(command, seat))
        case Abandon() | ExpireLobby():
            if isinstance(command, Abandon) and session.state.host != command.actor:
                raise refuse("NOT_HOST")
            if session.state.status != "lobby":
                raise refuse("NOT_IN_LOBBY")
            return Decision(session.abandon(), _cause(command, 0))
        case _:
            assert_never(command)


def _own_seat(seat: int) -> Seat:
    """The actor's seat. Raises ApiError NOT_A_PLAYER when it has none."""
    if not seat:
        raise refuse("NOT_A_PLAYER")
    return Seat(seat)


def _cause(command: AnyCommand, seat: int) -> Cause:
    how, prompt_id, answer = How.HOST, "", b""
    if isinstance(command, Submit):
        how, prompt_id = How.ANSWER, command.prompt_id
        answer = command.request.answer.SerializeToString(deterministic=True)
    elif isinstance(command, Expire):
        how, prompt_id = How.TIMEOUT, command.prompt.id
        answer = _encoded(command.prompt.default, command.prompt.form)
    elif isinstance(command, TakeAction):
        how, answer = How.ANSWER, _encoded(Answer(picks=(command.action,)))
    elif isinstance(command, SetStanding):
        answer = command.request.answer.SerializeToString(deterministic=True)
    elif isinstance(command, ExpireLobby):
        how = How.TIMEOUT
    return Cause(
        request_id=command.request_id,
        actor=command.actor,
        seat=seat,
        prompt_id=prompt_id,
        answer=answer,
        how=how,
        digest=command.digest,
        command=name_of(command),
    )


def _encoded(answer: Answer, form: Form | None = None) -> bytes:
    return answer_to_wire(answer, form).SerializeToString(deterministic=True)
