"""The kernel, proven on a tiny game with hidden information."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, cast

import msgspec
import pytest

from engine import (
    HIDDEN,
    Answer,
    Answered,
    AnyGame,
    ChanceDrawnInSecret,
    Fact,
    MatchEnded,
    MatchStarted,
    Option,
    Prompt,
    PromptedInSecret,
    PromptId,
    Public,
    RebuildMismatch,
    Refusal,
    Seat,
    Secret,
    SeedMissing,
    SeedRevealed,
    Session,
    UndeclaredVisibility,
    UnknownRules,
    WrongSeed,
    catalogue,
    check_answer,
    commitment,
    decode_state,
    derive_seed,
    describe_fact,
    describe_prompt,
    encode_state,
    evolve,
    fact_types,
    find_game,
    fold,
    has_hidden,
    hidden_fields,
    recompute,
    redact,
    state_hash,
)
from engine.core.chance import draw_from
from tests.engine.high_roll import HIGH_ROLL, CardDealt, HighRollState, RoundBegan

GAME = cast("AnyGame", HIGH_ROLL)
SEED = derive_seed(b"master", "k1", "m1")


def begin(seats: int = 3) -> tuple[Session, list[Fact]]:
    session, step = Session.create(
        GAME, match_id="m1", host="host", seats=seats, seed=SEED, key_id="k1"
    )
    facts = list(step.facts)
    for each in range(seats):
        facts += session.join(f"player{each}", f"Name{each}", bytes([each]) * 16).facts
    facts += session.start().facts
    return session, facts


def play(session: Session, facts: list[Fact]) -> None:
    choices = count()
    while session.waiting:
        prompt = session.waiting[-1]
        pick = ("swap", "keep")[next(choices) % 2]
        facts += session.answer(prompt.id, prompt.seat, Answer(picks=(pick,))).facts


def test_a_match_runs_to_its_end_and_live_equals_the_fold() -> None:
    session, facts = begin()
    play(session, facts)
    assert session.state.status == "finished"
    assert session.state == fold(facts)
    assert session.facts == len(facts)
    assert isinstance(facts[-2], SeedRevealed)
    with pytest.raises(Refusal, match="MATCH_FINISHED"):
        session.answer("p1", Seat(1), Answer())


def test_a_session_rebuilt_at_every_commit_equals_the_live_one() -> None:
    """Also in the middle of a question to several seats: the given answers survive."""
    session, facts = begin()
    while session.waiting:
        again = Session.rebuild(facts, seed=SEED, game=GAME)
        assert again.state == session.state
        assert again.waiting == session.waiting
        prompt = session.waiting[0]
        answer = Answer(picks=("swap",))
        step = session.answer(prompt.id, prompt.seat, answer)
        assert again.answer(prompt.id, prompt.seat, answer) == step
        facts += step.facts
    Session.verify_rules(facts, game=GAME)


def test_rebuild_in_the_lobby() -> None:
    session, step = Session.create(GAME, match_id="m1", host="h", seats=2, seed=SEED)
    facts = step.facts + session.join("a", "A").facts
    again = Session.rebuild(facts, seed=SEED, game=GAME)
    assert again.join("b", "B") == session.join("b", "B")


def test_rebuild_names_the_first_difference() -> None:
    session, facts = begin()
    play(session, facts)
    index = next(i for i, fact in enumerate(facts) if isinstance(fact, CardDealt))
    wrong = msgspec.structs.replace(facts[index], card=99)
    with pytest.raises(RebuildMismatch) as mismatch:
        Session.verify_rules([*facts[:index], wrong, *facts[index + 1 :]], game=GAME)
    assert mismatch.value.index == index
    assert mismatch.value.expected == wrong
    assert mismatch.value.got == facts[index]
    got = cast("CardDealt", facts[index]).card
    told = f"fact {index}: CardDealt card: the log has 99, the rules gave {got}"
    assert str(mismatch.value) == told


def test_a_difference_is_told_without_what_is_equal() -> None:
    """In a long list the first difference only."""
    _, facts = begin()
    prompted = next(fact for fact in facts if isinstance(fact, PromptedInSecret))
    prompt = prompted.prompt
    assert isinstance(prompt, Prompt)
    shorter = msgspec.structs.replace(prompt, options=prompt.options[:1], low=0)
    other = msgspec.structs.replace(prompted, prompt=shorter)
    assert str(RebuildMismatch(7, other, prompted)) == (
        "fact 7: PromptedInSecret prompt.low: the log has 0, the rules gave 1; "
        "prompt.options[1]: the log has None, the rules gave Option(id='keep', subject='')"
    )
    assert str(RebuildMismatch(7, None, prompted)).startswith("fact 7: the log has None, the rules")


def test_rebuild_refuses_a_log_that_ends_inside_a_commit() -> None:
    _, facts = begin()
    with pytest.raises(RebuildMismatch) as mismatch:
        Session.rebuild(facts[:-1], seed=SEED, game=GAME)
    assert mismatch.value.expected is None


def test_a_match_of_newer_rules_is_refused() -> None:
    _, facts = begin()
    newer = msgspec.structs.replace(facts[0], revision=GAME.revision + 1)
    with pytest.raises(UnknownRules, match="revision 2"):
        Session.rebuild([newer, *facts[1:]], seed=SEED, game=GAME)


def test_a_match_older_than_an_option_plays_with_its_default() -> None:
    _, facts = begin()
    older = msgspec.structs.replace(facts[0], options=())
    session = Session.rebuild([older, *facts[1:]], seed=SEED, game=GAME)
    assert session.waiting


def test_a_match_may_be_abandoned_in_the_lobby_and_while_it_runs() -> None:
    """Without winners, with the seed revealed; the log of it rebuilds and verifies."""
    lobby, created = Session.create(GAME, match_id="m1", host="h", seats=2, seed=SEED)
    step = lobby.abandon()
    assert step.facts == (SeedRevealed(SEED), MatchEnded((), "abandoned"))
    assert lobby.state == fold(created.facts + step.facts)
    with pytest.raises(Refusal, match="MATCH_FINISHED"):
        lobby.join("a", "A")
    session, facts = begin(3)
    facts += session.answer("p2", Seat(2), Answer(picks=("swap",))).facts
    facts += session.abandon("nobody there").facts
    assert session.state == fold(facts)
    assert (session.waiting, session.state.end_reason) == ((), "nobody there")
    again = Session.rebuild(facts, seed=SEED, game=GAME)
    assert again.state == session.state
    Session.verify_rules(facts, game=GAME)
    for closed in (session, again):
        with pytest.raises(Refusal, match="MATCH_FINISHED"):
            closed.abandon()


def test_a_standing_answer_is_given_unasked_and_is_nobody_elses_business() -> None:
    session, facts = begin(3)
    keep = Answer(picks=("keep",))
    facts += session.set_standing_answer(Seat(2), "swap", keep).facts
    assert [prompt.seat for prompt in session.waiting] == [1, 3]
    assert facts[-1] == Answered(Seat(2), PromptId("p2"), keep)
    assert hidden_fields(redact(facts[-2], Seat(1))) == ("standing",)
    assert fold(redact(fact, Seat(1)) for fact in facts).standing == ()
    for seat in (1, 3):
        prompt = next(each for each in session.waiting if each.seat == seat)
        facts += session.answer(prompt.id, Seat(seat), keep).facts
    assert [prompt.seat for prompt in session.waiting] == [1, 3]
    facts += session.set_standing_answer(Seat(2), "swap", None).facts
    assert session.state.standing == ()
    again = Session.rebuild(facts, seed=SEED, game=GAME)
    assert (again.state, again.waiting) == (session.state, session.waiting)
    Session.verify_rules(facts, game=GAME)


def test_seats_that_leave_all_to_standing_answers_do_not_fill_one_commit() -> None:
    session, facts = begin(2)
    for seat in (1, 2):
        step = session.set_standing_answer(Seat(seat), "swap", Answer(picks=("swap",)))
        facts += step.facts
        assert len(step.facts) < 500
    assert session.state == fold(facts)
    assert Session.rebuild(facts, seed=SEED, game=GAME).state == session.state


def test_a_standing_answer_that_is_not_legal_is_not_given() -> None:
    session, _ = begin(2)
    step = session.set_standing_answer(Seat(1), "swap", Answer(number=7))
    assert [prompt.seat for prompt in step.waiting] == [1, 2]
    for arguments in ((Seat(9), "swap", None), (Seat(1), "", None)):
        with pytest.raises(Refusal, match="BAD_STANDING_ANSWER"):
            session.set_standing_answer(*arguments)
    with pytest.raises(Refusal, match="BAD_STANDING_ANSWER"):
        session.set_standing_answer(Seat(1), "swap", Answer(), below=-1)


def test_a_log_that_ends_with_a_reveal_but_no_end_is_refused() -> None:
    session, facts = begin(2)
    facts += session.abandon().facts
    with pytest.raises(RebuildMismatch):
        Session.rebuild(facts[:-1], seed=SEED, game=GAME)


def test_without_the_seed_a_session_is_read_only() -> None:
    session, facts = begin(2)
    reader = Session.rebuild(facts, seed=None, game=GAME)
    assert reader.state == session.state
    reader.answer("p1", Seat(1), Answer(picks=("swap",)))
    with pytest.raises(SeedMissing):
        reader.answer("p2", Seat(2), Answer(picks=("swap",)))
    with pytest.raises(WrongSeed):
        Session.rebuild(facts, seed=b"other", game=GAME)


def test_answers_are_hidden_until_all_have_answered() -> None:
    session, facts = begin(2)
    step = session.answer("p2", Seat(2), Answer(picks=("swap",)))
    assert step.facts == (Answered(Seat(2), PromptId("p2"), Answer(picks=("swap",))),)
    assert [prompt.id for prompt in step.waiting] == ["p1"]
    assert redact(step.facts[0], Seat(1)) == Answered(Seat(2), PromptId("p2"), HIDDEN)
    with pytest.raises(Refusal, match="PROMPT_CLOSED"):
        session.answer("p2", Seat(2), Answer(picks=("swap",)))
    assert len(facts) + 1 == session.facts


def test_a_view_never_holds_what_its_viewer_may_not_know() -> None:
    session, facts = begin()
    for viewer in (Seat(1), Seat(2), Seat(3), None):
        view = fold(redact(fact, viewer) for fact in facts)
        table = cast("HighRollState", view.table)
        assert [hand.card == HIDDEN for hand in table.hands] == [
            hand.seat != viewer for hand in table.hands
        ]
        for prompt in view.prompts:
            assert prompt.concealed == (prompt.seat != viewer)
            assert bool(prompt.options) == (prompt.seat == viewer)
        assert decode_state(encode_state(view)) == view
        assert view.fact_count == session.facts
    assert state_hash(fold(facts)) != state_hash(fold(redact(fact, None) for fact in facts))


def test_other_secrets_give_the_same_redacted_stream() -> None:
    """Non-interference: what seat 1 sees does not depend on the other seats' secret values."""
    _, facts = begin()
    other = [
        msgspec.structs.replace(fact, card=3)
        if isinstance(fact, CardDealt) and fact.seat != 1
        else msgspec.structs.replace(fact, values=(2,))
        if isinstance(fact, ChanceDrawnInSecret) and fact.audience != (1,)
        else fact
        for fact in facts
    ]
    encode = msgspec.msgpack.encode
    for left, right in zip(facts, other, strict=True):
        assert encode(redact(left, Seat(1))) == encode(redact(right, Seat(1)))


