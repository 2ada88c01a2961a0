"""Who calls: bearer JWTs, the roles in them, and how handlers learn of the caller.

Who is let in at all is the business of `services.common.gate`; which role may do what is decided
by the services (`Caller.require`). Refusals are constant texts: they do not tell which check
failed.
"""

import contextlib
import contextvars
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from services.common.errors import refuse

ROLES: Final = frozenset({"player", "organiser", "arbiter", "operator"})
SUBJECT_PATTERN: Final = re.compile(r"[A-Za-z0-9._:@+|/-]{1,64}")
SECRET_BYTES_LOW: Final = 32
_NAME_MAX = 40
_TOKEN_MAX = 8192
_RSA_BITS_LOW = 2048
_SCHEME = "bearer "
# The year 9999, in seconds since 1970.
_TIME_MAX = 253_402_300_799


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes the call, until `expires` (seconds since 1970); `token` is for forwarding."""

    subject: str
    roles: frozenset[str]
    name: str
    expires: float
    token: str = field(default="", repr=False)

    def has(self, role: str) -> bool:
        """Whether the caller has the role."""
        assert role in ROLES, role
        return role in self.roles

    def require(self, *roles: str) -> None:
        """Refuse (ROLE_REQUIRED) a caller who has none of the roles."""
        if not any(self.has(role) for role in roles):
            raise refuse("ROLE_REQUIRED", metadata={"roles": ",".join(roles)})


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key that signs or checks tokens, for one algorithm only: no confusion can forge one."""

    algorithm: str
    key: Any = field(repr=False)


def secret_token_key(secret: bytes) -> TokenKey:
    """Return the HS256 key of a shared secret; ValueError below 32 bytes."""
    if len(secret) < SECRET_BYTES_LOW:
        raise ValueError(f"a token secret needs at least {SECRET_BYTES_LOW} bytes")
    return TokenKey("HS256", secret)


def public_token_key(pem: bytes) -> TokenKey:
    """Return the key of a PEM public key: Ed25519 (EdDSA) or RSA from 2048 bits (RS256).

    Raises ValueError for anything else, a private key among it.
    """
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("not a PEM public key (-----BEGIN PUBLIC KEY-----)") from error
    if isinstance(key, Ed25519PublicKey):
        return TokenKey("EdDSA", key)
    if isinstance(key, RSAPublicKey):
        if key.key_size < _RSA_BITS_LOW:
            raise ValueError(f"an RSA key needs at least {_RSA_BITS_LOW} bits")
        return TokenKey("RS256", key)
    raise ValueError("only Ed25519 and RSA keys sign tokens")


def make_token(
    key: TokenKey,
    subject: str,
    roles: Sequence[str] = ("player",),
    *,
    name: str = "",
    lifetime_s: float = 86_400,
    issuer: str = "",
    audience: str = "",
    now: float | None = None,
) -> str:
    """Sign a token; `key` must be able to sign (a shared secret, or a private key).

    Raises ValueError for a subject, role or name that no server would take.
    """
    if not SUBJECT_PATTERN.fullmatch(subject):
        raise ValueError(
            f"a subject is 1 to 64 characters of A-Z a-z 0-9 . _ : @ + | / -: {subject!r}"
        )
    unknown = sorted(set(roles) - ROLES)
    if unknown:
        raise ValueError(f"unknown role {unknown[0]!r}; there are {', '.join(sorted(ROLES))}")
    if name and not _is_name(name):
        raise ValueError(f"a name is 1 to {_NAME_MAX} printable characters: {name!r}")
    issued = time.time() if now is None else now
    claims: dict[str, Any] = {
        "sub": subject,
        "roles": list(roles),
        "iat": int(issued),
        "exp": math.ceil(issued + lifetime_s),
    }
    claims |= {k: v for k, v in (("name", name), ("iss", issuer), ("aud", audience)) if v}
    return jwt.encode(claims, key.key, algorithm=key.algorithm)


