"""Fair randomness: every draw is recomputable from the seed, the seats' entropies and the draw's
number.

Draw n is HMAC-SHA256(seed, domain, match id, entropies, n, block), turned into values by rejection
sampling, so every value is exactly equally likely. The seed is committed to before any seat joins
and revealed at the end.

Who brings its entropy last could try out values, if it knew everything else; and the operator, who
knows the seed, could be its friend. So a seat may bring a commitment first (entropy_commitment) and
reveal its entropy only when every seat is taken, when all others are bound to theirs. One honest
seat that does so is enough: until then nobody else can compute a draw for any choice, and then
nobody has a choice left. What remains to the others is to refuse to reveal, which prevents the
start, for all to see. Seats that bring their entropy openly, or none, add no such protection; in a
match without any committed seat whoever joins last has to be trusted.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from struct import Struct

from engine.core.facts import ChanceDrawn, ChanceDrawnInSecret

_WORD_RANGE = 1 << 32
_words = Struct(">8I").unpack  # a digest is eight words


def derive_seed(master_key: bytes, key_id: str, match_id: str) -> bytes:
    """The 32-byte seed of a match: HMAC-SHA256(master key, key id, match id)."""
    message = _prefixed(b"diceledger.seed.v1", key_id.encode(), match_id.encode())
    return hmac.digest(master_key, message, "sha256")


def commitment(seed: bytes) -> bytes:
    """What is published before the first seat joins."""
    return hashlib.sha256(seed).digest()


def entropy_commitment(entropy: bytes) -> bytes:
    """What a seat brings when it joins, so that it can reveal this entropy and no other later."""
    return hashlib.sha256(b"diceledger.entropy.v1" + entropy).digest()


def prefix(domain: str, match_id: str, entropies: Sequence[bytes]) -> bytes:
    """What all draws of one domain in one match have in common. The entropies are in seat order."""
    return _prefixed(b"diceledger.draw.v1", domain.encode(), match_id.encode(), *entropies)


def draw_from(seed: bytes, start: bytes, number: int, bound: int, count: int) -> tuple[int, ...]:
    """`count` independent values from 0 to bound-1 of draw `number`; start: see prefix."""
    assert 1 <= bound <= _WORD_RANGE, bound
    fixed = start + number.to_bytes(8, "big")
    limit = _WORD_RANGE - _WORD_RANGE % bound
    values: list[int] = []
    block = 0
    while len(values) < count:
        words = _words(hmac.digest(seed, fixed + block.to_bytes(4, "big"), "sha256"))
        if max(words) >= limit:
            words = tuple([word for word in words if word < limit])
        values += [word % bound for word in words[: count - len(values)]]
        block += 1
    return tuple(values)


def draw(
    seed: bytes,
    *,
    domain: str,
    match_id: str,
    entropies: Sequence[bytes],
    number: int,
    bound: int,
    count: int,
) -> tuple[int, ...]:
    """`count` independent values from 0 to bound-1 of draw `number`."""
    return draw_from(seed, prefix(domain, match_id, entropies), number, bound, count)


def recompute(
    chance: ChanceDrawn | ChanceDrawnInSecret,
    seed: bytes,
    match_id: str,
    entropies: Sequence[bytes],
) -> tuple[int, ...]:
    """The values that a logged draw must have had."""
    return draw(
        seed,
        domain=chance.domain,
        match_id=match_id,
        entropies=entropies,
        number=chance.number,
        bound=chance.bound,
        count=chance.count,
    )


def _prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