def test_hidden_fields_and_types() -> None:
    fact = CardDealt(Seat(2), 5)
    assert redact(fact, Seat(2)) is fact
    assert hidden_fields(redact(fact, None)) == ("card",)
    assert hidden_fields(fact) == ()
    assert has_hidden(CardDealt)
    assert not has_hidden(RoundBegan)
    assert has_hidden(PromptedInSecret)


def test_an_undeclared_field_does_not_load() -> None:
    with pytest.raises(UndeclaredVisibility, match="leak"):

        class Leaky(Fact, frozen=True, tag="leaky"):
            seat: Public[Seat]
            leak: int


def test_secret_needs_an_owner() -> None:
    with pytest.raises(UndeclaredVisibility, match="neither seat nor audience"):

        class Ownerless(Fact, frozen=True, tag="ownerless"):
            card: Secret[int]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda s: s.join("player0", "X"), "ALREADY_SEATED"),
        (lambda s: s.join("x", "X", seat=Seat(1)), "SEAT_TAKEN"),
        (lambda s: s.join("x", "X", seat=Seat(9)), "SEAT_TAKEN"),
        (lambda s: s.join("x", ""), "BAD_NAME"),
        (lambda s: s.join("x", "x" * 41), "BAD_NAME"),
        (lambda s: s.join("x", "X", b"short"), "BAD_ENTROPY"),
        (lambda s: s.start(), "NOT_ENOUGH_PLAYERS"),
        (lambda s: s.answer("p1", Seat(1), Answer()), "MATCH_NOT_STARTED"),
    ],
)
def test_refusals_in_the_lobby(call: Callable[[Session], object], reason: str) -> None:
    session, _ = Session.create(GAME, match_id="m1", host="h", seats=2, seed=SEED)
    session.join("player0", "A")
    before = session.state
    with pytest.raises(Refusal) as refusal:
        call(session)
    assert refusal.value.reason == reason
    assert refusal.value.message("zh") != refusal.value.message("en")
    assert session.state == before


