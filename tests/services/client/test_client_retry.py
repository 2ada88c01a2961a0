"""Patience: what is tried again, for how long, and what is not."""

import pytest
from grpc import StatusCode

from services.client.retry import RetryPolicy, is_retriable, retrying
from services.common.errors import ApiError, refuse

QUICK = RetryPolicy(total_s=0.3, attempt_s=0.1, first_wait_s=0.001, longest_wait_s=0.01)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (refuse("CONNECTION_LOST"), True),
        (refuse("NO_OWNER"), True),
        (refuse("NOT_APPLIED"), True),
        (refuse("TOO_MANY_IN_FLIGHT"), True),
        (ApiError(StatusCode.UNAVAILABLE, "SOMETHING_NEW"), True),
        (ApiError(StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"), True),
        (refuse("PROMPT_CLOSED"), False),
        (refuse("ILLEGAL_ANSWER"), False),
        (refuse("TOKEN_EXPIRED"), False),
        (refuse("MATCH_NOT_FOUND"), False),
    ],
)
def test_what_is_tried_again(error: ApiError, expected: bool) -> None:
    assert is_retriable(error) is expected


async def test_a_call_is_repeated_until_it_is_answered() -> None:
    failures: list[str] = []
    attempts = 0

    async def attempt(seconds: float) -> str:
        nonlocal attempts
        attempts += 1
        assert 0 < seconds <= QUICK.attempt_s
        if attempts < 4:
            raise refuse("CONNECTION_LOST")
        return "answered"

    answer = await retrying(QUICK, attempt, lambda error: failures.append(error.reason))
    assert (answer, attempts, failures) == ("answered", 4, ["CONNECTION_LOST"] * 3)


async def test_a_refusal_is_final() -> None:
    async def attempt(_: float) -> str:
        raise refuse("PROMPT_CLOSED")

    with pytest.raises(ApiError) as raised:
        await retrying(QUICK, attempt, lambda _: None)
    assert raised.value.reason == "PROMPT_CLOSED"


async def test_patience_ends() -> None:
    async def attempt(_: float) -> str:
        raise refuse("NO_OWNER")

    with pytest.raises(ApiError) as raised:
        await retrying(QUICK, attempt, lambda _: None)
    assert raised.value.reason == "NO_OWNER"
