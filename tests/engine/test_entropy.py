"""Seats commit to their entropy when they join, and reveal it once nobody has a choice left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from engine import (
    ChanceDrawn,
    ChanceDrawnInSecret,
    EntropyRevealed,
    Fact,
    MatchStarted,
    RebuildMismatch,
    Refusal,
    SeatTaken,
    Session,
    derive_seed,
    describe_fact,
    empty_state,
    entropy_commitment,
    evolve,
    find_game,
    fold,
    recompute,
    state_hash,
)
from engine.core.state import encode_state
from engine.core.visibility import Seat

ANN, BEN, CAT = Seat(1), Seat(2), Seat(3)
MINE, YOURS = b"the entropy of ann", b"the entropy of ben"
SEED = derive_seed(b"tests", "k", "fair")


def lobby(seats: int = 2) -> tuple[Session, list[Fact]]:
    """An empty lobby."""
    session, step = Session.create(
        find_game("king_of_tokyo"), match_id="fair", host="ann", seats=seats, seed=SEED
    )
    return session, list(step.facts)


def committed(*entropies: bytes, seats: int = 0) -> tuple[Session, list[Fact]]:
    """A lobby with seats that committed to these; an empty one brought nothing."""
    session, facts = lobby(seats or len(entropies))
    for number, entropy in enumerate(entropies, 1):
        promise = entropy_commitment(entropy) if entropy else b""
        step = session.join(f"p{number}", f"P{number}", entropy_commitment=promise)
        facts += step.facts
    return session, facts


def started(*entropies: bytes) -> list[Fact]:
    """The facts of a match from its lobby to its first question."""
    session, facts = committed(*entropies)
    for number, entropy in enumerate(entropies, 1):
        facts += session.reveal(Seat(number), entropy).facts if entropy else ()
    return [*facts, *session.start().facts]


def refused(act: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        act()
    return caught.value


def test_entropy_is_revealed_only_when_every_seat_is_taken() -> None:
    """Whoever joins afterwards could choose its own to suit it."""
    session, _ = committed(MINE, seats=2)
    assert refused(lambda: session.reveal(ANN, MINE)).reason == "ENTROPY_TOO_EARLY"
    session.join("ben", "Ben")
    assert session.reveal(ANN, MINE).facts == (EntropyRevealed(ANN, MINE),)
    assert session.state.players[0].entropy == MINE


def test_only_what_was_committed_to_can_be_revealed() -> None:
    session, _ = committed(MINE, YOURS)
    before = encode_state(session.state)
    for wrong in (YOURS, MINE + b"!", b""):
        assert refused(lambda wrong=wrong: session.reveal(ANN, wrong)).reason == "BAD_ENTROPY"  # type: ignore[misc]  # bound in the loop
    assert encode_state(session.state) == before


def test_entropy_is_revealed_once_and_only_by_those_who_committed() -> None:
    session, _ = committed(MINE, b"")
    session.reveal(ANN, MINE)
    for seat in (ANN, BEN, CAT):
        refusal = refused(lambda seat=seat: session.reveal(seat, MINE))  # type: ignore[misc]  # bound in the loop
        assert refusal.reason == "NOTHING_TO_REVEAL"


def test_a_match_waits_for_every_reveal() -> None:
    session, _ = committed(MINE, YOURS)
    session.reveal(BEN, YOURS)
    refusal = refused(session.start)
    assert (refusal.reason, refusal.detail) == ("ENTROPY_MISSING", "1")
    session.reveal(ANN, MINE)
    assert session.start().facts[0] == MatchStarted()
    assert refused(lambda: session.reveal(ANN, MINE)).reason == "NOT_IN_LOBBY"


@pytest.mark.parametrize("promise", [b"short", b"p" * 33])
def test_a_commitment_is_a_sha_256(promise: bytes) -> None:
    session, _ = lobby()
    refusal = refused(lambda: session.join("ann", "Ann", entropy_commitment=promise))
    assert (refusal.reason, refusal.field) == ("BAD_ENTROPY", "entropy_commitment")


def test_a_seat_brings_entropy_or_a_commitment_not_both() -> None:
    session, _ = lobby()
    both = refused(lambda: session.join("ann", "Ann", MINE, entropy_commitment=b"p" * 32))
    assert both.reason == "BAD_ENTROPY"


def test_nothing_changes_for_seats_that_commit_to_nothing() -> None:
    """Old logs keep their encodings and hashes."""
    old = SeatTaken(ANN, "ann", "Ann", MINE)
    assert b"entropy_commitment" not in encode_state(evolve(empty_state(), old))
    assert SeatTaken(ANN, "ann", "Ann", MINE, b"") == old


def values(facts: Sequence[Fact]) -> list[object]:
    drawn = (ChanceDrawn, ChanceDrawnInSecret)
    return [fact.values for fact in facts if isinstance(fact, drawn)]


def test_the_last_to_join_cannot_choose_its_dice() -> None:
    """It knows the seed and tries entropies while all that it sees of the other is a commitment:
    what it finds for a guess of the other's says nothing about the rolls that will be made, and
    once the other is revealed, its own is bound.
    """
    session, facts = committed(MINE, seats=2)
    public = encode_state(session.state)
    assert MINE not in public
    assert committed(MINE, seats=2)[1] == facts
    choice = b"chosen by the friend"
    real = started(MINE, choice)
    draw = next(fact for fact in real if isinstance(fact, ChanceDrawn | ChanceDrawnInSecret))
    assert recompute(draw, SEED, "fair", (MINE, choice)) == draw.values
    # The same choice against other entropies: nothing of the draw holds.
    rolls = [values(started(bytes([n]) * 16, choice)) for n in range(8)]
    assert len({str(each) for each in [*rolls, values(real)]}) == 9
    session.join("friend", "Friend", entropy_commitment=entropy_commitment(choice))
    session.reveal(ANN, MINE)
    other = refused(lambda: session.reveal(BEN, b"another, better one"))
    assert other.reason == "BAD_ENTROPY"


def test_a_log_with_reveals_is_rebuilt_and_verified() -> None:
    facts = started(MINE, YOURS)
    rebuilt = Session.rebuild(facts, seed=SEED)
    assert state_hash(rebuilt.state) == state_hash(fold(facts))
    Session.verify_rules(facts)
    half = next(n for n, fact in enumerate(facts) if isinstance(fact, EntropyRevealed)) + 1
    waiting = Session.rebuild(facts[:half], seed=SEED)
    waiting.reveal(BEN, YOURS)
    assert waiting.start().facts == tuple(facts[half + 1 :])


def test_a_reveal_is_told() -> None:
    state = fold(started(MINE, YOURS))
    told = describe_fact(state, EntropyRevealed(BEN, YOURS))
    assert told == "P2 reveals its share in the dice."
    assert describe_fact(state, EntropyRevealed(BEN, YOURS), "zh").startswith("P2")


def forged_value(facts: list[Fact], at: int) -> int:
    facts[at] = EntropyRevealed(ANN, b"another, better one")
    return at


def forged_early(facts: list[Fact], at: int) -> int:
    facts.insert(2, facts.pop(at))
    return 2


def forged_twice(facts: list[Fact], at: int) -> int:
    facts.insert(at, facts[at])
    return at + 1


def forged_missing(facts: list[Fact], at: int) -> int:
    del facts[at]
    return next(n for n, fact in enumerate(facts) if isinstance(fact, MatchStarted))


@pytest.mark.parametrize("forge", [forged_value, forged_early, forged_twice, forged_missing])
def test_a_forged_reveal_is_found(forge: Callable[[list[Fact], int], int]) -> None:
    """Another value, before all were seated, twice, left out: the place is named."""
    facts = started(MINE, YOURS)
    at = next(n for n, fact in enumerate(facts) if isinstance(fact, EntropyRevealed))
    expected = forge(facts, at)
    for check in (lambda: Session.rebuild(facts, seed=SEED), lambda: Session.verify_rules(facts)):
        with pytest.raises(RebuildMismatch) as caught:
            check()
        assert caught.value.index == expected
