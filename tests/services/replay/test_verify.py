"""Offline verification: a sound file passes; each damage and forgery is named with its place."""

import io
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest

from engine import (
    Answer,
    ChanceDrawnInSecret,
    EntropyRevealed,
    Fact,
    MatchCreated,
    MatchEnded,
    SeatTaken,
    SeedRevealed,
    fold,
    state_hash,
)
from engine.core.game import AnyGame
from services.common.bundle import bundle_chunks
from services.common.commits import Cause, How, ParsedCommit, make_commit
from services.common.log.sqlite import SqliteLog
from services.common.prompts_wire import answer_to_wire
from services.common.verify import (
    Check,
    CheckStatus,
    Placed,
    Report,
    verify_commits,
    verify_file,
    with_origin,
)
from tests.engine.high_roll import CardsShown
from tests.services.projector.recording import Recorder, Recording

pytestmark = pytest.mark.usefixtures("game")

Commits = list[ParsedCommit]


@pytest.fixture
async def match(log: SqliteLog, recorder: Recorder, game: AnyGame) -> Recording:
    """A finished match."""
    return await recorder.whole("one", game.id, 3)


def placed(match: Recording) -> list[Placed]:
    """Its commits with their offsets."""
    return [Placed(o, c) for o, c in zip(match.offsets, match.commits, strict=True)]


def frames_of(match: Recording) -> list[bytes]:
    """The records of its file: header, commits, trailer."""
    records = [(p.offset, p.commit.value) for p in placed(match)]
    return list(bundle_chunks(records, state_hash=state_hash(match.session.state)))


def failed(report: Report) -> dict[str, Check]:
    """The checks that failed."""
    return {c.check: c for c in report.checks if c.status is CheckStatus.FAILED}


def rewritten(
    match: Recording,
    change: Callable[[int, tuple[Fact, ...]], Sequence[Fact]],
    *,
    cause: Callable[[int, Cause], Cause] = lambda _, cause: cause,
) -> list[Placed]:
    """The match with other facts, every hash and header made to fit: a forgery by the operator."""
    made: Commits = []
    facts = 0
    for commit in match.commits:
        changed = change(commit.sequence, commit.facts())
        assert commit.cause is not None
        made.append(
            make_commit(
                log_id=commit.log_id,
                partition=commit.partition,
                writer=commit.writer,
                epoch=commit.epoch,
                match_id=commit.match_id,
                sequence=commit.sequence,
                first_fact=facts,
                facts=changed,
                cause=cause(commit.sequence, commit.cause),
                previous_hash=made[-1].hash if made else b"",
                ruleset=commit.ruleset,
                recorded_at_ms=commit.recorded_at_ms,
                final=commit.final,
            )
        )
        facts += len(changed)
    return [Placed(o, c) for o, c in zip(match.offsets, made, strict=True)]


# -- files -----------------------------------------------------------------------------------------


async def test_a_sound_file_passes(match: Recording) -> None:
    report = verify_file(b"".join(frames_of(match)))
    assert report.passed
    assert report.match_id == match.match_id
    assert report.last_sequence == len(match.commits)
    assert report.state_hash == state_hash(fold(match.facts))
    assert [c.check for c in report.checks] == [
        *("file", "chain", "admission", "rules", "dice", "read_model")
    ]


async def test_a_flipped_bit_anywhere_is_named_with_its_record(match: Recording) -> None:
    frames = frames_of(match)
    content = b"".join(frames)
    starts = [sum(map(len, frames[:n])) for n in range(len(frames))]
    dice = random.Random(7)
    for _ in range(600):
        at = dice.randrange(len(content))
        damaged = bytearray(content)
        damaged[at] ^= 1 << dice.randrange(8)
        report = verify_file(bytes(damaged))
        assert not report.passed, at
        record = max(n for n, start in enumerate(starts) if start <= at)
        check = report.check("file")
        assert check.status is CheckStatus.FAILED
        # Damage in the trailer may show as a difference to the record that it speaks of.
        if record < len(frames) - 1:
            assert check.finding.startswith(f"record {record + 1} at byte {starts[record]}:"), at
            assert check.sequence == record
        assert "Traceback" not in check.finding


async def test_a_removed_record_is_named(match: Recording) -> None:
    frames = frames_of(match)
    for gone in range(1, len(frames) - 2):
        report = verify_file(b"".join(frames[:gone] + frames[gone + 1 :]))
        check = report.check("file")
        assert not report.passed
        assert check.sequence == gone
        place = sum(map(len, frames[:gone]))
        assert check.finding.startswith(f"record {gone + 1} at byte {place}:")
        assert f"commit {gone + 1} is where commit {gone} should be" in check.finding
        chain = report.check("chain")
        assert chain.status is CheckStatus.NOT_APPLICABLE
    assert not verify_file(b"".join(frames[:-2] + frames[-1:])).passed
    assert not verify_file(b"".join(frames[:-1])).passed
    assert not verify_file(b"".join(frames[1:])).passed


