"""Looking back: states, replays, verification and export of recorded matches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc.aio

from diceledger.replay.v1 import replay_pb2, replay_pb2_grpc
from services.client.calls import Caller
from services.client.channels import Channels
from services.client.retry import Patience, RetryPolicy, is_retriable
from services.client.streams import resumed
from services.client.tokens import Credentials
from services.common.bundle import replacing
from services.common.errors import parse_error

# Verification re-runs every turn: it takes longer than an answer.
_ATTEMPT_S = 60.0


def seat_viewer(seat: int | None) -> replay_pb2.Viewer:
    """The eyes of a seat, or (None) of a spectator."""
    if seat is None:
        return replay_pb2.Viewer(spectator=True)
    return replay_pb2.Viewer(seat=seat)


ALL_OPEN = replay_pb2.Viewer(everything=True)


class ReplayCalls:
    """Calls of the replay service for one caller."""

    def __init__(self, channels: Channels, credentials: Credentials, policy: RetryPolicy) -> None:
        patient = replace(policy, attempt_s=max(policy.attempt_s, _ATTEMPT_S))
        self._caller: Caller[replay_pb2_grpc.ReplayServiceAsyncStub] = Caller(
            _replay_stub, channels, credentials, patient
        )

    async def state(
        self, match_id: str, *, sequence: int = 0, viewer: replay_pb2.Viewer | None = None
    ) -> replay_pb2.GetStateResponse:
        """The state after one commit (0: the newest), as the viewer may see it."""
        request = replay_pb2.GetStateRequest(
            match_id=match_id, sequence=sequence, viewer=viewer or seat_viewer(None)
        )
        return await self._caller.call(lambda stub: stub.GetState, request)

    async def stream(
        self,
        match_id: str,
        *,
        from_sequence: int = 1,
        to_sequence: int = 0,
        viewer: replay_pb2.Viewer | None = None,
    ) -> AsyncIterator[replay_pb2.StreamReplayResponse]:
        """The commits of a span (0: to the newest), each told for people; resumes by itself."""
        eyes = viewer or seat_viewer(None)
        last = to_sequence
        if not last:
            last = (await self.state(match_id, viewer=eyes)).last_sequence
        wanted = max(1, from_sequence)

        def request() -> replay_pb2.StreamReplayRequest:
            return replay_pb2.StreamReplayRequest(
                match_id=match_id, from_sequence=wanted, to_sequence=last, viewer=eyes
            )

        responses = resumed(
            self._caller, lambda stub: stub.StreamReplay, request, lambda: wanted > last
        )
        async for response in responses:
            if response.sequence == wanted:
                wanted += 1
                yield response

    async def verify(self, match_id: str) -> replay_pb2.VerifyMatchResponse:
        """Have the server check the match's chain, admission, rules, dice and read model."""
        request = replay_pb2.VerifyMatchRequest(match_id=match_id)
        return await self._caller.call(lambda stub: stub.VerifyMatch, request)

    async def export(self, match_id: str) -> bytes:
        """A finished match as the content of one `.dlmatch` file."""
        request = replay_pb2.ExportMatchRequest(match_id=match_id)
        patience = Patience(self._caller.policy)
        while True:
            address = self._caller.channels.address
            metadata = await self._caller.credentials.metadata()
            stub = self._caller.stub(address)
            try:
                chunks = [
                    response.chunk
                    async for response in stub.ExportMatch(request, metadata=metadata)
                ]
                return b"".join(chunks)
            except grpc.aio.AioRpcError as error:
                failure = parse_error(error)
            if not is_retriable(failure):
                raise failure
            self._caller.channels.avoid(address)
            await patience.pause(failure)

    async def export_to(self, match_id: str, path: Path) -> int:
        """Write the file as a whole or not at all; return its size in bytes. Raises OSError."""
        content = await self.export(match_id)
        with replacing(path) as file:
            file.write(content)
        return len(content)


def _replay_stub(channel: grpc.aio.Channel) -> replay_pb2_grpc.ReplayServiceAsyncStub:
    return replay_pb2_grpc.ReplayServiceStub(channel)
