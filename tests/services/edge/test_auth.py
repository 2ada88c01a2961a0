"""Who gets in, and for how long."""

import asyncio
import time
from typing import Any

import grpc
import grpc.aio
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grpc_health.v1 import health_pb2, health_pb2_grpc

from diceledger.match.v1 import match_pb2
from services.common.auth import (
    Caller,
    TokenKey,
    Verifier,
    acting_as,
    caller,
    make_token,
    public_token_key,
    secret_token_key,
)
from services.common.errors import ApiError, parse_error
from tests.services.edge.serving import KEY, bearer, edge

NOW = 1_700_000_000.0


def verifier(*keys: TokenKey, **settings: Any) -> Verifier:
    return Verifier(keys or [KEY], clock=lambda: NOW, **settings)


def signed(**claims: Any) -> str:
    return jwt.encode({"sub": "ann", "exp": NOW + 60, **claims}, KEY.key, algorithm="HS256")


def refusal(check: Verifier, token: str) -> str:
    with pytest.raises(ApiError) as caught:
        check.verify(token)
    return caught.value.reason


def public_pem(private: Any) -> bytes:
    pem: bytes = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


async def call_with(*metadata: tuple[str, str]) -> str:
    """The reason that a call with this metadata is refused with; "" when it is answered."""
    async with edge() as running:
        try:
            await running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return parse_error(error).reason
    return ""


def test_a_token_says_who_calls() -> None:
    token = make_token(KEY, "ann@home", ["player", "arbiter"], name="Ann 安", now=NOW)
    who = verifier().verify(token)
    assert (who.subject, who.name) == ("ann@home", "Ann 安")
    assert who.roles == {"player", "arbiter"}
    assert who.expires == NOW + 86_400


def test_the_token_itself_is_in_no_repr() -> None:
    token = make_token(KEY, "ann", now=NOW)
    assert token not in repr(verifier().verify(token))
    assert "secret" not in repr(KEY)


def test_without_roles_a_caller_is_a_player_and_without_a_name_has_the_subject() -> None:
    who = verifier().verify(signed())
    assert (who.roles, who.name) == (frozenset({"player"}), "ann")


def test_roles_of_a_newer_version_give_no_rights() -> None:
    assert verifier().verify(signed(roles=["player", "archmage"])).roles == {"player"}


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": ""},
        {"sub": "a" * 65},
        {"sub": "a b"},
        {"sub": "ann\n"},
        {"sub": 7},
        {"sub": None},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"roles": "arbiter"},
        {"roles": [1]},
        {"name": "x" * 41},
        {"name": "\x1b[31m"},
        {"name": " Ann"},
        {"name": 5},
        {"nbf": NOW + 3600},
        {"nbf": "x"},
        {"exp": 1e300},
        {"exp": float("inf")},
        {"exp": float("nan")},
    ],
)
def test_a_malformed_claim_makes_the_token_invalid(claims: dict[str, Any]) -> None:
    assert refusal(verifier(), signed(**claims)) == "TOKEN_INVALID"


@pytest.mark.parametrize("missing", ["sub", "exp"])
def test_subject_and_expiry_are_required(missing: str) -> None:
    claims = {"sub": "ann", "exp": NOW + 60}
    del claims[missing]
    token = jwt.encode(claims, KEY.key, algorithm="HS256")
    assert refusal(verifier(), token) == "TOKEN_INVALID"


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "x" * 100_000, "é.é.é"])
def test_rubbish_is_no_token(token: str) -> None:
    assert refusal(verifier(), token) == "TOKEN_INVALID"


def test_an_unsigned_token_is_invalid() -> None:
    token = jwt.encode({"sub": "ann", "exp": NOW + 60}, "", algorithm="none")
    assert refusal(verifier(), token) == "TOKEN_INVALID"


def test_another_secret_signs_nothing_here() -> None:
    other = secret_token_key(b"another secret of at least 32 bytes")
    assert refusal(verifier(), make_token(other, "ann", now=NOW)) == "TOKEN_INVALID"


