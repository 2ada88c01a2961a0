"""Logging: one JSON object a line (for machines) or one line of text (for people), redacted.

Tokens and passwords are masked. The text of an exception may hold what a player must not know
(a card, a role), so only texts of our own and of the transport's errors are shown; of the others
only type and place, except at level debug.
"""

import datetime as dt
import json
import logging
import re
import sys
from typing import Any, Final, Literal, TextIO

from services.common.errors import ApiError, StartupError

Format = Literal["json", "console"]

_MASK: Final = "[redacted]"
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_BEARER = re.compile(r"(?i)\b(bearer )\S+")
_URL_PASSWORD = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_SECRET_NAMES = re.compile(
    r"(?i)(^|_)(seed|secret|password|token|entropy|salt|answer|picks|master_key|authorization)(_|$)"
)
_TELLING_ERRORS = (ApiError, StartupError, OSError)
_TELLING_MODULES = frozenset({"grpc", "kafka", "redis", "sqlite3"})
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
# Chatty at level info; what they warn of is wanted.
_CHATTY = ("kafka", "asyncio", "grpc", "urllib3")


def configure_logging(
    level: str = "info",
    format_: Format = "json",
    *,
    process: str,
    stream: TextIO | None = None,
) -> None:
    """Send all log records of this interpreter to `stream` (default: standard error)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    tell_all = level == "debug"
    kind = JsonFormatter if format_ == "json" else ConsoleFormatter
    handler.setFormatter(kind(process, tell_all=tell_all))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(level.upper() if tell_all else logging.WARNING)


def redacted(text: str) -> str:
    """Return the text with tokens and passwords masked."""
    text = _URL_PASSWORD.sub(_MASK, text)
    return _TOKEN.sub(_MASK, _BEARER.sub(rf"\1{_MASK}", text))


class JsonFormatter(logging.Formatter):
    """One JSON object: at, level, process, logger, message, the record's extras, exception."""

    def __init__(self, process: str, *, tell_all: bool = False) -> None:
        """`tell_all` shows the texts of all exceptions: for debugging only."""
        super().__init__()
        self._process = process
        self._tell_all = tell_all

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        line |= _extras(record)
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exception(record.exc_info[1], self._tell_all)
        return json.dumps(line, ensure_ascii=False, default=lambda value: redacted(str(value)))


class ConsoleFormatter(JsonFormatter):
    """The same in one line for people, exceptions on lines of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        extras = "".join(f" {name}={value}" for name, value in _extras(record).items())
        head = f"{_time(record)[11:23]} {record.levelname[:4].lower()} {record.name}"
        lines = [f"{head}: {redacted(record.getMessage())}{extras}"]
        if record.exc_info and record.exc_info[1] is not None:
            told = _exception(record.exc_info[1], self._tell_all)
            lines.append(f"  {told['type']}: {told.get('text', '(text not shown)')}")
            lines += [f"    {frame}" for frame in told["frames"]]
        return "\n".join(lines)


def _time(record: logging.LogRecord) -> str:
    at = dt.datetime.fromtimestamp(record.created, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {}
    for name, value in record.__dict__.items():
        if name in _STANDARD or name.startswith("_"):
            continue
        if _SECRET_NAMES.search(name) or isinstance(value, bytes):
            extras[name] = _MASK
        else:
            extras[name] = redacted(value) if isinstance(value, str) else value
    return extras


def _exception(error: BaseException, tell_all: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"type": f"{type(error).__module__}.{type(error).__qualname__}"}
    module = type(error).__module__.partition(".")[0]
    if tell_all or isinstance(error, _TELLING_ERRORS) or module in _TELLING_MODULES:
        told["text"] = redacted(str(error))
    frames = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(f"{code.co_filename}:{step.tb_lineno} {code.co_qualname}")
        step = step.tb_next
    told["frames"] = frames[-20:]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        told["cause"] = f"{type(cause).__module__}.{type(cause).__qualname__}"
    return told