async def test_swapped_records_are_named(match: Recording) -> None:
    frames = frames_of(match)
    dice = random.Random(3)
    for _ in range(30):
        one, other = sorted(dice.sample(range(1, len(frames) - 1), 2))
        swapped = list(frames)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        report = verify_file(b"".join(swapped))
        check = report.check("file")
        assert not report.passed
        assert check.sequence == one
        assert f"commit {other} is where commit {one} should be" in check.finding


async def test_a_cut_off_file_is_named(match: Recording) -> None:
    content = b"".join(frames_of(match))
    for size in range(0, len(content), 97):
        report = verify_file(content[:size])
        assert not report.passed
        assert "at byte" in report.check("file").finding


async def test_garbage_gives_a_report(match: Recording) -> None:
    dice = random.Random(5)
    whole = b"".join(frames_of(match))
    for content in (
        b"",
        b"\0" * 5000,
        b"not a match at all",
        dice.randbytes(10_000),
        whole + b"x",
        whole * 2,
        whole[::-1],
        b"\x28\xb5\x2f\xfd" * 100,
    ):
        report = verify_file(content)
        assert not report.passed
        assert report.check("file").status is CheckStatus.FAILED
        assert report.check("file").finding


async def test_another_state_hash_in_the_trailer_is_noticed(match: Recording) -> None:
    records = [(p.offset, p.commit.value) for p in placed(match)]
    content = b"".join(bundle_chunks(records, state_hash=b"s" * 32))
    assert failed(verify_file(content)).keys() == {"file"}