def test_refusals_once_the_match_runs() -> None:
    session, _ = begin(2)
    before = session.state
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: session.join("x", "X"), "NOT_IN_LOBBY"),
        (lambda: session.start(), "NOT_IN_LOBBY"),
        (lambda: session.answer("p9", Seat(1), Answer()), "PROMPT_CLOSED"),
        (lambda: session.answer("p1", Seat(2), Answer(picks=("swap",))), "NOT_YOUR_PROMPT"),
        (lambda: session.answer("p1", Seat(1), Answer()), "ILLEGAL_ANSWER"),
    )
    for call, reason in calls:
        with pytest.raises(Refusal) as refusal:
            call()
        assert refusal.value.reason == reason
    assert session.state == before


def test_a_full_lobby_and_unknown_things_are_refused_with_the_legal_ones() -> None:
    session, _ = Session.create(GAME, match_id="m1", host="h", seats=2, seed=SEED)
    session.join("a", "A", seat=Seat(2))
    session.join("b", "B")
    with pytest.raises(Refusal, match="MATCH_FULL"):
        session.join("c", "C")
    usual: dict[str, Any] = {"match_id": "m", "host": "h", "seats": 2, "seed": SEED}
    for arguments, reason, legal in (
        ({"seats": 6}, "BAD_SEAT_COUNT", ("2", "3", "4", "5")),
        ({"options": {"x": "y"}}, "UNKNOWN_OPTION", ("deck",)),
        ({"options": {"deck": "y"}}, "BAD_OPTION_VALUE", ("small", "large")),
        ({"preset": "slow"}, "UNKNOWN_OPTION", ("quick",)),
        ({"expansions": ("moon",)}, "UNKNOWN_OPTION", ()),
    ):
        with pytest.raises(Refusal) as refusal:
            Session.create(GAME, **{**usual, **arguments})
        assert (refusal.value.reason, refusal.value.legal) == (reason, legal)
    with pytest.raises(Refusal, match="UNKNOWN_GAME"):
        find_game("chess")
    assert "test_high_roll" not in catalogue()


