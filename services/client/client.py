"""The client of a diceledger server: everything that a player, host or spectator can do.

    async with connect("127.0.0.1:7420", token=token) as client:
        match = await client.create("king_of_tokyo", seats=3)
        await client.join(match.match_id, name="Ada")
        async for update in client.watch(match.match_id, fold=True):
            ...

Every method raises ApiError with the server's reason. Calls are repeated with the same request id
while the server is out of reach or says that nothing happened, within the client's RetryPolicy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import grpc.aio

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from engine import Answer
from services.client.calls import Caller
from services.client.channels import Channels, Tls
from services.client.play import PlayStream
from services.client.pledges import Pledges
from services.client.receipts import Created, Joined, Receipt, receipt_from_wire
from services.client.replays import ReplayCalls
from services.client.requests import new_request_id
from services.client.retry import Patience, RetryPolicy, is_retriable
from services.client.streams import watched
from services.client.tokens import Credentials, TokenSource
from services.client.updates import MatchUpdate, UpdateReader
from services.common.errors import ApiError
from services.common.prompts_wire import answer_to_wire

_PAGE = 200


def connect(
    addresses: str | Sequence[str],
    token: TokenSource | None = None,
    *,
    locale: str = "en",
    tls: Tls | None = None,
    policy: RetryPolicy | None = None,
    replay_addresses: str | Sequence[str] = (),
) -> Client:
    """A client of the server at one or several addresses ("host:port").

    Nothing is sent yet. `replay_addresses` are for set-ups whose replay service listens
    elsewhere than the match service. Raises OSError when a TLS file cannot be read.
    """
    match_channels = Channels(_listed(addresses), tls)
    elsewhere = _listed(replay_addresses)
    replay_channels = Channels(elsewhere, tls) if elsewhere else match_channels
    credentials = Credentials(token, locale)
    return Client(match_channels, replay_channels, credentials, policy or RetryPolicy())


def _listed(addresses: str | Sequence[str]) -> tuple[str, ...]:
    parts = addresses.split(",") if isinstance(addresses, str) else addresses
    return tuple(part.strip() for part in parts if part.strip())


class Client:
    """One caller of the match and replay services. Use `connect` to make one."""

    def __init__(
        self,
        channels: Channels,
        replay_channels: Channels,
        credentials: Credentials,
        policy: RetryPolicy,
    ) -> None:
        self._channels = channels
        self._replay_channels = replay_channels
        self._policy = policy
        self._caller: Caller[match_pb2_grpc.MatchServiceAsyncStub] = Caller(
            _match_stub, channels, credentials, policy
        )
        self._pledges = Pledges(self._caller)
        self.replays = ReplayCalls(replay_channels, credentials, policy)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channels, also those of clients made by `for_token`."""
        await self._channels.close()
        await self._replay_channels.close()

    def for_token(
        self,
        token: TokenSource | None,
        *,
        locale: str | None = None,
        policy: RetryPolicy | None = None,
    ) -> Client:
        """Another caller over the same channels; closing either closes both."""
        credentials = Credentials(token, locale or self._caller.credentials.locale)
        return Client(self._channels, self._replay_channels, credentials, policy or self._policy)

    async def list_games(self) -> list[match_pb2.GameInfo]:
        """The games that can be played, with their options."""
        request = match_pb2.ListGamesRequest()
        response = await self._caller.call(lambda stub: stub.ListGames, request)
        return list(response.games)

    async def create(
        self,
        game: str,
        seats: int,
        *,
        preset: str = "",
        options: Mapping[str, str] | None = None,
        expansions: Sequence[str] = (),
        answer_timeout_s: int = 0,
        request_id: str | None = None,
    ) -> Created:
        """Open a match in its lobby; the caller is its host. `answer_timeout_s` 0: no limit."""
        request = match_pb2.CreateMatchRequest(
            request_id=request_id or new_request_id(),
            game=game,
            seats=seats,
            preset=preset,
            options=dict(options or {}),
            expansions=expansions,
            answer_timeout_seconds=answer_timeout_s,
        )
        response = await self._caller.call(lambda stub: stub.CreateMatch, request)
        return Created(response.match_id, receipt_from_wire(response.receipt), response.commitment)

    async def join(
        self,
        match_id: str,
        *,
        name: str = "",
        seat: int = 0,
        entropy: bytes | None = None,
        request_id: str | None = None,
    ) -> Joined:
        """Take a seat (0: the first free one) and add the seat's own entropy to the dice.

        The server gets a commitment to it first. Any watch of this client reveals the entropy by
        itself once it sees that every seat is taken; `start` and `reveal` do so too. Until then
        this client alone knows it: if it ends before, only somebody who still has what was given
        as `entropy` (16 to 64 bytes; None: drawn here; b"": none at all) can reveal it, else the
        match cannot begin and its host should abandon it.
        """
        request = match_pb2.JoinMatchRequest(
            request_id=request_id or new_request_id(), match_id=match_id, name=name, seat=seat
        )
        if entropy == b"":
            response = await self._caller.call(lambda stub: stub.JoinMatch, request)
            return Joined(response.seat, receipt_from_wire(response.receipt))
        pledge = self._pledges.make(match_id, entropy)
        request.entropy_commitment = pledge.commitment
        try:
            response = await self._caller.call(lambda stub: stub.JoinMatch, request)
        except ApiError as error:
            # Of an unknown outcome the pledge is kept, for the next attempt.
            if not is_retriable(error) and not pledge.seat:
                self._pledges.drop(pledge)
            raise
        self._pledges.took(pledge, response.seat)
        return Joined(response.seat, receipt_from_wire(response.receipt))

    async def reveal(self, match_id: str, *, entropy: bytes | None = None) -> Receipt:
        """Reveal the entropy that `join` committed to, once every seat is taken.

        Looks at the commits of the match first: they must say that every seat is taken, the own
        one by this client's commitment. `entropy`: what was given to `join`, in a client that was
        made anew. Raises ApiError (ENTROPY_TOO_EARLY, NOTHING_TO_REVEAL, …) and ChainBroken.
        """
        return await self._pledges.reveal(match_id, entropy)

    async def start(self, match_id: str, *, request_id: str | None = None) -> Receipt:
        """Start the match; for its host, once every seat is taken. May be repeated.

        Reveals this client's own entropy where that is missing, and waits, as long as its
        RetryPolicy allows, for the other seats to reveal theirs: ENTROPY_MISSING names those that
        did not.
        """
        request = match_pb2.StartMatchRequest(
            request_id=request_id or f"start.{match_id}", match_id=match_id
        )
        patience = Patience(self._policy)
        while True:
            try:
                response = await self._caller.call(lambda stub: stub.StartMatch, request)
            except ApiError as error:
                if error.reason != "ENTROPY_MISSING":
                    raise
                if not await self._pledges.reveal_held(match_id):
                    await patience.pause(error)
            else:
                return receipt_from_wire(response.receipt)

    async def answer(
        self, match_id: str, prompt_id: str, answer: Answer, *, request_id: str | None = None
    ) -> Receipt:
        """Answer an open prompt of the caller's seat."""
        request = match_pb2.SubmitAnswerRequest(
            request_id=request_id or new_request_id(),
            match_id=match_id,
            prompt_id=prompt_id,
            answer=answer_to_wire(answer),
        )
        response = await self._caller.call(lambda stub: stub.SubmitAnswer, request)
        return receipt_from_wire(response.receipt)

    async def take_action(
        self, match_id: str, action: str, *, request_id: str | None = None
    ) -> Receipt:
        """Do what the caller's seat may do at any time, whoever is asked (`MatchUpdate.actions`).

        Open questions may be withdrawn by it and put anew: the updates of the match say so.
        """
        request = match_pb2.TakeActionRequest(
            request_id=request_id or new_request_id(), match_id=match_id, action=action
        )
        response = await self._caller.call(lambda stub: stub.TakeAction, request)
        return receipt_from_wire(response.receipt)

    async def set_standing(
        self,
        match_id: str,
        kind: str,
        answer: Answer | None,
        *,
        below: int = 0,
        request_id: str | None = None,
    ) -> Receipt:
        """Say how prompts of a kind are to be answered from now on, unasked; None: ask again.

        Given only where it is legal, and with `below` only while the seat's measure for such
        prompts (energy; hearts where hearts are at stake) is below that.
        """
        request = match_pb2.SetStandingAnswerRequest(
            request_id=request_id or new_request_id(),
            match_id=match_id,
            kind=kind,
            answer=None if answer is None else answer_to_wire(answer),
            below=below,
        )
        response = await self._caller.call(lambda stub: stub.SetStandingAnswer, request)
        return receipt_from_wire(response.receipt)

    async def abandon(self, match_id: str, *, request_id: str | None = None) -> Receipt:
        """End a match that has not begun; for its host."""
        request = match_pb2.AbandonMatchRequest(
            request_id=request_id or new_request_id(), match_id=match_id
        )
        response = await self._caller.call(lambda stub: stub.AbandonMatch, request)
        return receipt_from_wire(response.receipt)

    async def get(self, match_id: str, *, position: str = "") -> match_pb2.GetMatchResponse:
        """The match from the read model; with `position`, as of that receipt or later."""
        request = match_pb2.GetMatchRequest(match_id=match_id, position=position)
        return await self._caller.call(lambda stub: stub.GetMatch, request)

    async def list_matches(
        self,
        *,
        status: match_pb2.MatchStatus.ValueType = match_pb2.MATCH_STATUS_UNSPECIFIED,
        mine: bool = False,
    ) -> AsyncIterator[match_pb2.MatchSummary]:
        """All matches of a status (or of any), page by page."""
        page = match_pb2.ListMatchesRequest(status=status, mine=mine, page_size=_PAGE)
        while True:
            response = await self._caller.call(lambda stub: stub.ListMatches, page)
            for summary in response.matches:
                yield summary
            if not response.next_page_token:
                return
            page.page_token = response.next_page_token

    async def watch(
        self, match_id: str, from_sequence: int = 1, *, fold: bool = False
    ) -> AsyncIterator[MatchUpdate]:
        """The match's commits from `from_sequence` on, to its end: each once, without a gap.

        Goes on by itself when the server is lost and found again. With `fold`, which needs the
        match from its start, each update carries the state after it. Reveals the entropy that
        this client joined with when it is time. Raises ChainBroken when the commits do not form one
        hash chain, or the own seat is not as this client took it.
        """
        reader = UpdateReader(match_id, from_sequence, fold=fold)
        observer = self._pledges.observe(match_id, from_sequence)
        async for update in watched(self._caller, reader):
            await observer.saw(update)
            yield update

    def play(self) -> PlayStream:
        """The fast path, one stream for many matches: `async with client.play() as stream`."""
        return PlayStream(self._caller, self._pledges)


def _match_stub(channel: grpc.aio.Channel) -> match_pb2_grpc.MatchServiceAsyncStub:
    return match_pb2_grpc.MatchServiceStub(channel)
