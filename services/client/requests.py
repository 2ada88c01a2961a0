"""Request ids and entropy: what a client draws by itself."""

import secrets

_ID_BYTES = 12
ENTROPY_BYTES = 32
ENTROPY_LENGTHS = range(16, 65)


def new_request_id() -> str:
    """A request id that nobody else has used; keep it and a call may be repeated safely."""
    return secrets.token_hex(_ID_BYTES)


def new_entropy() -> bytes:
    """A seat's own contribution to every roll of the match: 32 bytes nobody else can foresee."""
    return secrets.token_bytes(ENTROPY_BYTES)
