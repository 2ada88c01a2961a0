"""The calls of the replay service: request in, response out, refusals as ApiError."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from diceledger.replay.v1 import replay_pb2, replay_pb2_grpc
from engine import MatchState, describe_fact, state_hash
from services.common.auth import caller
from services.common.bundle import bundle_chunks
from services.common.errors import ApiError, Locale, locale_of, refuse
from services.common.factcodec import state_to_any
from services.common.metrics import Metrics
from services.common.redaction import redact_commit
from services.common.verify import Check, CheckStatus, Placed, Report, verify_commits
from services.common.viewfold import redacted
from services.common.views import Views
from services.replay.readmodel import check_read_model
from services.replay.recorded import Library, RecordedMatch
from services.replay.viewers import Eyes, granted, sees_all

CHUNK_BYTES: Final = 64 * 1024
# How long a call waits until the log has been read as far as it must have been.
FIND_S: Final = 10.0
# Verification and export work on a whole match at once: so many at a time, the rest waits.
_HEAVY_TOGETHER: Final = 2
_MATCH_ID: Final = re.compile(r"[a-z2-7]{26}")
_SEQUENCE_MAX: Final = 2**62
_STATUS: Final = {
    CheckStatus.PASSED: replay_pb2.CHECK_STATUS_PASSED,
    CheckStatus.FAILED: replay_pb2.CHECK_STATUS_FAILED,
    CheckStatus.NOT_APPLICABLE: replay_pb2.CHECK_STATUS_NOT_APPLICABLE,
}

R = TypeVar("R")


class ReplayHandlers(replay_pb2_grpc.ReplayServiceServicer):
    """Serves ReplayService."""

    _library: Library
    _views: Views

    def __init__(self, metrics: Metrics) -> None:
        """Call `open` before the first call comes in."""
        self._metrics = metrics
        self._heavy = asyncio.Semaphore(_HEAVY_TOGETHER)

    def open(self, library: Library, views: Views) -> None:
        """`library` finds the matches, `views` is what VerifyMatch compares with."""
        self._library = library
        self._views = views

    # -- one state --------------------------------------------------------------------------------

    async def GetState(  # noqa: N802 - gRPC's own naming
        self, request: replay_pb2.GetStateRequest, context: Any
    ) -> replay_pb2.GetStateResponse:
        """The state after one commit. Open to everybody, as far as `viewers` allows."""
        with self._counted("get_state"):
            match = await self._find(request.match_id, context, request.sequence)
            sequence = request.sequence or len(match.commits)
            _check_sequence(match, sequence, "sequence")
            eyes = granted(match, caller(context), request.viewer)
            state = match.fold(sequence, (eyes.viewer,)).state(eyes.viewer)
            if match.commits[sequence - 1].commit.final:
                state = match.whole()
            return replay_pb2.GetStateResponse(
                sequence=sequence,
                last_sequence=len(match.commits),
                state=state_to_any(state),
                state_hash=state_hash(state),
                commit_hash=match.commits[sequence - 1].commit.hash,
            )

    # -- a span of commits ------------------------------------------------------------------------

    async def StreamReplay(  # noqa: N802 - gRPC's own naming
        self, request: replay_pb2.StreamReplayRequest, context: Any
    ) -> AsyncIterator[replay_pb2.StreamReplayResponse]:
        """The commits of a span, each with its facts told. Open as GetState is."""
        with self._counted("stream_replay"):
            match = await self._find(request.match_id, context, request.to_sequence)
            first = request.from_sequence or 1
            last = request.to_sequence or len(match.commits)
            _check_sequence(match, first, "from_sequence")
            _check_sequence(match, last, "to_sequence")
            if first > last:
                raise refuse("BAD_SEQUENCE", "The span ends before it begins.", field="to_sequence")
            eyes = granted(match, caller(context), request.viewer)
            locale = locale_of(context)
            fold = match.fold(first - 1, (eyes.viewer,))
            for placed in match.commits[first - 1 : last]:
                commit = placed.commit
                fold.apply(commit.facts(), final=commit.final)
                state = match.whole() if commit.final else fold.state(eyes.viewer)
                yield _told(placed, eyes, state, locale)
                await asyncio.sleep(0)

    # -- verification -----------------------------------------------------------------------------

    async def VerifyMatch(  # noqa: N802 - gRPC's own naming
        self, request: replay_pb2.VerifyMatchRequest, context: Any
    ) -> replay_pb2.VerifyMatchResponse:
        """Every check there is. Open to everybody; findings keep the secrets of a running match."""
        with self._counted("verify_match"):
            async with self._heavy:
                match = await self._find(request.match_id, context)
                report = await asyncio.to_thread(
                    verify_commits,
                    match.commits,
                    epoch_at=lambda offset: self._library.epoch_at(match, offset),
                    secrets_open=sees_all(match, caller(context)),
                )
                again = self._finder(request.match_id, context)
                model = await check_read_model(self._views, match, again)
            return _reported(report, model)

    # -- export -----------------------------------------------------------------------------------

    async def ExportMatch(  # noqa: N802 - gRPC's own naming
        self, request: replay_pb2.ExportMatchRequest, context: Any
    ) -> AsyncIterator[replay_pb2.ExportMatchResponse]:
        """The match as one file: finished ones for all, others for arbiters without a seat."""
        with self._counted("export_match"):
            async with self._heavy:
                match = await self._find(request.match_id, context)
                if not sees_all(match, caller(context)):
                    raise refuse("MATCH_NOT_FINISHED", field="match_id")
                content = await asyncio.to_thread(_exported, match)
            for start in range(0, len(content), CHUNK_BYTES):
                chunk = content[start : start + CHUNK_BYTES]
                yield replay_pb2.ExportMatchResponse(chunk=chunk)

    # -- shared -----------------------------------------------------------------------------------

    async def _find(self, match_id: str, context: Any, sequence: int = 0) -> RecordedMatch:
        if not _MATCH_ID.fullmatch(match_id):
            raise refuse("BAD_MATCH_ID", field="match_id")
        if not 0 <= sequence <= _SEQUENCE_MAX:
            raise refuse("BAD_SEQUENCE", field="sequence")
        partition = self._views.partition_of(match_id)
        remaining = context.time_remaining()
        timeout = FIND_S if remaining is None else max(0.0, min(FIND_S, remaining * 0.9))
        return await self._library.find(match_id, partition, sequence=sequence, timeout=timeout)

    def _finder(self, match_id: str, context: Any) -> Callable[[], Awaitable[RecordedMatch]]:
        return lambda: self._find(match_id, context)

    @contextmanager
    def _counted(self, command: str) -> Iterator[None]:
        """Count the call by its result."""
        began = time.monotonic()
        try:
            yield
        except ApiError as error:
            self._metrics.command(command, error.reason)
            raise
        except (GeneratorExit, asyncio.CancelledError):
            self._metrics.command(command, "CANCELLED")
            raise
        else:
            self._metrics.command(command, "ok", time.monotonic() - began)


def _check_sequence(match: RecordedMatch, sequence: int, field: str) -> None:
    """Refuse sequences that the match does not have."""
    if sequence < 1:
        raise refuse("BAD_SEQUENCE", field=field)
    if sequence > len(match.commits):
        raise refuse(
            "SEQUENCE_OUT_OF_RANGE",
            field=field,
            metadata={"last_sequence": str(len(match.commits))},
        )


def _told(
    placed: Placed, eyes: Eyes, state: MatchState, locale: Locale
) -> replay_pb2.StreamReplayResponse:
    """One commit for the eyes: its redacted form, and its facts told."""
    commit = placed.commit
    # The commit that ends the match opens everything.
    everything = eyes.everything or commit.final
    facts = commit.facts() if everything else redacted(commit.facts(), eyes.viewer)
    lines = (describe_fact(state, fact, locale) for fact in facts)
    return replay_pb2.StreamReplayResponse(
        sequence=commit.sequence,
        commit=redact_commit(commit, eyes.seat, everything=everything),
        lines=[line for line in lines if line],
        state_hash=state_hash(state),
    )


def _exported(match: RecordedMatch) -> bytes:
    """The match as the content of a file."""
    records = ((placed.offset, placed.commit.value) for placed in match.commits)
    hashed = state_hash(match.whole())
    return b"".join(
        bundle_chunks(records, state_hash=hashed, exported_at_ms=time.time_ns() // 1_000_000)
    )


def _reported(report: Report, model: Check) -> replay_pb2.VerifyMatchResponse:
    checks = (*report.checks, model)
    return replay_pb2.VerifyMatchResponse(
        passed=all(check.status is not CheckStatus.FAILED for check in checks),
        last_sequence=report.last_sequence,
        state_hash=report.state_hash,
        checks=[
            replay_pb2.Check(
                check=check.check,
                status=_STATUS[check.status],
                count=check.count,
                sequence=check.sequence,
                finding=check.finding,
            )
            for check in checks
        ],
    )
