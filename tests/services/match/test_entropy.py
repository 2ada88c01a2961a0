"""Seats that commit to their entropy: RevealEntropy, and what a start waits for."""

import secrets

import pytest

from diceledger.match.v1 import match_pb2
from engine import entropy_commitment
from services.common.errors import ApiError
from services.common.log.sqlite import SqliteLog
from tests.services.match.serving import (
    LIMITS,
    Player,
    Process,
    Shares,
    admitted,
    new_id,
    process,
    refused,
    size,
)

ANN, BOB = secrets.token_bytes(32), secrets.token_bytes(32)


async def reveal(player: Player, match_id: str, entropy: bytes, request_id: str = "") -> int:
    """RevealEntropy; the sequence of its commit."""
    request = match_pb2.RevealEntropyRequest(
        request_id=request_id or new_id(), match_id=match_id, entropy=entropy
    )
    response = await player.call("RevealEntropy", request)
    sequence: int = response.receipt.sequence
    return sequence


async def lobby(ann: Player, bob: Player) -> str:
    """A full lobby of two committed seats."""
    match_id: str = (await ann.create()).match_id
    await ann.join(match_id, entropy_commitment=entropy_commitment(ANN))
    await bob.join(match_id, entropy_commitment=entropy_commitment(BOB))
    return match_id


async def refusal(call: object) -> ApiError:
    with pytest.raises(ApiError) as error:
        await call  # type: ignore[misc]  # any coroutine
    return error.value


async def test_a_start_waits_for_every_reveal(log: SqliteLog, here: Process) -> None:
    """ENTROPY_MISSING names the seats; each reveal is a commit, and counts once."""
    ann, bob = here.player("ann"), here.player("bob")
    match_id = await lobby(ann, bob)
    missing = await refusal(ann.start(match_id))
    assert missing.reason == "ENTROPY_MISSING"
    assert "1, 2" in missing.message
    assert await reveal(bob, match_id, BOB, "r") == 4
    assert await reveal(bob, match_id, BOB, "r") == 4
    assert "1." in (await refusal(ann.start(match_id))).message
    assert await reveal(ann, match_id, ANN) == 5
    await ann.start(match_id)
    commits = (await admitted(log))[match_id]
    assert [c.cause.command for c in commits if c.cause] == [
        *("create", "join", "join", "reveal", "reveal", "start")
    ]
    assert [(c.cause.actor, c.cause.seat) for c in commits[3:5] if c.cause] == [
        *(("bob", 2), ("ann", 1))
    ]


async def test_what_is_refused(log: SqliteLog, here: Process) -> None:
    """Nothing of it is written."""
    ann, bob, eve = (here.player(name) for name in ("ann", "bob", "eve"))
    early = (await ann.create()).match_id
    await ann.join(early, entropy_commitment=entropy_commitment(ANN))
    match_id = await lobby(ann, bob)
    promise = entropy_commitment(ANN)
    before = await size(log)
    cases = {
        "ENTROPY_TOO_EARLY": reveal(ann, early, ANN),
        "BAD_ENTROPY": reveal(ann, match_id, BOB),
        "BAD_ENTROPY empty": reveal(ann, match_id, b""),
        "NOT_A_PLAYER": reveal(eve, match_id, ANN),
        "BAD_ENTROPY length": bob.join(early, entropy_commitment=b"short"),
        "BAD_ENTROPY both": bob.join(early, entropy_commitment=promise, entropy=ANN),
        "BAD_REQUEST_ID": reveal(ann, match_id, ANN, "no spaces"),
        "MATCH_NOT_FOUND": reveal(ann, "a" * 26, ANN),
    }
    reasons = {name: (await refusal(call)).reason for name, call in cases.items()}
    assert reasons == {name: name.partition(" ")[0] for name in cases}
    assert await size(log) == before
    await reveal(ann, match_id, ANN)
    assert (await refusal(reveal(ann, match_id, ANN))).reason == "NOTHING_TO_REVEAL"


async def test_another_commitment_is_another_request(here: Process) -> None:
    """A repeated id with another commitment is refused, as any other content is."""
    ann = here.player("ann")
    match_id = (await ann.create()).match_id
    first = await ann.join(match_id, request_id="j", entropy_commitment=entropy_commitment(ANN))
    again = await ann.join(match_id, request_id="j", entropy_commitment=entropy_commitment(ANN))
    assert again == first
    with pytest.raises(ApiError) as error:
        await ann.join(match_id, request_id="j", entropy_commitment=entropy_commitment(BOB))
    assert refused(error) == "REQUEST_ID_REUSED"


async def test_a_reveal_through_the_wrong_process(log: SqliteLog) -> None:
    """It is passed on, and a restarted process knows what was revealed."""
    hints: dict[int, str] = {}
    async with (
        process(log, ownership=Shares(range(log.partitions), hints), limits=LIMITS),
        process(log, ownership=Shares((), hints), limits=LIMITS) as other,
    ):
        ann, bob = other.player("ann"), other.player("bob")
        match_id = await lobby(ann, bob)
        assert await reveal(ann, match_id, ANN) == 4
    async with process(log) as later:
        ann, bob = later.player("ann"), later.player("bob")
        assert (await refusal(ann.start(match_id))).reason == "ENTROPY_MISSING"
        await reveal(bob, match_id, BOB)
        await ann.start(match_id)