async def test_a_stream_and_a_path_are_read_alike(
    match: Recording, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = b"".join(frames_of(match))
    path = tmp_path_factory.mktemp("export") / "match.dlmatch"
    path.write_bytes(content)
    assert verify_file(path) == verify_file(io.BytesIO(content)) == verify_file(content)
    with pytest.raises(OSError, match="missing"):
        verify_file(path.with_name("missing"))


# -- commits ---------------------------------------------------------------------------------------


def broken(commits: Iterable[Placed]) -> Check:
    """The failed chain check of these commits; the rest has no more to say than a part."""
    report = verify_commits(commits)
    assert not report.passed
    assert report.check("rules").status is not CheckStatus.PASSED
    assert report.check("dice").status is not CheckStatus.PASSED
    return report.check("chain")


async def test_gaps_and_swaps_among_commits_are_named(match: Recording) -> None:
    commits = placed(match)
    check = broken(commits[:5] + commits[6:])
    assert check.sequence == 6
    assert "commit 6 is missing: commit 7 follows commit 5" in check.finding
    check = broken(commits[:5] + commits[8:])
    assert "commits 6 to 8 are missing" in check.finding
    check = broken(commits[1:])
    assert "commit 1 is missing: commit 2 follows the start" in check.finding
    swapped = [*commits[:4], commits[5], commits[4], *commits[6:]]
    assert broken(swapped).sequence == 5
    check = broken([*commits[:4], commits[3], *commits[4:]])
    assert "commit 4 lies where commit 5 belongs" in check.finding
    assert broken([]).finding == "there is no commit at all"


async def test_a_commit_of_another_match_is_named(
    match: Recording, recorder: Recorder, game: AnyGame
) -> None:
    other = await recorder.whole("two", game.id, 3)
    mixed = placed(match)
    mixed[6] = Placed(mixed[6].offset, other.commits[6])
    assert broken(mixed).sequence == 7


async def test_a_commit_that_was_written_anew_breaks_the_chain_behind_it(match: Recording) -> None:
    forged = rewritten(match, lambda _, facts: facts)
    commits = placed(match)
    commits[5] = Placed(commits[5].offset, forged[5].commit)
    assert broken(commits).sequence == 6


async def test_changed_dice_are_noticed_by_rules_or_seed(match: Recording) -> None:
    """The operator rewrites the whole match around another card; only the seed can tell."""

    def other_card(sequence: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            msgspec.structs.replace(fact, values=((fact.values[0] + 1) % 10,))
            if isinstance(fact, ChanceDrawnInSecret)
            and isinstance(fact.values, tuple)
            and sequence == 5
            else fact
            for fact in facts
        ]

    report = verify_commits(rewritten(match, other_card))
    assert failed(report).keys() == {"rules", "dice"}
    assert failed(report)["dice"].sequence == 5
    assert failed(report)["rules"].sequence == 5
    assert "the seed gives" in failed(report)["dice"].finding


async def test_changed_results_are_noticed_by_the_rules(match: Recording) -> None:
    def other_cards(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            CardsShown(tuple(card + 1 for card in fact.cards))
            if isinstance(fact, CardsShown)
            else fact
            for fact in facts
        ]

    report = verify_commits(rewritten(match, other_cards))
    first = next(
        c.sequence for c in match.commits if any(isinstance(f, CardsShown) for f in c.facts())
    )
    assert failed(report).keys() == {"rules"}
    assert failed(report)["rules"].sequence == first
    assert "CardsShown" in failed(report)["rules"].finding


async def test_another_seed_is_noticed(match: Recording) -> None:
    def other_seed(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [SeedRevealed(b"z" * 32) if isinstance(f, SeedRevealed) else f for f in facts]

    report = verify_commits(rewritten(match, other_seed))
    assert failed(report).keys() == {"dice"}
    assert failed(report)["dice"].sequence == len(match.commits)
    assert "committed" in failed(report)["dice"].finding


async def test_another_entropy_is_noticed(match: Recording) -> None:
    def other_entropy(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            msgspec.structs.replace(f, entropy=b"e" * 16)
            if isinstance(f, SeatTaken) and f.seat == 2
            else f
            for f in facts
        ]

    assert failed(verify_commits(rewritten(match, other_entropy))).keys() == {"dice"}


async def test_a_lobby_that_cannot_have_been(match: Recording) -> None:
    def twice(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            msgspec.structs.replace(f, player="player-1") if isinstance(f, SeatTaken) else f
            for f in facts
        ]

    check = failed(verify_commits(rewritten(match, twice)))["rules"]
    assert (check.sequence, check.finding) == (3, "a player took a second seat")

    def renamed(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            msgspec.structs.replace(f, match_id="x" * 26) if isinstance(f, MatchCreated) else f
            for f in facts
        ]

    check = failed(verify_commits(rewritten(match, renamed)))["rules"]
    assert check.sequence == 1


async def test_an_end_that_is_none(match: Recording) -> None:
    def endless(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [f for f in facts if not isinstance(f, MatchEnded)]

    check = failed(verify_commits(rewritten(match, endless)))["chain"]
    assert check.sequence == len(match.commits)


async def test_a_request_applied_twice_is_noticed(match: Recording) -> None:
    causes = {c.sequence: c.cause for c in match.commits if c.cause is not None}
    first = causes[6]
    again = next(n for n, cause in causes.items() if n > 6 and cause.actor == first.actor)

    def same_request(sequence: int, cause: Cause) -> Cause:
        changed = first.request_id if sequence == again else cause.request_id
        return msgspec.structs.replace(cause, request_id=changed)

    check = admission_fault(match, same_request)
    assert (check.sequence, check.finding) == (again, "its request was applied by commit 6 already")


def admission_fault(match: Recording, cause: Callable[[int, Cause], Cause]) -> Check:
    """The finding about the match with other causes."""
    report = verify_commits(rewritten(match, lambda _, facts: facts, cause=cause))
    assert failed(report).keys() == {"admission"}
    return failed(report)["admission"]


async def test_commits_that_are_not_what_their_cause_asked_for(match: Recording) -> None:
    answered = match.commits[6].cause
    assert answered is not None
    pick = answer_to_wire(Answer(picks=("keep",))).SerializeToString()
    other = answer_to_wire(Answer(picks=("swap",))).SerializeToString()
    for at, changes, words in (
        (1, {"actor": "another"}, "create was for another"),
        (3, {"actor": "player-1"}, "join was for another"),
        (5, {"actor": "player-1"}, "start was for another"),
        (7, {"actor": "host"}, "answer was for another"),
        (7, {"seat": 9}, "about another"),
        (7, {"prompt_id": "p99"}, "about another"),
        (7, {"answer": other if answered.answer == pick else pick}, "not the one"),
        (7, {"answer": b""}, "cannot be read"),
        (7, {"answer": b"\xff"}, "cannot be read"),
        (7, {"command": "start"}, "its cause is 'start', and it begins with 'answered'"),
    ):

        def changed(
            sequence: int, cause: Cause, at: int = at, changes: dict[str, Any] = changes
        ) -> Cause:
            return msgspec.structs.replace(cause, **changes) if sequence == at else cause

        check = admission_fault(match, changed)
        assert check.sequence == at
        assert words in check.finding

    def in_time(_: int, cause: Cause) -> Cause:
        changes = {"how": How.TIMEOUT, "command": "timeout", "actor": "match-0"}
        return msgspec.structs.replace(cause, **changes) if cause.prompt_id else cause

    assert verify_commits(rewritten(match, lambda _, facts: facts, cause=in_time)).passed


async def test_epochs_must_be_those_of_the_partition(match: Recording) -> None:
    commits = placed(match)
    epoch = match.commits[0].epoch
    assert verify_commits(commits, epoch_at=lambda _: epoch).passed
    report = verify_commits(
        commits, epoch_at=lambda o: epoch if o < match.offsets[7] else epoch + 1
    )
    assert failed(report)["admission"].sequence == 8
    moved = [*commits[:7], Placed(commits[6].offset, commits[7].commit), *commits[8:]]
    assert failed(verify_commits(moved))["admission"].sequence == 8


async def test_rules_that_this_software_does_not_have(match: Recording) -> None:
    def newer(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [
            msgspec.structs.replace(f, revision=99) if isinstance(f, MatchCreated) else f
            for f in facts
        ]

    report = verify_commits(rewritten(match, newer))
    assert report.passed
    assert report.check("rules").status is CheckStatus.NOT_APPLICABLE
    assert "revision 99" in report.check("rules").finding


async def test_a_match_in_its_lobby_passes(recorder: Recorder, game: AnyGame) -> None:
    lobby = await recorder.create("lobby", game.id, 3)
    report = verify_commits(placed(lobby))
    assert report.passed
    assert report.check("dice").status is CheckStatus.NOT_APPLICABLE


# -- committed entropy -----------------------------------------------------------------------------


@pytest.fixture
async def committed(log: SqliteLog, recorder: Recorder, game: AnyGame) -> Recording:
    """A finished match whose seats committed to their entropy: reveals are commits 5 to 7."""
    return await recorder.play(await recorder.create("fair", game.id, 3, committed=True))


def with_reveals(
    match: Recording, change: Callable[[EntropyRevealed], EntropyRevealed]
) -> list[Placed]:
    """A forgery that changes what was revealed."""

    def changed(_: int, facts: tuple[Fact, ...]) -> list[Fact]:
        return [change(f) if isinstance(f, EntropyRevealed) else f for f in facts]

    return rewritten(match, changed)


async def test_a_match_of_committed_seats_passes(committed: Recording, match: Recording) -> None:
    report = verify_commits(placed(committed))
    assert report.passed, report
    assert (report.committed, report.seats) == ((1, 2, 3), 3)
    assert verify_commits(placed(match)).committed == ()


async def test_a_reveal_that_was_not_committed_to_is_named(committed: Recording) -> None:
    """Rules and dice both find it, at the commit of the reveal."""

    def chosen(fact: EntropyRevealed) -> EntropyRevealed:
        return (
            msgspec.structs.replace(fact, entropy=b"a better one....") if fact.seat == 2 else fact
        )

    found = failed(verify_commits(with_reveals(committed, chosen)))
    assert found.keys() == {"rules", "dice"}
    assert {check.sequence for check in found.values()} == {6}
    assert "seat 2" in found["dice"].finding


async def test_a_reveal_of_another_seat_is_named(committed: Recording) -> None:
    """Swapped between two seats, with causes that say so."""

    def swapped(fact: EntropyRevealed) -> EntropyRevealed:
        return msgspec.structs.replace(fact, seat={1: 2, 2: 1}.get(fact.seat, fact.seat))

    found = failed(verify_commits(with_reveals(committed, swapped)))
    assert found.keys() == {"admission", "rules", "dice"}
    assert {check.sequence for check in found.values()} == {5}


async def test_a_reveal_by_somebody_else_is_named(committed: Recording) -> None:
    def by_another(sequence: int, cause: Cause) -> Cause:
        return msgspec.structs.replace(cause, actor="somebody") if sequence == 5 else cause

    found = failed(verify_commits(rewritten(committed, lambda _, facts: facts, cause=by_another)))
    assert found.keys() == {"admission"}
    assert found["admission"].sequence == 5


async def test_a_match_made_up_as_a_whole_is_told_by_what_was_noted(
    match: Recording, recorder: Recorder, game: AnyGame
) -> None:
    """Its own seed, its own chain: it passes, but it is not the match that was seen."""
    other = verify_commits(placed(await recorder.whole("two", game.id, 3)))
    assert other.passed
    real = verify_commits(placed(match))
    promised, last = real.commitment, match.commits[-1].hash
    assert with_origin(real, commitment=promised, last_hash=last).passed
    # Whoever left early noted an earlier hash.
    assert with_origin(real, last_hash=match.commits[4].hash).passed
    for noted in ({"commitment": promised}, {"last_hash": last}):
        found = failed(with_origin(other, **noted))
        assert found.keys() == {"origin"}
        assert next(iter(noted.values())).hex() in found["origin"].finding
