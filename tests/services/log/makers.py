"""Builds commits for tests: well-formed records around facts that mean nothing."""

from services.common.commits import (
    Cause,
    EncodedFact,
    How,
    ParsedCommit,
    Ruleset,
    build_claim,
    build_release,
    make_commit,
    parse_commit,
)

LOG_ID = "log-of-tests"
_RULESET = Ruleset(game="king_of_tokyo", expansions=(), revision=1)


def facts(
    match_id: str,
    *,
    epoch: int,
    after: ParsedCommit | None = None,
    request_id: str | None = None,
    actor: str = "ann",
    final: bool = False,
    log_id: str = LOG_ID,
    partition: int = 0,
    fact_count: int = 2,
    digest: bytes = b"d" * 32,
    **changes: object,
) -> ParsedCommit:
    """The commit of `match_id` that follows `after` (None: its first), with `changes` to it."""
    sequence = after.sequence + 1 if after else 1
    fields: dict[str, object] = {
        "log_id": log_id,
        "partition": partition,
        "writer": "tester",
        "epoch": epoch,
        "match_id": match_id,
        "sequence": sequence,
        "first_fact": after.first_fact + after.fact_count if after else 0,
        "facts": [EncodedFact(f"type/{n}", b"\x08\x01") for n in range(fact_count)],
        "cause": Cause(
            request_id=f"r{sequence}" if request_id is None else request_id,
            actor=actor,
            seat=1,
            how=How.ANSWER,
            digest=digest,
            command="answer",
        ),
        "previous_hash": after.hash if after else b"",
        "ruleset": _RULESET,
        "final": final,
    }
    return make_commit(**{**fields, **changes})  # type: ignore[arg-type]  # the tests' own dict


def claim(
    previous_epoch: int, *, writer: str = "tester", log_id: str = LOG_ID, partition: int = 0
) -> ParsedCommit:
    """A claim of `writer` that believes `previous_epoch` to be current."""
    return parse_commit(
        build_claim(
            log_id=log_id,
            partition=partition,
            writer=writer,
            address=f"{writer}:1",
            previous_epoch=previous_epoch,
        )
    )


def release(epoch: int, *, log_id: str = LOG_ID, partition: int = 0) -> ParsedCommit:
    """The release of the partition by the owner under `epoch`."""
    return parse_commit(
        build_release(log_id=log_id, partition=partition, writer="tester", epoch=epoch)
    )