class Verifier:
    """Checks tokens against the configured keys and remembers the good ones (a bounded LRU)."""

    def __init__(
        self,
        keys: Sequence[TokenKey],
        *,
        issuer: str = "",
        audience: str = "",
        leeway_s: float = 10,
        clock: Callable[[], float] = time.time,
        remembered_max: int = 4096,
    ) -> None:
        """`leeway_s` forgives clocks that are behind the issuer's; an expired token is expired."""
        assert keys, "a verifier without keys would refuse everybody"
        self._keys = tuple(keys)
        self._issuer = issuer
        self._audience = audience
        self._leeway_s = leeway_s
        self._clock = clock
        self._remembered_max = remembered_max
        self._remembered: OrderedDict[str, Caller] = OrderedDict()

    def verify(self, token: str) -> Caller:
        """Return whose token this is; ApiError TOKEN_INVALID or TOKEN_EXPIRED."""
        caller = self._remembered.get(token)
        if caller is None:
            caller = self._check(token)
            self._remembered[token] = caller
            if len(self._remembered) > self._remembered_max:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(token)
        if caller.expires <= self._clock():
            self._remembered.pop(token, None)
            raise refuse("TOKEN_EXPIRED")
        return caller

    def remaining_s(self, caller: Caller) -> float:
        """Seconds until the caller's token expires."""
        return caller.expires - self._clock()

    def _check(self, token: str) -> Caller:
        if len(token) > _TOKEN_MAX:
            raise refuse("TOKEN_INVALID")
        for key in self._keys:
            claims = self._claims(token, key)
            if claims is not None:
                if _number(claims.get("nbf", 0)) > self._clock() + self._leeway_s:
                    break
                return _caller_of(claims, token)
        raise refuse("TOKEN_INVALID")

    def _claims(self, token: str, key: TokenKey) -> dict[str, Any] | None:
        required = ["sub", "exp"]
        required += ["iss"] if self._issuer else []
        required += ["aud"] if self._audience else []
        try:
            return jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                issuer=self._issuer or None,
                audience=self._audience or None,
                options={
                    "require": required,
                    # Times are checked by our own clock: the expiry on every call.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_aud": bool(self._audience),
                    "verify_iss": bool(self._issuer),
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            return None


def caller(context: Any = None) -> Caller:
    """Return who makes the current call; only within an authenticated call (else AssertionError).

    `context` is not needed; it is there so that handlers may say which call they mean.
    """
    who = _CALLER.get()
    assert who is not None, "outside of an authenticated call"
    return who


def set_caller(who: Caller) -> None:
    """Say who makes the call that the current task serves; for the gate."""
    _CALLER.set(who)


@contextlib.contextmanager
def acting_as(who: Caller) -> Iterator[None]:
    """Run the block as if `who` made the call: for work on a caller's behalf, and for tests."""
    before = _CALLER.set(who)
    try:
        yield
    finally:
        _CALLER.reset(before)


_CALLER: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("caller", default=None)


def bearer(context: Any) -> str:
    """Return the call's bearer token; ApiError TOKEN_MISSING, or TOKEN_INVALID for no clear one."""
    values = [v for k, v in context.invocation_metadata() or () if k == "authorization"]
    if not values:
        raise refuse("TOKEN_MISSING")
    value = values[0]
    if len(values) > 1 or not isinstance(value, str) or not value[:7].lower() == _SCHEME:
        raise refuse("TOKEN_INVALID")
    return value[len(_SCHEME) :].strip()


def _caller_of(claims: dict[str, Any], token: str) -> Caller:
    subject = claims["sub"]
    roles, name = claims.get("roles", ["player"]), claims.get("name", "")
    if not isinstance(subject, str) or not SUBJECT_PATTERN.fullmatch(subject):
        raise refuse("TOKEN_INVALID")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise refuse("TOKEN_INVALID")
    if not isinstance(name, str) or (name and not _is_name(name)):
        raise refuse("TOKEN_INVALID")
    # Roles that this version does not know give no rights, and do no harm.
    return Caller(subject, ROLES & frozenset(roles), name or subject, _number(claims["exp"]), token)


def _number(claim: object) -> float:
    """Return a time claim; TOKEN_INVALID where it is no number that a time can be."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        raise refuse("TOKEN_INVALID")
    if not abs(claim) <= _TIME_MAX:  # nothing compares with NaN
        raise refuse("TOKEN_INVALID")
    return float(claim)


def _is_name(name: str) -> bool:
    return 1 <= len(name) <= _NAME_MAX and name.isprintable() and name.strip() == name
