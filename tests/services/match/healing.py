"""Matches of King of Tokyo in which a seat may heal itself at any time.

Who hunts for one card finds it: energy is kept, cards are swept away, until Rapid Healing is
bought and its owner is hurt. The dice of these processes follow from the log and the request, so
the way there is looked for without a server first, and then played on one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import cast

from engine import Answer, Prompt, Seat, Session, derive_seed, find_game
from engine.games.kings.state import KingsState, Monster
from services.common.prompts_wire import answer_to_wire
from services.match.commands import new_match_id
from tests.services.match.serving import KEYS, Begun, Player, Process, begin
from tests.support.healer import hunt

GAME = "king_of_tokyo"
_PROMPTS_MAX = 60
_TRIES_MAX = 400
_ENERGY = 2

Wanted = Callable[[Session, Seat], bool]


@dataclass
class Healing:
    """A match as far as that: `seat` may take `action`; `other` is somebody else."""

    match: Begun
    seat: Seat
    action: str
    # The same match as the engine alone plays it, at the same point.
    session: Session

    @property
    def match_id(self) -> str:
        return self.match.match_id

    @property
    def healer(self) -> Player:
        return self.match.players[self.seat - 1]

    @property
    def other(self) -> Player:
        return self.match.players[2 - self.seat]


def whoever_is_asked(session: Session, healer: Seat) -> bool:
    """Any moment will do."""
    return True


def another_is_asked(session: Session, healer: Seat) -> bool:
    """The healer waits, like everybody but one."""
    return all(prompt.seat != healer for prompt in session.waiting)


def the_question_changes(session: Session, healer: Seat) -> bool:
    """The healer is asked what to buy, and is asked it still, for less, once it has healed."""
    (prompt,) = session.waiting
    energy = _monster(session, healer).energy
    affordable = [o for o in prompt.options if o.subject == "sweep" or _price(o.subject) > 0]
    dear = [o for o in affordable if _price(o.subject) > energy - _ENERGY]
    return (prompt.seat, prompt.kind) == (healer, "buy") and 0 < len(dear) < len(affordable)


def _monster(session: Session, seat: Seat) -> Monster:
    return cast("KingsState", session.state.table).monster(seat)


def _price(subject: str) -> int:
    head, *rest = subject.split(":")
    if head == "sweep":
        return 2
    return int(rest[-1]) if head == "ware" else 0


def hurt(times: int) -> Wanted:
    """The healer can pay for healing so often, and needs it."""

    def is_hurt(session: Session, healer: Seat) -> bool:
        monster = _monster(session, healer)
        return monster.energy >= _ENERGY * times and monster.hearts <= 10 - times

    return is_hurt


async def healing(
    where: Process, wanted: Wanted = whoever_is_asked, *, answer_timeout_s: int = 0
) -> Healing:
    """Play a match until a seat may heal itself, and `wanted` holds as well."""
    request_id, answers, session = _found(where.node.log_id, wanted, answer_timeout_s)
    match = await begin(
        where,
        game=GAME,
        request_id=request_id,
        answer_timeout_seconds=answer_timeout_s,
    )
    for seat, prompt_id, answer in answers:
        player = match.players[seat - 1]
        done = await player.answer(match.match_id, prompt_id, answer=answer_to_wire(answer))
        match.sequence = done.receipt.sequence
    (offered,) = session.state.actions
    return Healing(match, offered.seat, offered.actions[0].id, session)


def _found(
    log_id: str, wanted: Wanted, answer_timeout_s: int
) -> tuple[str, list[tuple[Seat, str, Answer]], Session]:
    for number in count():
        assert number < _TRIES_MAX, "no such match was found"
        request_id = f"heal-{number}"
        session = _started(new_match_id(log_id, "ann", request_id), answer_timeout_s)
        answers: list[tuple[Seat, str, Answer]] = []
        for prompt, answer in _hunt(session):
            if session.state.actions and wanted(session, session.state.actions[0].seat):
                return request_id, answers, session
            session.answer(prompt.id, prompt.seat, answer)
            answers.append((prompt.seat, prompt.id, answer))
    raise AssertionError


def _started(match_id: str, answer_timeout_s: int) -> Session:
    key = KEYS.current_key
    seed = derive_seed(key, KEYS.current, match_id)
    session, _ = Session.create(
        find_game(GAME),
        match_id=match_id,
        host="ann",
        seats=2,
        seed=seed,
        key_id=KEYS.current,
        answer_timeout_s=answer_timeout_s,
    )
    for player in ("ann", "bob"):
        session.join(player, player)
    session.start()
    return session


def _hunt(session: Session) -> Iterator[tuple[Prompt, Answer]]:
    """What is asked, and what a hunter answers; not for long."""
    for _ in range(_PROMPTS_MAX):
        if session.state.status != "running":
            return
        (prompt,) = session.waiting
        yield prompt, hunt(prompt, session.state)