def test_every_draw_is_recomputable_after_the_reveal() -> None:
    session, facts = begin()
    play(session, facts)
    state = session.state
    assert commitment(state.seed) == state.commitment
    entropies = [player.entropy for player in state.players]
    draws = [fact for fact in facts if isinstance(fact, ChanceDrawnInSecret)]
    for index, fact in enumerate(draws):
        assert fact.number == index
        assert fact.values == recompute(fact, state.seed, "m1", entropies)
    other = [*entropies[:-1], b"another entropy!"]
    changed = [recompute(fact, state.seed, "m1", other) != fact.values for fact in draws]
    assert any(changed)


ALLOCATE: dict[str, object] = {"form": "allocate", "low": 2, "high": 3, "limits": (2, 1)}


def _question(**changes: object) -> Prompt:
    options = (Option("a"), Option("b"))
    return msgspec.structs.replace(
        Prompt(PromptId("p1"), Seat(1), "kind", options=options), **changes
    )


@pytest.mark.parametrize(
    ("changes", "answer", "legal"),
    [
        ({"low": 0, "high": 1}, Answer(), True),
        ({"low": 1, "high": 2}, Answer(picks=("b", "a")), True),
        ({"low": 1, "high": 2}, Answer(), False),
        ({"low": 1, "high": 2}, Answer(picks=("a", "a")), False),
        ({"low": 1, "high": 1}, Answer(picks=("c",)), False),
        ({"low": 0, "high": 1}, Answer(number=1), False),
        ({"form": "number", "low": 2, "high": 4}, Answer(number=4), True),
        ({"form": "number", "low": 2, "high": 4}, Answer(number=5), False),
        ({"form": "number", "low": 2, "high": 4}, Answer(), False),
        (ALLOCATE, Answer(amounts=(2, 0)), True),
        (
            {"form": "allocate", "low": 2, "high": 3, "limits": (2, 1)},
            Answer(amounts=(0, 2)),
            False,
        ),
        (
            {"form": "allocate", "low": 2, "high": 3, "limits": (2, 1)},
            Answer(amounts=(1, 0)),
            False,
        ),
        (ALLOCATE, Answer(amounts=(2,)), False),
        (ALLOCATE, Answer(picks=("a",)), False),
    ],
)
def test_answers_are_checked_against_their_prompt(
    changes: dict[str, object], answer: Answer, legal: bool
) -> None:
    refusal = check_answer(_question(**changes), answer)
    assert (refusal is None) == legal


