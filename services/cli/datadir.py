"""The directory of a set-up on one machine: what lies where, and who may use it at a time.

lock           held while a set-up runs on the directory; names its process
log.sqlite     the log of the embedded mode
kafka/         the log of the distributed mode
redis/         the read models
keys/          the master keys
token.secret   what tokens are signed with
logs/          what the child processes say
"""

import fcntl
import os
import secrets
from pathlib import Path
from typing import Annotated, Final

import typer

from services.common.auth import TokenKey, make_token, secret_token_key
from services.common.errors import StartupError
from services.common.keys import (
    KEY_SUFFIX,
    KeyRing,
    check_private,
    ensure_key_ring,
    write_secret,
)

_SECRET_BYTES: Final = 32


def default_data_dir() -> Path:
    """Return `$XDG_DATA_HOME/diceledger`, by default below ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "diceledger"


def data_path(text: str | Path) -> Path:
    """Read what was given for a data directory; nothing would mean the current directory."""
    if not str(text).strip():
        raise typer.BadParameter("name a directory.")
    return Path(text)


DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        parser=data_path,
        envvar="DICELEDGER_DATA",
        metavar="DIR",
        help="Where everything is kept.",
        default_factory=default_data_dir,
        show_default="~/.local/share/diceledger",
    ),
]


class DataDir:
    """A data directory, locked for this process while the `with` block runs."""

    def __init__(self, path: Path) -> None:
        """Nothing is touched yet."""
        self.path = path.absolute()
        self._lock = -1

    @property
    def log_file(self) -> Path:
        """The embedded mode's log."""
        return self.path / "log.sqlite"

    @property
    def has_log(self) -> bool:
        """Whether either mode has run here before."""
        return self.log_file.exists() or (self.kafka.is_dir() and any(self.kafka.iterdir()))

    @property
    def kafka(self) -> Path:
        """The Kafka broker's directory."""
        return self.path / "kafka"

    @property
    def redis(self) -> Path:
        """The Redis server's directory."""
        return self.path / "redis"

    @property
    def keys(self) -> Path:
        """The key ring's directory."""
        return self.path / "keys"

    @property
    def token_secret_file(self) -> Path:
        """The file with the secret that tokens are signed with."""
        return self.path / "token.secret"

    @property
    def logs(self) -> Path:
        """Where child processes write what they have to say."""
        return self.path / "logs"

    def __enter__(self) -> "DataDir":
        """Create and lock the directory; StartupError when it is in use or cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupError(
                f"The data directory {self.path} cannot be used: {error.strerror}."
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(self._lock, 20).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise StartupError(
                f"Another diceledger (process {who or 'unknown'}) is running on {self.path}; "
                "stop it, or choose another directory with --data."
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock it."""
        os.close(self._lock)

    def key_ring(self) -> KeyRing:
        """Return the master keys; the first one is made for a directory that has no log yet.

        Raises StartupError when there is a log, but no key: a new key would freeze every match
        that began under the one that is gone.
        """
        if self.has_log and not any(self.keys.glob(f"*{KEY_SUFFIX}")):
            raise StartupError(
                f"The data directory {self.path} has a log, but the master keys of its matches "
                f"are gone: put the files *{KEY_SUFFIX} back into {self.keys}, or choose another "
                "directory with --data."
            )
        return ensure_key_ring(self.keys)

    def token_secret(self) -> bytes:
        """Return the tokens' secret; it is made when there is none."""
        if not self.token_secret_file.exists():
            write_secret(self.token_secret_file, secrets.token_hex(_SECRET_BYTES))
        return read_token_secret(self.token_secret_file)


class TokenMaker:
    """Makes bearer tokens that the set-up's servers accept."""

    def __init__(self, secret: bytes) -> None:
        """`secret` is what the servers check with."""
        self._key: TokenKey = secret_token_key(secret)

    def __call__(
        self,
        subject: str,
        *roles: str,
        name: str = "",
        lifetime_s: float = 86_400,
    ) -> str:
        """Return a token for `subject`; without roles: of a player."""
        return make_token(
            self._key, subject, roles or ("player",), name=name, lifetime_s=lifetime_s
        )


def read_token_secret(path: Path) -> bytes:
    """Read a secret's file; StartupError when it is missing, public or too short."""
    try:
        check_private(path)
        secret = path.read_text(encoding="utf-8").strip().encode()
        secret_token_key(secret)
    except OSError as error:
        raise StartupError(f"The secret file {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise StartupError(f"The secret file {path} is damaged: {error}.") from None
    return secret
