"""Structs to protobuf and back: nothing is lost, nothing unknown is guessed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from engine import (
    HIDDEN,
    Answer,
    Answered,
    Fact,
    MatchState,
    Option,
    Prompt,
    Prompted,
    PromptedInSecret,
    PromptId,
    Public,
    Seat,
    SeatTaken,
    decode_state,
    encode_state,
    evolve,
    fold,
    hidden_fields,
    redact,
    state_hash,
)
from services.common import factgen
from services.common.factcodec import (
    BadFact,
    Codec,
    EncodedFact,
    OutOfDate,
    UnknownFact,
    codec,
    decode_fact,
    encode_fact,
    state_from_any,
    state_to_any,
)
from services.common.factlock import Lock
from services.common.factschema import engine_roots, shapes_of
from tests.services.codec import toys
from tests.services.codec.makers import CORE, FACTS, SEATS, structs

URL = "type.googleapis.com/diceledger.facts.toys.v1."


@pytest.fixture(scope="module")
def toy_codec(tmp_path_factory: pytest.TempPathFactory) -> Codec:
    return toys.codec_for(tmp_path_factory.mktemp("proto"), toys.toy_shapes(), {})


@given(FACTS)
def test_every_fact_of_the_engine_comes_back(fact: Fact) -> None:
    assert decode_fact(*encode_fact(fact)) == fact


@given(FACTS, st.one_of(st.none(), SEATS))
def test_a_redacted_fact_comes_back_with_the_same_hidden_fields(
    fact: Fact, viewer: Seat | None
) -> None:
    seen = redact(fact, viewer)
    encoded, hidden = codec().encode_redacted(seen)
    assert hidden == hidden_fields(seen)
    assert decode_fact(*encoded, hidden) == seen


@given(st.data())
def test_every_state_of_the_engine_comes_back(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from([r for r in engine_roots() if not issubclass(r, Fact)]))
    state = _state(data, cls)
    packed = any_pb2.Any.FromString(codec().state_to_any(state).SerializeToString())
    assert codec().state_from_any(packed) == state


def _state(data: st.DataObject, cls: type[Any]) -> Any:
    """A random state; in that of a match lies one of some game, or none."""
    if not issubclass(cls, MatchState):
        return data.draw(structs(cls))
    tables = [r for r in engine_roots() if not issubclass(r, Fact | MatchState)]
    table = data.draw(structs(data.draw(st.sampled_from(tables)))) if tables else None
    return msgspec.structs.replace(data.draw(structs(cls)), table=table)


@given(st.lists(CORE, max_size=6), st.one_of(st.none(), SEATS))
def test_the_state_that_a_viewer_has_comes_back(facts: list[Fact], viewer: Seat | None) -> None:
    state = fold(redact(fact, viewer) for fact in facts)
    back = state_from_any(state_to_any(state))
    assert back == state
    assert state_hash(back) == state_hash(state)
    assert decode_state(encode_state(back)) == state


@given(FACTS)
def test_what_comes_back_has_the_same_canonical_encoding(fact: Fact) -> None:
    """State hashes are over encodings that leave out what *is* its default, not what equals it."""
    encode = msgspec.msgpack.Encoder(order="sorted").encode
    once = decode_fact(*encode_fact(fact))
    assert encode(once) == encode(decode_fact(*encode_fact(once)))
    fresh = Prompt(id=PromptId("p1"), seat=Seat(1), kind="k")
    asked = Prompted(Seat(1), fresh)
    assert encode(decode_fact(*encode_fact(asked))) == encode(asked)


@given(structs(toys.EverythingHappened))
def test_all_kinds_of_fields_come_back(fact: toys.EverythingHappened) -> None:
    assert _TOYS.decode_fact(*_TOYS.encode_fact(fact)) == fact
    for viewer in (None, fact.seat):
        seen = redact(fact, viewer)
        encoded, hidden = _TOYS.encode_redacted(seen)
        assert _TOYS.decode_fact(*encoded, hidden) == seen


_TOYS: Codec


@pytest.fixture(autouse=True, scope="module")
def _toys_for_hypothesis(toy_codec: Codec) -> None:
    # Hypothesis may not be given function-scoped fixtures; it finds the codec here.
    global _TOYS
    _TOYS = toy_codec


def a_fact(**changed: Any) -> toys.EverythingHappened:
    token = toys.Token()
    return toys.EverythingHappened(
        **{
            "seat": Seat(1), "is_true": False, "blob": b"", "card": "", "color": "red",
            "colors": (), "numbers": (), "token": token, "tokens": (), "maybe_number": None,
            "maybe_word": None, "maybe_token": None, "secret_number": 0, "secret_word": "no",
            "secret_maybe": None, "secret_token": token, "secret_cards": (), "seed": b"",
            **changed,
        }
    )  # fmt: skip


def test_what_is_zero_none_or_a_default_is_told_apart(toy_codec: Codec) -> None:
    for changed in (
        {"maybe_number": 0},
        {"maybe_number": None},
        {"maybe_token": toys.Token("blue", 0)},
        {"later": 0},
        {"later": 7},
        {"later_word": "x"},
        {"token": toys.Token("red", 0)},
        {"secret_maybe": 0},
    ):
        fact = a_fact(**changed)
        assert toy_codec.decode_fact(*toy_codec.encode_fact(fact)) == fact


def test_hidden_fields_deep_in_a_state_come_back(toy_codec: Codec) -> None:
    mine = toys.Hand(seat=Seat(1), cards=(toys.CardId("wings"),), best=None)
    theirs = toys.Hand(seat=Seat(2), cards=HIDDEN, best=HIDDEN, token=HIDDEN, is_open=HIDDEN)
    half = toys.Hand(seat=Seat(3), cards=HIDDEN, best=toys.CardId("jets"), is_open=False)
    state = toys.Table(turn=3, hands=(mine, theirs, half), top=theirs)
    assert toy_codec.state_from_any(toy_codec.state_to_any(state)) == state


def test_a_fact_without_fields_comes_back(toy_codec: Codec) -> None:
    assert toy_codec.encode_fact(toys.NothingHappened()) == EncodedFact(
        URL + "NothingHappened", b""
    )
    assert toy_codec.decode_fact(URL + "NothingHappened", b"") == toys.NothingHappened()


def test_a_hidden_fact_cannot_be_logged(toy_codec: Codec) -> None:
    with pytest.raises(ValueError, match="secret_number"):
        toy_codec.encode_fact(redact(a_fact(), None))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_over_64_bits_cannot_be_logged(toy_codec: Codec, number: int) -> None:
    with pytest.raises(ValueError):
        toy_codec.encode_fact(a_fact(numbers=(number,)))


@pytest.mark.parametrize(
    "url",
    [
        "", "EverythingHappened", URL, URL + "Unheard", URL + "Token", URL + "Table",
        "type.example.com/diceledger.facts.toys.v1.NothingHappened",
    ],
)  # fmt: skip
def test_an_unknown_type_is_unknown(toy_codec: Codec, url: str) -> None:
    with pytest.raises(UnknownFact) as caught:
        toy_codec.decode_fact(url, b"")
    assert caught.value.type_url == url


def test_a_fact_is_no_state_and_a_game_is_no_match(toy_codec: Codec) -> None:
    with pytest.raises(UnknownFact):
        toy_codec.state_from_any(any_pb2.Any(type_url=URL + "NothingHappened"))
    holding = codec().state_to_any(Prompt(id=PromptId("p1"), seat=Seat(1), kind="k"))
    with pytest.raises(BadFact, match="not the state of a match"):
        state_from_any(holding)


def test_a_field_of_newer_software_is_not_dropped_in_silence(toy_codec: Codec) -> None:
    """At the top and inside: folding without it would give another state than the writer had."""
    with pytest.raises(UnknownFact, match="NothingHappened has an unknown field 5"):
        toy_codec.decode_fact(URL + "NothingHappened", b"\x28\x01")
    value = toy_codec.encode_fact(a_fact()).value
    deep = value + b"\x42\x02\x38\x01"  # field 8 is the token; merged into it, a field 7
    with pytest.raises(UnknownFact, match="Token has an unknown field 7"):
        toy_codec.decode_fact(URL + "EverythingHappened", deep)


def test_a_word_of_newer_software_is_not_taken(toy_codec: Codec) -> None:
    encoded = toy_codec.encode_fact(a_fact(color="mauve"))
    with pytest.raises(UnknownFact, match="mauve"):
        toy_codec.decode_fact(*encoded)
    with pytest.raises(UnknownFact, match="mauve"):
        toy_codec.decode_fact(*toy_codec.encode_fact(a_fact(colors=("red", "mauve"))))


def test_rubbish_is_no_fact(toy_codec: Codec) -> None:
    with pytest.raises(BadFact, match="not the bytes"):
        toy_codec.decode_fact(URL + "EverythingHappened", b"\xff\xff\xff")
    with pytest.raises(BadFact, match="token is missing"):
        toy_codec.decode_fact(URL + "EverythingHappened", b"\x2a\x03red")


def test_only_what_may_be_hidden_may_be_said_to_be(toy_codec: Codec) -> None:
    encoded = toy_codec.encode_fact(a_fact())
    for name in ("seat", "no_such_field"):
        with pytest.raises(BadFact, match="cannot be hidden"):
            toy_codec.decode_fact(*encoded, (name,))


def test_a_fact_from_before_a_field_was_added_has_its_default(
    tmp_path: Path, toy_codec: Codec
) -> None:
    """And one from before a field was removed is read without it."""

    @toys.of_engine
    class NothingHappened(Fact, frozen=True, tag="nothing_happened"):
        """A fact without fields, once; `since` and `gone` were its fields for a while."""

        number: Public[int] = 3
        hand: Public[toys.Hand] = toys.Hand()
        words: Public[tuple[str, ...]] = ()

    written = toys.codec_for(tmp_path, shapes_of([NothingHappened]), {})
    old = NothingHappened(5, toys.Hand(seat=Seat(4)), ("a", "b"))
    assert written.decode_fact(URL + "NothingHappened", b"") == NothingHappened()
    texts = factgen.generated(shapes_of([NothingHappened]), {})
    locks = {area: Lock.loads(lock) for area, (_, lock) in texts.items()}
    later = toys.codec_for(tmp_path / "later", toys.toy_shapes(), locks)
    assert later.decode_fact(*written.encode_fact(old)) == toys.NothingHappened()


def test_generated_code_that_does_not_fit_is_refused_at_once() -> None:
    shapes = shapes_of([toys.NothingHappened])
    for found in (ImportError(), AttributeError(), KeyError()):

        def missing(_: str, error: Exception = found) -> type[Message]:
            raise error

        with pytest.raises(OutOfDate, match=r"toys\.v1\.NothingHappened is out of date"):
            Codec(shapes, missing)
    with pytest.raises(OutOfDate):
        Codec(shapes_of([SeatTaken]), lambda _: any_pb2.Any)


def test_a_game_goes_on_from_a_state_that_was_on_the_wire() -> None:
    prompt = Prompt(id=PromptId("p1"), seat=Seat(1), kind="k", options=(Option("a"),))
    asked = PromptedInSecret(Seat(1), prompt.id, "k", "select", "", prompt)
    before = fold([SeatTaken(Seat(1), "ann", "Ann", b""), redact(asked, Seat(2))])
    answer = redact(Answered(Seat(1), prompt.id, Answer(picks=("a",))), None)
    after = evolve(state_from_any(state_to_any(before)), answer)
    assert after == evolve(before, answer)
    assert after.prompts == ()