def test_words_for_people() -> None:
    session, facts = begin()
    prompt = session.waiting[0]
    assert describe_prompt(GAME, prompt, "zh").option_labels == ("换", "留")
    dealt = next(fact for fact in facts if isinstance(fact, CardDealt))
    line = describe_fact(session.state, redact(dealt, None), "en", game=GAME)
    assert line == "Name0 gets something hidden."
    assert describe_fact(session.state, MatchStarted(), "en", game=GAME) == "The match begins."
    assert describe_fact(session.state, facts[-1], "en", game=GAME) == ""


def test_evolve_one_by_one_equals_fold() -> None:
    _, facts = begin()
    state = fold(())
    for fact in facts:
        state = evolve(state, fact)
    assert state == fold(facts)
    assert decode_state(encode_state(state)) == state


def test_fact_types_are_sorted_core_first() -> None:
    tags = [str(each.__struct_config__.tag) for each in fact_types(GAME)]
    assert tags[:2] == ["action_taken", "actions_offered"]
    assert tags[-5:] == sorted(tags[-5:])


@pytest.mark.parametrize("bound", [1, 2, 6, 66, 3_000_000_000, 1 << 32])
def test_draws_are_rejection_sampled_from_the_words_of_successive_blocks(bound: int) -> None:
    """The scheme, written down independently: every third-party verifier does this."""
    import hmac

    start = b"start"
    for number, size in ((0, 1), (7, 6), (8, 19)):
        limit = 2**32 - 2**32 % bound
        wanted: list[int] = []
        block = 0
        while len(wanted) < size:
            message = start + number.to_bytes(8, "big") + block.to_bytes(4, "big")
            digest = hmac.new(b"seed", message, "sha256").digest()
            words = [int.from_bytes(digest[at : at + 4], "big") for at in range(0, 32, 4)]
            wanted += [word % bound for word in words if word < limit]
            block += 1
        assert draw_from(b"seed", start, number, bound, size) == tuple(wanted[:size])