def test_a_public_key_is_no_shared_secret() -> None:
    """Algorithm confusion: HS256 with the public key's text as the secret."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = public_pem(private)
    header = jwt.utils.base64url_encode(b'{"alg":"HS256","typ":"JWT"}')
    body = jwt.utils.base64url_encode(b'{"sub":"ann","exp":1700000060}')
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        header + b"." + body, pem
    )
    token = b".".join((header, body, jwt.utils.base64url_encode(signature))).decode()
    assert refusal(verifier(public_token_key(pem)), token) == "TOKEN_INVALID"


def test_ed25519_and_rsa_public_keys_check_tokens_and_several_keys_stand_side_by_side() -> None:
    ed = Ed25519PrivateKey.generate()
    rs = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    check = verifier(KEY, public_token_key(public_pem(ed)), public_token_key(public_pem(rs)))
    for key in (KEY, TokenKey("EdDSA", ed), TokenKey("RS256", rs)):
        assert check.verify(make_token(key, "ann", now=NOW)).subject == "ann"


def test_weak_or_foreign_keys_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        secret_token_key(b"short")
    with pytest.raises(ValueError, match="2048"):
        public_token_key(public_pem(rsa.generate_private_key(65537, 1024)))
    with pytest.raises(ValueError, match="Ed25519 and RSA"):
        public_token_key(public_pem(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(ValueError, match="PEM"):
        public_token_key(b"not a key")


def test_issuer_and_audience_are_checked_where_they_are_set() -> None:
    check = verifier(issuer="club", audience="tables")
    good = make_token(KEY, "ann", issuer="club", audience="tables", now=NOW)
    assert check.verify(good).subject == "ann"
    for issuer, audience in (("club", ""), ("", "tables"), ("club", "bar"), ("pub", "tables")):
        token = make_token(KEY, "ann", issuer=issuer, audience=audience, now=NOW)
        assert refusal(check, token) == "TOKEN_INVALID"
    assert verifier().verify(good).subject == "ann"


def test_an_expired_token_says_so_and_a_remembered_one_expires_too() -> None:
    clock = [NOW]
    check = Verifier([KEY], clock=lambda: clock[0])
    token = make_token(KEY, "ann", lifetime_s=10, now=NOW)
    assert check.verify(token).subject == "ann"
    clock[0] = NOW + 9.9
    assert check.verify(token).subject == "ann"
    clock[0] = NOW + 10
    assert refusal(check, token) == "TOKEN_EXPIRED"
    assert refusal(check, token) == "TOKEN_EXPIRED"


def test_only_so_many_tokens_are_remembered() -> None:
    check = verifier(remembered_max=3)
    for number in range(10):
        check.verify(make_token(KEY, f"p{number}", now=NOW))
    assert len(check._remembered) == 3


def test_a_maker_refuses_what_no_server_would_take() -> None:
    with pytest.raises(ValueError, match="subject"):
        make_token(KEY, "two words")
    with pytest.raises(ValueError, match="archmage"):
        make_token(KEY, "ann", ["archmage"])
    with pytest.raises(ValueError, match="name"):
        make_token(KEY, "ann", name="\n")


def test_a_role_is_required_by_name() -> None:
    who = Caller("ann", frozenset({"player"}), "Ann", NOW)
    who.require("arbiter", "player")
    with pytest.raises(ApiError) as caught:
        who.require("arbiter", "operator")
    assert caught.value.reason == "ROLE_REQUIRED"
    assert caught.value.metadata == {"roles": "arbiter,operator"}


def test_outside_of_a_call_there_is_no_caller() -> None:
    with pytest.raises(AssertionError):
        caller()
    with acting_as(Caller("bob", frozenset(), "Bob", NOW)) as _:
        assert caller().subject == "bob"


async def test_a_call_without_a_good_token_is_refused() -> None:
    assert await call_with() == "TOKEN_MISSING"
    assert await call_with(("authorization", "Basic YTpi")) == "TOKEN_INVALID"
    assert await call_with(("authorization", "Bearer")) == "TOKEN_INVALID"
    assert await call_with(("authorization", "Bearer a.b.c")) == "TOKEN_INVALID"
    assert await call_with(*bearer(lifetime_s=-5)) == "TOKEN_EXPIRED"
    assert await call_with(*bearer("ann"), *bearer("bob")) == "TOKEN_INVALID"
    assert await call_with(*bearer()) == ""
    assert await call_with(("authorization", bearer()[0][1].replace("Bearer", "bearer"))) == ""


async def test_refusals_do_not_tell_which_check_failed() -> None:
    texts = set()
    later = time.time() + 999
    for token in ("a.b.c", signed(sub="a b", exp=later), signed(nbf=later, exp=later)):
        async with edge() as running:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await running.stub.SubmitAnswer(
                    match_pb2.SubmitAnswerRequest(),
                    metadata=(("authorization", f"Bearer {token}"),),
                )
            texts.add(caught.value.details())
    assert len(texts) == 1


async def test_the_handler_knows_its_caller_though_calls_overlap() -> None:
    async def answering(request: Any, context: Any) -> Any:
        before = caller(context).subject
        await asyncio.sleep(0.01)
        assert caller(context).subject == before
        return match_pb2.SubmitAnswerResponse(receipt=match_pb2.Receipt(match_id=before))

    async with edge() as running:
        running.service.answering = answering
        names = [f"p{number}" for number in range(20)]
        replies = await asyncio.gather(
            *(
                running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer(name))
                for name in names
            )
        )
    assert [reply.receipt.match_id for reply in replies] == names


@pytest.mark.parametrize("method", ["watch", "play"])
async def test_a_long_stream_ends_when_the_token_expires(method: str) -> None:
    closed = asyncio.Event()

    async def streaming(request: Any, context: Any) -> Any:
        try:
            while True:
                yield match_pb2.WatchMatchResponse()
                await asyncio.sleep(0.05)
        finally:
            closed.set()

    async with edge() as running:
        running.service.streaming = streaming
        metadata = bearer(lifetime_s=1, now=time.time())
        call = (
            running.stub.WatchMatch(match_pb2.WatchMatchRequest(), metadata=metadata)
            if method == "watch"
            else running.stub.Play(metadata=metadata)
        )
        started = time.monotonic()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
        assert parse_error(caught.value).reason == "TOKEN_EXPIRED"
        assert 0.3 < time.monotonic() - started < 20
        assert method == "play" or closed.is_set()


async def test_a_timeout_inside_a_stream_is_not_taken_for_an_expired_token() -> None:
    async def streaming(request: Any, context: Any) -> Any:
        yield match_pb2.WatchMatchResponse()
        raise TimeoutError

    async with edge() as running:
        running.service.streaming = streaming
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in running.stub.WatchMatch(
                match_pb2.WatchMatchRequest(), metadata=bearer()
            ):
                pass
    assert parse_error(caught.value).reason == "INTERNAL"


async def test_health_needs_no_token() -> None:
    async with edge() as running:
        stub = health_pb2_grpc.HealthStub(running.channel)
        reply = await stub.Check(health_pb2.HealthCheckRequest())
        assert reply.status == health_pb2.HealthCheckResponse.NOT_SERVING
