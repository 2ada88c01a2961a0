"""The facts of every match, whatever is played: lobby, questions, chance and the end."""

from __future__ import annotations

import msgspec

from engine.core.prompts import Answer, Form, Option, Prompt, PromptId, StandingAnswer
from engine.core.visibility import Fact, Public, Seat, Secret


class OptionValue(msgspec.Struct, frozen=True, gc=False):
    """One option of the game with the value chosen for this match."""

    id: str
    value: str


class MatchCreated(Fact, frozen=True, tag="match_created"):
    """A lobby was opened; every option is resolved. The commitment is the SHA-256 of the secret
    seed.
    """

    match_id: Public[str]
    game: Public[str]
    revision: Public[int]
    expansions: Public[tuple[str, ...]]
    options: Public[tuple[OptionValue, ...]]
    seats: Public[int]
    host: Public[str]
    commitment: Public[bytes]
    key_id: Public[str]
    answer_timeout_s: Public[int]


class SeatTaken(Fact, frozen=True, tag="seat_taken", omit_defaults=True):
    """A player sat down and added its own entropy to every roll of the match: either at once, or
    by a commitment to it that EntropyRevealed opens once every seat is taken.
    """

    seat: Public[Seat]
    player: Public[str]
    name: Public[str]
    entropy: Public[bytes]
    entropy_commitment: Public[bytes] = b""


class EntropyRevealed(Fact, frozen=True, tag="entropy_revealed"):
    """A seat opened its commitment: this is its entropy. Every seat was taken by then."""

    seat: Public[Seat]
    entropy: Public[bytes]


class MatchStarted(Fact, frozen=True, tag="match_started"):
    """The lobby was closed; the rules take over."""


class Prompted(Fact, frozen=True, tag="prompted"):
    """A question was put to a seat; everybody may see what it is asked."""

    seat: Public[Seat]
    prompt: Public[Prompt]


class PromptedInSecret(Fact, frozen=True, tag="prompted_in_secret"):
    """A question was put to a seat; the others see its kind, but not what may be answered."""

    seat: Public[Seat]
    prompt_id: Public[PromptId]
    kind: Public[str]
    form: Public[Form]
    cause: Public[str]
    prompt: Secret[Prompt]


class Answered(Fact, frozen=True, tag="answered"):
    """A seat answered. What it means for the others is said by the facts that follow."""

    seat: Public[Seat]
    prompt_id: Public[PromptId]
    answer: Secret[Answer]


class ActionsOffered(Fact, frozen=True, tag="actions_offered"):
    """What a seat may do whenever the match waits, whoever is asked; it stands until said anew.

    The first such fact of a seat is written when a card first gives it something to do.
    """

    seat: Public[Seat]
    actions: Public[tuple[Option, ...]]


class ActionTaken(Fact, frozen=True, tag="action_taken"):
    """A seat did what it may do at any time. It counts as done before the open questions were put:
    the facts up to the next ones say what it changed.
    """

    seat: Public[Seat]
    action: Public[str]


class PromptsWithdrawn(Fact, frozen=True, tag="prompts_withdrawn"):
    """After an action these open questions are not what is to be asked any more."""

    prompt_ids: Public[tuple[PromptId, ...]]


class StandingAnswerSet(Fact, frozen=True, tag="standing_answer_set"):
    """A seat said how it wants prompts of a kind answered from now on, unasked. Only it
    knows what.
    """

    seat: Public[Seat]
    standing: Secret[StandingAnswer]


class StandingAnswerDropped(Fact, frozen=True, tag="standing_answer_dropped"):
    """A seat wants to be asked again."""

    seat: Public[Seat]
    kind: Secret[str]


class ChanceDrawn(Fact, frozen=True, tag="chance_drawn"):
    """Draw `number` of the match: `count` values from 0 to bound-1, as the seed and the entropies
    give them.
    """

    domain: Public[str]
    number: Public[int]
    bound: Public[int]
    count: Public[int]
    values: Public[tuple[int, ...]]


class ChanceDrawnInSecret(Fact, frozen=True, tag="chance_drawn_in_secret"):
    """A draw whose values only the audience may see (nobody, when it is empty)."""

    domain: Public[str]
    number: Public[int]
    bound: Public[int]
    count: Public[int]
    audience: Public[tuple[Seat, ...]]
    values: Secret[tuple[int, ...]]


class SeedRevealed(Fact, frozen=True, tag="seed_revealed"):
    """The match is over: everybody may recompute every draw."""

    seed: Public[bytes]


class MatchEnded(Fact, frozen=True, tag="match_ended"):
    """The last fact of a match. No winner: everybody lost."""

    winners: Public[tuple[Seat, ...]]
    reason: Public[str]


CORE_FACTS: tuple[type[Fact], ...] = (
    ActionTaken,
    ActionsOffered,
    Answered,
    ChanceDrawn,
    ChanceDrawnInSecret,
    EntropyRevealed,
    MatchCreated,
    MatchEnded,
    MatchStarted,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
    SeatTaken,
    SeedRevealed,
    StandingAnswerDropped,
    StandingAnswerSet,
)
