"""Whole matches through everything here: the log, every viewer's stream, states, the file."""

import random
from functools import cache

import msgspec
import pytest

from diceledger.log.v1 import commit_pb2
from diceledger.match.v1 import match_pb2
from engine import Fact, Seat, Session, Step, catalogue, fold, redact, state_hash
from services.client.bots import random_answer
from services.common.bundle import bundle_chunks, load_bundle
from services.common.commits import Cause, ParsedCommit, Ruleset, make_commit, parse_commit
from services.common.factcodec import state_from_any, state_to_any
from services.common.prompts_wire import (
    answer_from_wire,
    answer_to_wire,
    prompt_from_wire,
    prompt_to_wire,
)
from services.common.redaction import check_redacted_chain, redact_commit, restore_facts

GAMES = [
    (game.id, seats)
    for game in catalogue().values()
    for seats in sorted({game.seats_low, game.seats_high})
]


class Recorder:
    """Writes the steps of a session as a match process does."""

    def __init__(self, game: str) -> None:
        self.values: list[bytes] = []
        self.facts: list[Fact] = []
        self._ruleset = Ruleset(game)
        self._last: ParsedCommit | None = None

    def write(self, step: Step, cause: Cause) -> None:
        last = self._last
        self._last = make_commit(
            log_id="log-1",
            partition=0,
            writer="match-0",
            epoch=1,
            match_id="m" * 26,
            sequence=len(self.values) + 1,
            first_fact=len(self.facts),
            facts=step.facts,
            cause=cause,
            previous_hash=last.hash if last else b"",
            ruleset=self._ruleset,
            final=not step.waiting and cause.command == "answer",
        )
        self.values.append(self._last.value)
        self.facts += step.facts


@cache
def played(game: str, seats: int) -> Recorder:
    """A match between players who answer at random, every question going over the wire."""
    dice = random.Random(f"{game} {seats}")
    seed = dice.randbytes(32)
    session, step = Session.create(
        catalogue()[game], match_id="m" * 26, host="host", seats=seats, seed=seed
    )
    recorder = Recorder(game)
    recorder.write(step, Cause(request_id="create", actor="host", command="create"))
    for seat in range(1, seats + 1):
        step = session.join(f"player-{seat}", f"Player {seat}", dice.randbytes(16))
        cause = Cause(request_id="join", actor=f"player-{seat}", seat=seat, command="join")
        recorder.write(step, cause)
    step = session.start()
    recorder.write(step, Cause(request_id="start", actor="host", command="start"))
    while session.waiting:
        prompt = dice.choice(session.waiting)
        wire = prompt_to_wire(session.state, prompt, dice.choice(("en", "zh")))
        asked = prompt_from_wire(match_pb2.Prompt.FromString(wire.SerializeToString()))
        assert asked == prompt
        sent = answer_to_wire(random_answer(asked, dice), asked.form).SerializeToString()
        answer = answer_from_wire(match_pb2.Answer.FromString(sent))
        step = session.answer(prompt.id, prompt.seat, answer)
        actor = f"player-{prompt.seat}"
        recorder.write(
            step, Cause(request_id=prompt.id, actor=actor, seat=prompt.seat, answer=sent)
        )
    assert state_hash(session.state) == state_hash(fold(recorder.facts))
    return recorder


@pytest.mark.parametrize(("game", "seats"), GAMES)
def test_the_log_gives_back_the_match(game: str, seats: int) -> None:
    recorder = played(game, seats)
    read = [fact for value in recorder.values for fact in parse_commit(value).facts()]
    assert read == recorder.facts
    assert state_hash(fold(read)) == state_hash(fold(recorder.facts))
    Session.verify_rules(read)


@pytest.mark.parametrize(("game", "seats"), GAMES)
def test_every_viewer_gets_its_own_view_and_can_check_it(game: str, seats: int) -> None:
    recorder = played(game, seats)
    for viewer in (None, *map(Seat, range(1, seats + 1))):
        previous = b""
        seen: list[Fact] = []
        for sequence, value in enumerate(recorder.values, 1):
            wire = redact_commit(parse_commit(value), viewer).SerializeToString()
            arrived = commit_pb2.RedactedCommit.FromString(wire)
            previous = check_redacted_chain(previous, arrived, sequence=sequence)
            seen += restore_facts(arrived)
        assert seen == [redact(fact, viewer) for fact in recorder.facts]
        assert state_hash(fold(seen)) == state_hash(fold(redact(f, viewer) for f in recorder.facts))


@pytest.mark.parametrize(("game", "seats"), GAMES)
def test_every_state_on_the_way_comes_back(game: str, seats: int) -> None:
    recorder = played(game, seats)
    for viewer in (None, Seat(1)):
        state = fold(())
        for fact in recorder.facts:
            state = fold((redact(fact, viewer),), state)
            back = state_from_any(state_to_any(state))
            assert back == state
            assert state_hash(back) == state_hash(state)


@pytest.mark.parametrize(("game", "seats"), GAMES)
def test_the_exported_file_holds_the_match(game: str, seats: int) -> None:
    recorder = played(game, seats)
    wanted = state_hash(fold(recorder.facts))
    file = b"".join(bundle_chunks(enumerate(recorder.values), state_hash=wanted))
    whole = load_bundle(file)
    facts = [fact for each in whole.commits for fact in each.commit.facts()]
    assert state_hash(fold(facts)) == whole.trailer.state_hash == wanted
    assert [each.commit.value for each in whole.commits] == recorder.values
    assert msgspec.structs.asdict(whole.header)["game"] == game
