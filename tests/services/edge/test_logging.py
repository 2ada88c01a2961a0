"""Logs tell where and what, and no secret."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from services.common.auth import make_token
from services.common.errors import StartupError
from services.common.logging import configure_logging, redacted
from tests.services.edge.serving import KEY


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(
    *, level: str = "info", format_: str = "json", error: Exception | None = None, **extra: Any
) -> str:
    stream = io.StringIO()
    configure_logging(level, format_, process="test", stream=stream)  # type: ignore[arg-type]  # the literals
    logging.getLogger("diceledger.x").error("it %s", "happened", exc_info=error, extra=extra)
    return stream.getvalue()


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_a_record_is_one_json_object() -> None:
    line = json.loads(logged(match="m1", sequence=7))
    assert line["message"] == "it happened"
    assert (line["level"], line["process"], line["logger"]) == ("error", "test", "diceledger.x")
    assert (line["match"], line["sequence"]) == ("m1", 7)
    assert line["at"].endswith("Z")


def test_secrets_by_name_and_bytes_are_masked() -> None:
    text = logged(seed="s3cr3t", token="s3cr3t", answer="s3cr3t", blob=b"s3cr3t", match="m1")
    assert "s3cr3t" not in text
    assert "m1" in text


def test_tokens_and_passwords_are_masked_wherever_they_stand() -> None:
    token = make_token(KEY, "ann")
    text = redacted(f"Bearer {token}; again {token}; redis://me:geheim@host/0")
    assert token not in text
    assert "geheim" not in text
    assert "host/0" in text


def test_the_text_of_a_foreign_exception_is_shown_at_level_debug_only() -> None:
    error = raised(KeyError("the traitor is seat 3"))
    assert "traitor" not in logged(error=error)
    assert "traitor" not in logged(error=error, format_="console")
    assert "traitor" in logged(error=error, level="debug")
    told = json.loads(logged(error=error))["exception"]
    assert told["type"] == "builtins.KeyError"
    assert "raised" in told["frames"][0]


def test_the_text_of_our_own_exception_is_shown() -> None:
    assert "No port." in logged(error=raised(StartupError("No port.")))
