"""Settings of the service processes: environment variables and files in, one frozen object out.

Every bad value is reported, all at once, with its variable, the value (never of a secret) and what
would be right. Secrets come from files or the environment only and are in no repr.
"""

# ruff: noqa: RUF009 - `_setting` returns a dataclass field, not a default

import dataclasses
import difflib
import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from services.common.auth import SECRET_BYTES_LOW, TokenKey, public_token_key, secret_token_key
from services.common.errors import StartupError

PREFIX: Final = "DICELEDGER_"
Role = Literal["match", "projector", "replay", "topics"]
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,200}")
_NODE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SECURITY_PREFIXES = ("security_", "sasl_", "ssl_")
_WILDCARDS = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound to


class SettingsError(StartupError):
    """One or more settings cannot be used; `problems` has a sentence for each."""

    def __init__(self, problems: list[str]) -> None:
        """`problems` is not empty."""
        self.problems = tuple(problems)
        head = "A setting" if len(problems) == 1 else f"{len(problems)} settings"
        super().__init__(f"{head} cannot be used:\n" + "\n".join(f"  {p}" for p in problems))


class Address(NamedTuple):
    """Where something listens; port 0 means any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether nobody can connect to this literally."""
        return self.host in _WILDCARDS


def parse_address(text: str) -> Address:
    """Parse host:port, [IPv6]:port; ValueError with what would be right."""
    host, _, port = text.rpartition(":")
    number = int(port) if re.fullmatch("[0-9]{1,5}", port) else -1
    if not _HOST.fullmatch(host) or not 0 <= number <= 65_535:
        raise ValueError("host:port with a port of 0 to 65535, for example 127.0.0.1:50051")
    return Address(host, number)


