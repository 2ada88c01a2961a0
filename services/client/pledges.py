"""The entropy that this client committed to, and what it must have seen before it reveals it.

A seat's entropy protects the dice only while nobody who knows it can still choose: so it leaves
this process when the match's own commits, checked as a hash chain, say that every seat is taken,
and the own one by our commitment. What was seen then is remembered: a server that shows another
beginning of the match later is found out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from engine import (
    EntropyRevealed,
    MatchCreated,
    MatchEnded,
    MatchStarted,
    SeatTaken,
    entropy_commitment,
)
from services.client.calls import Caller
from services.client.receipts import Receipt, receipt_from_wire
from services.client.requests import ENTROPY_LENGTHS, new_entropy
from services.client.streams import watched
from services.client.updates import ChainBroken, MatchUpdate, UpdateReader
from services.common.errors import ApiError, refuse

# Somebody else with the same token was quicker, or the lobby is over: the next commits tell.
_OVERTAKEN: Final = frozenset({"NOTHING_TO_REVEAL", "NOT_IN_LOBBY", "MATCH_FINISHED"})


@dataclass(slots=True, kw_only=True)
class Lobby:
    """How the seats of a match were taken, as its commits say."""

    seats: int = 0
    # By seat: the commitments that they brought, and what they revealed.
    commitments: dict[int, bytes] = field(default_factory=dict)
    revealed: dict[int, bytes] = field(default_factory=dict)
    sequence: int = 0
    # Hash of the commit that took the last seat: it binds every seat.
    full_hash: bytes = b""
    is_started: bool = False
    is_over: bool = False

    def apply(self, update: MatchUpdate) -> None:
        """Take the next commit into account."""
        self.sequence = update.sequence
        for fact in update.facts:
            match fact:
                case MatchCreated():
                    self.seats = fact.seats
                case SeatTaken():
                    self.commitments[fact.seat] = fact.entropy_commitment
                    if len(self.commitments) == self.seats:
                        self.full_hash = update.hash
                case EntropyRevealed():
                    self.revealed[fact.seat] = fact.entropy
                case MatchStarted():
                    self.is_started = self.is_over = True
                case MatchEnded():
                    self.is_over = True
                case _:
                    pass


@dataclass(slots=True, kw_only=True)
class Pledge:
    """What one seat of this client committed to."""

    match_id: str
    entropy: bytes
    # 0: not known yet.
    seat: int = 0
    is_revealed: bool = False
    # Of the lobby in which it was revealed.
    full_hash: bytes = b""

    @property
    def commitment(self) -> bytes:
        """What the seat brings when it joins."""
        return entropy_commitment(self.entropy)

    def seat_in(self, lobby: Lobby) -> int:
        """The seat that was taken with this pledge; 0: none."""
        commitment = self.commitment
        return self.seat or next((s for s, c in lobby.commitments.items() if c == commitment), 0)

    def is_due(self, lobby: Lobby) -> bool:
        """Whether it is time to reveal. Raises ChainBroken when the match is not the one that this
        client joined.
        """
        seat = self.seat_in(lobby)
        if seat not in lobby.commitments:
            return False
        wrong = ""
        if lobby.commitments[seat] != self.commitment:
            wrong = f"seat {seat} does not hold the commitment to entropy that this client sent"
        elif lobby.revealed.get(seat, self.entropy) != self.entropy:
            wrong = f"seat {seat} has another entropy than this client revealed"
        elif lobby.is_started and seat not in lobby.revealed:
            wrong = f"the match began without the entropy of seat {seat}"
        elif self.full_hash and lobby.full_hash not in (b"", self.full_hash):
            wrong = "the seats are not those for which this client revealed its entropy"
        if wrong:
            raise ChainBroken(lobby.sequence, wrong)
        is_missing = seat not in lobby.revealed and not self.is_revealed
        return bool(lobby.full_hash) and is_missing and not lobby.is_over


class Pledges:
    """All pledges of one caller, by match."""

    def __init__(self, caller: Caller[match_pb2_grpc.MatchServiceAsyncStub]) -> None:
        self._caller = caller
        self._held: dict[str, Pledge] = {}

    def make(self, match_id: str, entropy: bytes | None) -> Pledge:
        """The pledge to join a match with; the same again until the outcome of joining is known.

        None: fresh entropy. Raises ApiError BAD_ENTROPY.
        """
        if entropy is not None and len(entropy) not in ENTROPY_LENGTHS:
            raise refuse("BAD_ENTROPY", field="entropy")
        held = self._held.get(match_id)
        if held is not None and entropy in (None, held.entropy):
            return held
        pledge = Pledge(match_id=match_id, entropy=entropy or new_entropy())
        # A seat that is taken keeps its pledge, whatever else is tried.
        if held is None or not held.seat:
            self._held[match_id] = pledge
        return pledge

    def took(self, pledge: Pledge, seat: int) -> None:
        """The seat was taken by this pledge."""
        pledge.seat = seat
        self._held[pledge.match_id] = pledge

    def drop(self, pledge: Pledge) -> None:
        """Joining was refused, so nothing is bound to the pledge; or its match is over."""
        if self._held.get(pledge.match_id) is pledge:
            del self._held[pledge.match_id]

    def get(self, match_id: str) -> Pledge | None:
        """The pledge for a match."""
        return self._held.get(match_id)

    def observe(self, match_id: str, from_sequence: int) -> Observer:
        """For one watch: looks at its updates and reveals when it is time."""
        return Observer(self, match_id, from_start=from_sequence <= 1)

    async def reveal(self, match_id: str, entropy: bytes | None = None) -> Receipt:
        """Look at the match from its start, and reveal. See Client.reveal."""
        pledge = self._held.get(match_id) if entropy is None else self.make(match_id, entropy)
        if pledge is None:
            raise refuse("NOTHING_TO_REVEAL")
        lobby = await self._look(match_id, pledge.is_due)
        if not lobby.full_hash:
            raise refuse("ENTROPY_TOO_EARLY")
        if not pledge.seat_in(lobby):
            raise refuse("NOTHING_TO_REVEAL")
        return await self.send(pledge, lobby)

    async def reveal_held(self, match_id: str) -> bool:
        """Reveal what is held for a match and was not revealed yet, if anything."""
        pledge = self._held.get(match_id)
        if pledge is None or pledge.is_revealed:
            return False
        try:
            await self.reveal(match_id)
        except ApiError as error:
            if error.reason not in _OVERTAKEN:
                raise
            return False
        return True

    async def send(self, pledge: Pledge, lobby: Lobby) -> Receipt:
        """Reveal; may be repeated."""
        pledge.full_hash = lobby.full_hash
        request = match_pb2.RevealEntropyRequest(
            # One per match: whoever of this client's parts is first, it counts once.
            request_id=f"reveal.{pledge.match_id}",
            match_id=pledge.match_id,
            entropy=pledge.entropy,
        )
        response = await self._caller.call(lambda stub: stub.RevealEntropy, request)
        pledge.is_revealed = True
        return receipt_from_wire(response.receipt)

    async def _look(self, match_id: str, is_enough: Callable[[Lobby], bool]) -> Lobby:
        """The lobby of a match up to its newest commit, or as far as is enough."""
        reader = UpdateReader(match_id, 1, fold=False)
        lobby = Lobby()
        async with aclosing(watched(self._caller, reader)) as updates:
            async for update in updates:
                lobby.apply(update)
                if is_enough(lobby) or update.live or lobby.is_over:
                    break
        return lobby


class Observer:
    """Follows the lobby of one watched match, and reveals the client's entropy when it is time."""

    def __init__(self, pledges: Pledges, match_id: str, *, from_start: bool) -> None:
        self._pledges = pledges
        self._match_id = match_id
        self._from_start = from_start
        self._lobby = Lobby()

    async def saw(self, update: MatchUpdate) -> None:
        """Look at the next update. Raises ApiError when revealing fails, and ChainBroken."""
        lobby = self._lobby
        was_over = lobby.is_over
        if not was_over:
            lobby.apply(update)
        pledge = self._pledges.get(self._match_id)
        if pledge is None:
            return
        if update.final:
            self._pledges.drop(pledge)
        if was_over or (lobby.is_over and not self._from_start):
            return
        try:
            if self._from_start:
                if pledge.is_due(lobby):
                    await self._pledges.send(pledge, lobby)
            elif update.live and not pledge.is_revealed:
                await self._pledges.reveal(self._match_id)
        except ApiError as error:
            if error.reason not in _OVERTAKEN and error.reason != "ENTROPY_TOO_EARLY":
                raise
