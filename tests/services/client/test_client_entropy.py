"""The client commits to its entropy, and reveals it only when it saw that nobody can choose."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from diceledger.match.v1 import match_pb2
from engine import (
    ChanceDrawn,
    EntropyRevealed,
    Fact,
    MatchStarted,
    MatchState,
    SeatTaken,
    derive_seed,
    entropy_commitment,
    recompute,
)
from engine.core.chance import draw_from, prefix
from engine.core.visibility import Seat
from services.cli.embedded import embedded
from services.client import ApiError, ChainBroken, Client, Player, RandomBot, connect, play_match
from services.client.pledges import Lobby, Pledge
from services.client.retry import RetryPolicy

GAME = "king_of_tokyo"
QUICK = RetryPolicy(total_s=1.0)
DIE = "die"
MINE = b"the entropy of ann's own"


@dataclass
class People:
    """Clients of one embedded server."""

    client: Callable[[str], Client]

    def __getattr__(self, name: str) -> Client:
        return self.client(name)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("box")


@pytest.fixture
async def people(directory: Path) -> AsyncIterator[People]:
    async with embedded(directory) as server, connect(server.address, policy=QUICK) as anybody:
        yield People(lambda name: anybody.for_token(server.token(name, "player")))


async def facts_of(client: Client, match_id: str, until: type[Fact]) -> list[Fact]:
    """The facts of a match up to one of a type."""
    facts: list[Fact] = []
    async for update in client.watch(match_id):
        facts += update.facts
        if any(isinstance(fact, until) for fact in facts):
            break
    return facts


async def test_a_watch_reveals_once_every_seat_is_taken(people: People) -> None:
    """What was joined with goes in as a commitment, and is revealed without a call of its own."""
    ann, ben, host = people.ann, people.ben, people.host
    match_id = (await host.create(GAME, 2)).match_id
    watching = asyncio.create_task(facts_of(ann, match_id, MatchStarted))
    await ann.join(match_id, entropy=MINE)
    await ben.join(match_id)
    async with ben.play() as stream:
        async for update in stream.watch(match_id, fold=True):
            if any(isinstance(fact, EntropyRevealed) for fact in update.facts):
                break
        await host.start(match_id)
    facts = await watching
    taken = [fact for fact in facts if isinstance(fact, SeatTaken)]
    assert [fact.entropy for fact in taken] == [b"", b""]
    assert taken[0].entropy_commitment == entropy_commitment(MINE)
    revealed = [fact for fact in facts if isinstance(fact, EntropyRevealed)]
    assert {fact.seat for fact in revealed} == {1, 2}
    assert EntropyRevealed(Seat(1), MINE) in revealed


async def test_a_watch_from_the_middle_reveals_too(people: People) -> None:
    ann, ben, host = people.ann, people.ben, people.host
    match_id = (await host.create(GAME, 2)).match_id
    await ann.join(match_id)
    await ben.join(match_id)
    async for update in ann.watch(match_id, 3):
        if isinstance(update.facts[0], EntropyRevealed):
            break
    with pytest.raises(ApiError, match=r"2\."):
        await host.start(match_id)
    await ben.reveal(match_id)
    assert await ben.reveal(match_id) == await ben.reveal(match_id)
    receipt = await host.start(match_id)
    assert await host.start(match_id) == receipt


async def test_what_cannot_be_revealed(people: People) -> None:
    ann, ben, host = people.ann, people.ben, people.host
    match_id = (await host.create(GAME, 2)).match_id
    await ann.join(match_id, entropy=MINE)
    with pytest.raises(ApiError) as early:
        await ann.reveal(match_id)
    assert early.value.reason == "ENTROPY_TOO_EARLY"
    with pytest.raises(ApiError) as seated:
        await ann.join(match_id)
    assert seated.value.reason == "ALREADY_SEATED"
    with pytest.raises(ApiError) as short:
        await ben.join(match_id, entropy=b"short")
    assert short.value.reason == "BAD_ENTROPY"
    await ben.join(match_id, entropy=b"")
    with pytest.raises(ApiError) as nothing:
        await ben.reveal(match_id)
    assert nothing.value.reason == "NOTHING_TO_REVEAL"
    # A client that was made anew knows only what it is given.
    again = people.ann
    with pytest.raises(ApiError) as lost:
        await again.reveal(match_id)
    assert lost.value.reason == "NOTHING_TO_REVEAL"
    await again.reveal(match_id, entropy=MINE)
    await host.start(match_id)


async def test_matches_of_bots_are_committed_in_every_seat(people: People) -> None:
    players = [Player(people.ann, RandomBot("1")), Player(people.ben, RandomBot("2"))]
    records = await play_match(people.host, players, GAME)
    state = records[0].state
    assert state is not None and state.status == "finished"
    assert all(each.entropy and each.entropy_commitment for each in state.players)
    report = await people.host.replays.verify(state.match_id)
    assert report.passed


async def test_a_friend_in_the_last_seat_cannot_steer(directory: Path, people: People) -> None:
    """The operator knows the seed; its friend joins last and picks the best of many entropies.

    Against a seat that brings its entropy openly this always succeeds. Against one that commits,
    what the friend foresees is not what is rolled.
    """
    master = bytes.fromhex((directory / "keys" / "k1.key").read_text().strip())
    for openly in (True, False):
        ann, host = people.ann, people.host
        match_id = (await host.create(GAME, 2)).match_id
        seed = derive_seed(master, "k1", match_id)
        if openly:
            await _join_openly(ann, match_id)
        else:
            await ann.join(match_id, entropy=MINE)
        brought = (await _lobby_of(host, match_id)).players[0].entropy
        assert brought == (MINE if openly else b"")
        wanted, foreseen = _choose(seed, match_id, brought)
        friend = people.friend
        await friend.join(match_id, entropy=wanted)
        # Ann reveals; after that the friend would like another entropy.
        if not openly:
            await ann.reveal(match_id)
            with pytest.raises(ApiError) as bound:
                await people.friend.reveal(match_id, entropy=b"now that I know Ann's")
            assert bound.value.reason == "NOTHING_TO_REVEAL"
        await friend.reveal(match_id)
        await host.start(match_id)
        facts = await facts_of(host, match_id, ChanceDrawn)
        rolled = next(f for f in facts if isinstance(f, ChanceDrawn) and f.domain == DIE)
        again = recompute(rolled, seed, match_id, (MINE, wanted))
        assert rolled.values == again
        assert (foreseen(rolled) == rolled.values) == openly


async def _join_openly(client: Client, match_id: str) -> None:
    """As the clients of others may do."""
    request = match_pb2.JoinMatchRequest(request_id="open", match_id=match_id, entropy=MINE)
    await client._caller.call(lambda stub: stub.JoinMatch, request)


async def _lobby_of(client: Client, match_id: str) -> MatchState:
    async for update in client.watch(match_id, fold=True):
        if update.live:
            assert update.state is not None
            return update.state
    raise AssertionError


def _choose(
    seed: bytes, match_id: str, others: bytes
) -> tuple[bytes, Callable[[ChanceDrawn], tuple[int, ...]]]:
    """The entropy of 3,000 that gives the most of one face in the first roll, and what it gives."""

    def roll(mine: bytes) -> int:
        start = prefix(DIE, match_id, (others, mine))
        return draw_from(seed, start, 0, 6, 6).count(5)

    best = max((number.to_bytes(16, "big") for number in range(3_000)), key=roll)
    return best, lambda drawn: recompute(drawn, seed, match_id, (others, best))


# -- a server that lies ----------------------------------------------------------------------------


def lobby(**changes: object) -> Lobby:
    """Ann and a friend of the operator are seated."""
    mine = entropy_commitment(MINE)
    usual: dict[str, object] = {
        "seats": 2,
        "commitments": {1: mine, 2: b""},
        "sequence": 3,
        "full_hash": b"as seen",
    }
    return Lobby(**{**usual, **changes})  # type: ignore[arg-type]  # as the fields are


def pledge(**changes: object) -> Pledge:
    usual: dict[str, object] = {"match_id": "m", "entropy": MINE, "seat": 1}
    return Pledge(**{**usual, **changes})  # type: ignore[arg-type]  # as the fields are


def test_entropy_stays_here_until_all_are_bound() -> None:
    assert pledge().is_due(lobby())
    assert not pledge().is_due(lobby(commitments={1: entropy_commitment(MINE)}, full_hash=b""))
    assert not pledge().is_due(lobby(is_over=True, revealed={1: MINE}))
    assert not pledge(is_revealed=True).is_due(lobby())
    assert not pledge(seat=0).is_due(lobby(commitments={1: b"", 2: b""}))


@pytest.mark.parametrize(
    ("seen", "finding"),
    [
        ({"commitments": {1: b"another", 2: b""}}, "does not hold the commitment"),
        ({"commitments": {1: b"", 2: b""}}, "does not hold the commitment"),
        ({"revealed": {1: b"another"}}, "has another entropy"),
        ({"is_started": True}, "began without the entropy"),
        ({"full_hash": b"as shown later"}, "not those for which"),
    ],
)
def test_a_server_that_changes_the_seats_is_found_out(
    seen: dict[str, object], finding: str
) -> None:
    """The seat must hold our commitment, and the seats be those that were seen at the reveal."""
    with pytest.raises(ChainBroken, match=finding):
        pledge(full_hash=b"as seen").is_due(lobby(**seen))