def _addresses(text: str) -> tuple[Address, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ValueError("one or more host:port, joined by commas")
    return tuple(parse_address(part) for part in parts)


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _matching(pattern: re.Pattern[str], right: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(right)
        return text

    return parse


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return parse


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError("the path of a file that exists")
    if not os.access(path, os.R_OK):
        raise ValueError("the path of a file that this process may read")
    return path


def _files(text: str) -> tuple[Path, ...]:
    return tuple(_file(part.strip()) for part in text.split(",") if part.strip())


def _directory(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise ValueError("the path of a directory that exists")
    return path


def _kafka_security(text: str) -> Mapping[str, object]:
    try:
        options = json.loads(_file(text).read_bytes())
    except ValueError as error:
        # What the file says may be secret; what is wrong with its form is not.
        right = "a file with a JSON object" if isinstance(error, json.JSONDecodeError) else error
        raise ValueError(right) from None
    if not isinstance(options, dict):
        raise ValueError("a file with a JSON object")
    foreign = sorted(name for name in options if not name.startswith(_SECURITY_PREFIXES))
    if foreign:
        raise ValueError(f"a file with security_, sasl_ and ssl_ options only, not {foreign[0]}")
    return MappingProxyType(options)


def _redis_url(text: str) -> str:
    if not re.match(r"(rediss?|unix)://.", text):
        raise ValueError("redis://[:password@]host:port/0, rediss://… or unix:///path")
    return text


def _text(text: str) -> str:
    return text


def _users_of(variable: str) -> tuple[Role, ...]:
    """Return whose secrets these are: no other process looks at them."""
    if variable.startswith("TOKEN_"):
        return ("match", "replay")
    return (
        ("match",) if variable.startswith("MASTER_") else ("match", "projector", "replay", "topics")
    )


def _setting(
    variable: str,
    parse: Callable[[str], object],
    default: object,
    meaning: str,
    *,
    needed_by: tuple[Role, ...] = (),
    secret: bool = False,
) -> Any:
    metadata = {
        "variable": PREFIX + variable,
        "parse": parse,
        "meaning": meaning,
        "needed_by": needed_by,
        "used_by": _users_of(variable),
        "secret": secret,
    }
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a process must know to run. Times are named with their unit."""

    node: str = _setting(
        "NODE",
        _matching(_NODE, "1 to 64 characters of A-Z a-z 0-9 . _ -"),
        "",
        "Name of this process in records and logs; default: host name and process id.",
    )
    listen: Address = _setting(
        "LISTEN", parse_address, Address("127.0.0.1", 50051), "Where gRPC is served."
    )
    advertise: Address | None = _setting(
        "ADVERTISE",
        parse_address,
        None,
        "Where the other match processes reach this one; default: the listening address.",
    )
    metrics_listen: Address = _setting(
        "METRICS_LISTEN",
        parse_address,
        Address("127.0.0.1", 9464),
        "Where /metrics and /healthz are served.",
    )
    kafka: tuple[Address, ...] = _setting(
        "KAFKA",
        _addresses,
        (),
        "Kafka brokers to begin with, host:port joined by commas.",
        needed_by=("match", "projector", "replay", "topics"),
    )
    kafka_security: Mapping[str, object] | None = _setting(
        "KAFKA_SECURITY_FILE",
        _kafka_security,
        None,
        "File with a JSON object of kafka-python's security_, sasl_ and ssl_ options.",
        secret=True,
    )
    topic: str = _setting(
        "TOPIC",
        _matching(_TOPIC, "1 to 200 characters of A-Z a-z 0-9 . _ -"),
        "match-events",
        "Topic of the log.",
    )
    partitions: int = _setting(
        "PARTITIONS", _whole(1, 4096), 8, "Partitions of the topic; fixed for its life."
    )
    replication: int = _setting(
        "REPLICATION", _whole(1, 15), 1, "Copies of each partition, for `topics create`."
    )
    owners_group: str = _setting(
        "OWNERS_GROUP",
        _matching(_TOPIC, "1 to 200 characters of A-Z a-z 0-9 . _ -"),
        "match-owners",
        "Consumer group that spreads the partitions over the match processes.",
    )
    session_timeout_ms: int = _setting(
        "SESSION_TIMEOUT_MS",
        _whole(1_000, 60_000),
        6_000,
        "Silence after which a process loses its partitions.",
    )
    redis_url: str = _setting(
        "REDIS_URL",
        _redis_url,
        "",
        "Redis of the read models.",
        needed_by=("match", "projector", "replay"),
        secret=True,
    )
    token_secret: bytes = _setting(
        "TOKEN_SECRET",
        lambda text: text.encode(),
        b"",
        "Shared secret (HS256) of the bearer tokens, 32 bytes or more; or name its file in "
        "DICELEDGER_TOKEN_SECRET_FILE.",
        secret=True,
    )
    token_public_keys: tuple[Path, ...] = _setting(
        "TOKEN_PUBLIC_KEYS",
        _files,
        (),
        "PEM files of public keys (Ed25519, RSA) of the bearer tokens, joined by commas.",
    )
    token_issuer: str = _setting("TOKEN_ISSUER", _text, "", "Required `iss` of the tokens.")
    token_audience: str = _setting("TOKEN_AUDIENCE", _text, "", "Required `aud` of the tokens.")
    master_keys: Path | None = _setting(
        "MASTER_KEYS",
        _directory,
        None,
        "Directory of the master keys, <key id>.key each.",
        needed_by=("match",),
    )
    master_key_id: str = _setting(
        "MASTER_KEY_ID", _text, "", "Key of new matches; default: the last in order."
    )
    tls_cert: Path | None = _setting("TLS_CERT", _file, None, "PEM certificate chain of gRPC.")
    tls_key: Path | None = _setting("TLS_KEY", _file, None, "PEM private key of gRPC.")
    tls_client_ca: Path | None = _setting(
        "TLS_CLIENT_CA",
        _file,
        None,
        "PEM authorities of client certificates, which are then needed.",
    )
    tls_peer_ca: Path | None = _setting(
        "TLS_PEER_CA", _file, None, "PEM authorities of the other processes' certificates."
    )
    log_level: str = _setting(
        "LOG_LEVEL", _one_of("debug", "info", "warning", "error"), "info", "Least level logged."
    )
    log_format: str = _setting(
        "LOG_FORMAT", _one_of("json", "console"), "json", "One JSON object a line, or text."
    )
    in_flight_max: int = _setting(
        "IN_FLIGHT_MAX", _whole(1, 100_000), 256, "Commands worked on at a time."
    )
    watchers_max: int = _setting(
        "WATCHERS_MAX", _whole(1, 1_000_000), 5_000, "Watches served at a time."
    )
    watchers_per_caller_max: int = _setting(
        "WATCHERS_PER_CALLER_MAX", _whole(1, 1_000_000), 500, "Watches of one caller."
    )
    live_matches_max: int = _setting(
        "LIVE_MATCHES_MAX", _whole(1, 1_000_000), 20_000, "Unfinished matches held in memory."
    )
    lobby_s: int = _setting(
        "LOBBY_S",
        _whole(60, 30 * 86_400),
        86_400,
        "Seconds after which a match that nobody starts ends by itself.",
    )
    streams_max: int = _setting(
        "STREAMS_MAX", _whole(1, 100_000), 1_000, "Calls at a time on one connection."
    )
    drain_s: int = _setting(
        "DRAIN_S", _whole(0, 300), 10, "Seconds for calls to end when the process stops."
    )

    @property
    def node_name(self) -> str:
        """The configured name, or one made of host name and process id."""
        return self.node or f"{socket.gethostname()[:40]}-{os.getpid()}"

    def token_keys(self) -> tuple[TokenKey, ...]:
        """Keys that check tokens. Raises SettingsError for an unusable one."""
        keys = [secret_token_key(self.token_secret)] if self.token_secret else []
        problems = []
        for path in self.token_public_keys:
            try:
                keys.append(public_token_key(path.read_bytes()))
            except (OSError, ValueError) as error:
                problems.append(f"{PREFIX}TOKEN_PUBLIC_KEYS: {path}: {error}.")
        if problems:
            raise SettingsError(problems)
        return tuple(keys)


def load_settings(role: Role, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of one kind of process.

    Raises SettingsError that lists everything that is wrong.
    """
    env = dict(os.environ if environ is None else environ)
    problems = _read_secret_file(env) if role in _users_of("TOKEN_SECRET") else []
    values: dict[str, Any] = {}
    for each in dataclasses.fields(Settings):
        meta = each.metadata
        if role not in meta["used_by"]:
            continue
        text = env.get(meta["variable"], "").strip()
        if not text:
            if role in meta["needed_by"]:
                problems.append(f"{meta['variable']} is not set. {meta['meaning']}")
            continue
        try:
            values[each.name] = meta["parse"](text)
        except ValueError as error:
            hidden = meta["secret"] and not meta["variable"].endswith("_FILE")
            shown = "the value" if hidden else repr(text)
            problems.append(f"{meta['variable']}: {shown} is not {error}.")
    problems += _joint_problems(role, values)
    if problems:
        raise SettingsError(problems)
    settings = Settings(**values)
    settings.token_keys()
    return settings


def settings_table() -> tuple[tuple[str, str, str], ...]:
    """Variable, default and meaning of every setting, for help texts and documentation."""
    return tuple(
        (each.metadata["variable"], _shown(each.default), each.metadata["meaning"])
        for each in dataclasses.fields(Settings)
    )


def misspelt_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that look like a misspelt setting of ours, each with the likely one.

    Only near misses: other programs (Kubernetes among them) may set variables with our prefix.
    """
    known = [row[0] for row in settings_table()] + [PREFIX + "TOKEN_SECRET_FILE"]
    found = {}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.9)
            if near:
                found[name] = near[0]
    return found


def _read_secret_file(env: dict[str, str]) -> list[str]:
    """Put the content of the secret's file where the secret itself would be."""
    variable = PREFIX + "TOKEN_SECRET"
    name = env.get(variable + "_FILE", "").strip()
    if not name:
        return []
    if env.get(variable, "").strip():
        return [f"{variable} and {variable}_FILE are both set; one of them is enough."]
    try:
        env[variable] = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        return [f"{variable}_FILE: {name!r} cannot be read: {reason}."]
    return [] if env[variable] else [f"{variable}_FILE: {name!r} is empty."]


def _joint_problems(role: Role, values: dict[str, Any]) -> list[str]:
    problems = []
    secret = values.get("token_secret", b"")
    if secret and len(secret) < SECRET_BYTES_LOW:
        problems.append(
            f"{PREFIX}TOKEN_SECRET: the value is shorter than {SECRET_BYTES_LOW} bytes."
        )
    if role in ("match", "replay") and not secret and not values.get("token_public_keys"):
        problems.append(
            f"Neither {PREFIX}TOKEN_SECRET, {PREFIX}TOKEN_SECRET_FILE nor "
            f"{PREFIX}TOKEN_PUBLIC_KEYS is set: no token could be checked."
        )
    if ("tls_cert" in values) != ("tls_key" in values):
        problems.append(f"{PREFIX}TLS_CERT and {PREFIX}TLS_KEY go together; only one is set.")
    if "tls_client_ca" in values and "tls_cert" not in values:
        problems.append(f"{PREFIX}TLS_CLIENT_CA needs {PREFIX}TLS_CERT and {PREFIX}TLS_KEY.")
    listen = values.get("listen")
    if role == "match" and listen and listen.is_wildcard and "advertise" not in values:
        problems.append(
            f"{PREFIX}ADVERTISE is not set, and nobody can connect to {listen}. "
            "Where do the other match processes reach this one?"
        )
    return problems


def _shown(default: object) -> str:
    # Zero is a default to be told; nothing is not.
    return str(default) if default or isinstance(default, int) else ""
