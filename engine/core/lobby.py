"""Before a match starts: what seats bring to the dice, and what they committed to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.core.chance import entropy_commitment
from engine.core.facts import EntropyRevealed, MatchStarted
from engine.core.recorder import RebuildMismatch
from engine.core.refusals import Refusal
from engine.core.state import MatchState, empty_state, evolve
from engine.core.visibility import Fact, Seat

ENTROPY_LENGTHS: Final = range(16, 65)


def unrevealed(match: MatchState) -> tuple[Seat, ...]:
    """The seats whose entropy is committed to and not known yet."""
    return tuple(
        [each.seat for each in match.players if each.entropy_commitment and not each.entropy]
    )


def check_reveal(match: MatchState, fact: EntropyRevealed) -> Refusal | None:
    """Why a seat may not open its commitment so; None when it may."""
    if len(match.players) < match.seats:
        return Refusal("ENTROPY_TOO_EARLY")
    if fact.seat not in unrevealed(match):
        return Refusal("NOTHING_TO_REVEAL")
    promised = next(each.entropy_commitment for each in match.players if each.seat == fact.seat)
    if len(fact.entropy) not in ENTROPY_LENGTHS or entropy_commitment(fact.entropy) != promised:
        return Refusal("BAD_ENTROPY", "entropy")
    return None


def check_reveals(facts: Sequence[Fact]) -> None:
    """Every committed seat revealed what it had committed to, when all were seated, before the
    start. The facts are those of the lobby; raises RebuildMismatch.
    """
    match = empty_state()
    for index, fact in enumerate(facts):
        if isinstance(fact, EntropyRevealed) and check_reveal(match, fact) is not None:
            raise RebuildMismatch(index, fact, None)
        if isinstance(fact, MatchStarted) and unrevealed(match):
            raise RebuildMismatch(index, fact, None)
        match = evolve(match, fact)
