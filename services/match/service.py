"""MatchService on the wire: requests in, replies and refusals out; what is decided is elsewhere."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import grpc

from diceledger.match.v1 import match_pb2
from services.common import auth
from services.common.errors import ApiError, locale_of
from services.match.commands import (
    PlayerCommand,
    checked_match_id,
    read_abandon,
    read_create,
    read_join,
    read_reveal,
    read_standing,
    read_start,
    read_submit,
    read_take,
)
from services.match.forward import Origin, hops_of
from services.match.outcomes import Applied, Outcome
from services.match.play import PlayNode, PlayStream, checked_sequence
from services.match.queries import Queries
from services.match.streams import Outlet
from services.match.watch import Feed, too_slow
from services.match.wire import watch_response

SERVICE_NAME: Final = "diceledger.match.v1.MatchService"
_TAKE: Final = 32

RequestT = TypeVar("RequestT")


class ServingNode(PlayNode, Protocol):
    """What the service needs of the node."""

    @property
    def log_id(self) -> str:
        """Identity of the log."""


class MatchServicer:
    """The handlers of MatchService."""

    def __init__(self, node: ServingNode, queries: Queries) -> None:
        self._node = node
        self._queries = queries

    def handlers(self) -> grpc.GenericRpcHandler:
        """All methods; streams are written as bytes, since updates are encoded once for many."""
        unary: dict[str, tuple[Any, Any]] = {
            "ListGames": (self.list_games, match_pb2.ListGamesRequest),
            "CreateMatch": (self.create_match, match_pb2.CreateMatchRequest),
            "JoinMatch": (self.join_match, match_pb2.JoinMatchRequest),
            "RevealEntropy": (self.reveal_entropy, match_pb2.RevealEntropyRequest),
            "StartMatch": (self.start_match, match_pb2.StartMatchRequest),
            "SubmitAnswer": (self.submit_answer, match_pb2.SubmitAnswerRequest),
            "TakeAction": (self.take_action, match_pb2.TakeActionRequest),
            "SetStandingAnswer": (self.set_standing_answer, match_pb2.SetStandingAnswerRequest),
            "AbandonMatch": (self.abandon_match, match_pb2.AbandonMatchRequest),
            "GetMatch": (self.get_match, match_pb2.GetMatchRequest),
            "ListMatches": (self.list_matches, match_pb2.ListMatchesRequest),
        }
        methods: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(
                behaviour,
                request_deserializer=request.FromString,
                response_serializer=_serialized,
            )
            for name, (behaviour, request) in unary.items()
        }
        methods["WatchMatch"] = grpc.unary_stream_rpc_method_handler(
            self.watch_match,
            request_deserializer=match_pb2.WatchMatchRequest.FromString,
            response_serializer=bytes,
        )
        methods["Play"] = grpc.stream_stream_rpc_method_handler(
            self.play,
            request_deserializer=match_pb2.PlayRequest.FromString,
            response_serializer=bytes,
        )
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    # -- commands ---------------------------------------------------------------------------------

    async def create_match(
        self, request: match_pb2.CreateMatchRequest, context: Any
    ) -> match_pb2.CreateMatchResponse:
        """See the proto."""
        origin = _origin(context)
        origin.caller.require("player", "organiser")
        read = partial(read_create, log_id=self._node.log_id)
        applied = await self._run("create", read, request, origin)
        return match_pb2.CreateMatchResponse(
            match_id=applied.match_id, receipt=applied.receipt(), commitment=applied.commitment
        )

    async def join_match(
        self, request: match_pb2.JoinMatchRequest, context: Any
    ) -> match_pb2.JoinMatchResponse:
        """See the proto."""
        origin = _origin(context)
        origin.caller.require("player")
        applied = await self._run("join", read_join, request, origin)
        return match_pb2.JoinMatchResponse(receipt=applied.receipt(), seat=applied.seat)

    async def reveal_entropy(
        self, request: match_pb2.RevealEntropyRequest, context: Any
    ) -> match_pb2.RevealEntropyResponse:
        """See the proto."""
        applied = await self._run("reveal", read_reveal, request, _origin(context))
        return match_pb2.RevealEntropyResponse(receipt=applied.receipt())

    async def start_match(
        self, request: match_pb2.StartMatchRequest, context: Any
    ) -> match_pb2.StartMatchResponse:
        """See the proto."""
        applied = await self._run("start", read_start, request, _origin(context))
        return match_pb2.StartMatchResponse(receipt=applied.receipt())

    async def submit_answer(
        self, request: match_pb2.SubmitAnswerRequest, context: Any
    ) -> match_pb2.SubmitAnswerResponse:
        """See the proto."""
        applied = await self._run("answer", read_submit, request, _origin(context))
        return match_pb2.SubmitAnswerResponse(receipt=applied.receipt())

    async def take_action(
        self, request: match_pb2.TakeActionRequest, context: Any
    ) -> match_pb2.TakeActionResponse:
        """See the proto."""
        applied = await self._run("action", read_take, request, _origin(context))
        return match_pb2.TakeActionResponse(receipt=applied.receipt())

    async def set_standing_answer(
        self, request: match_pb2.SetStandingAnswerRequest, context: Any
    ) -> match_pb2.SetStandingAnswerResponse:
        """See the proto."""
        applied = await self._run("standing", read_standing, request, _origin(context))
        return match_pb2.SetStandingAnswerResponse(receipt=applied.receipt())

    async def abandon_match(
        self, request: match_pb2.AbandonMatchRequest, context: Any
    ) -> match_pb2.AbandonMatchResponse:
        """See the proto."""
        applied = await self._run("abandon", read_abandon, request, _origin(context))
        return match_pb2.AbandonMatchResponse(receipt=applied.receipt())

    async def _run(
        self,
        name: str,
        read: Callable[[RequestT, auth.Caller], PlayerCommand],
        request: RequestT,
        origin: Origin,
    ) -> Applied:
        """Do what is requested; a caller who goes away does not stop the command."""
        try:
            command = read(request, origin.caller)
        except ApiError as error:
            self._node.metrics.command(name, error.reason)
            raise
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(result: Outcome) -> None:
            if not outcome.done():
                outcome.set_result(result)

        self._node.submit(command, origin, done)
        result = await outcome
        if isinstance(result, ApiError):
            raise result
        return result

    # -- queries ----------------------------------------------------------------------------------

    async def list_games(
        self, _: match_pb2.ListGamesRequest, context: Any
    ) -> match_pb2.ListGamesResponse:
        """See the proto."""
        return self._queries.list_games(locale_of(context))

    async def get_match(
        self, request: match_pb2.GetMatchRequest, context: Any
    ) -> match_pb2.GetMatchResponse:
        """See the proto."""
        checked_match_id(request.match_id)
        return await self._queries.get_match(request, auth.caller(), locale_of(context))

    async def list_matches(
        self, request: match_pb2.ListMatchesRequest, _: Any
    ) -> match_pb2.ListMatchesResponse:
        """See the proto."""
        return await self._queries.list_matches(request, auth.caller())

    # -- streams ----------------------------------------------------------------------------------

    async def watch_match(self, request: match_pb2.WatchMatchRequest, context: Any) -> None:
        """See the proto."""
        origin = _origin(context)
        match_id = checked_match_id(request.match_id)
        from_sequence = checked_sequence(request.from_sequence)
        news = asyncio.Event()
        feed = await self._node.open_feed(match_id, from_sequence, origin, news.set)
        next_sequence = feed.next_sequence
        with self._node.outlet(context) as outlet:
            try:
                async for sent in _written(feed, outlet, news):
                    next_sequence += sent
            except asyncio.CancelledError:
                if outlet.was_cut():
                    raise too_slow(next_sequence) from None
                raise
            finally:
                self._node.close_feed(feed, origin)
        if feed.error is not None:
            raise feed.error

    async def play(self, requests: Any, context: Any) -> None:
        """See the proto."""
        with self._node.outlet(context) as outlet:
            stream = PlayStream(self._node, _origin(context), outlet)
            try:
                await stream.run(requests)
            except asyncio.CancelledError:
                if outlet.was_cut():
                    raise too_slow() from None
                raise


async def _written(feed: Feed, outlet: Outlet, news: asyncio.Event) -> Any:
    """Write the feed out to its end; yields 1 for every update written."""
    while True:
        news.clear()
        while updates := feed.take(_TAKE):
            for update in updates:
                await outlet.write(watch_response(update))
                yield 1
        if feed.ended:
            return
        await news.wait()


def _origin(context: Any) -> Origin:
    return Origin(auth.caller(), locale_of(context), hops_of(context))


def _serialized(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded
