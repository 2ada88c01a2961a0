"""Master keys: the secrets from which every match's seed is derived, and their rotation.

A key ring is a directory of files `<key id>.key`, each 64 hexadecimal digits or 32 raw bytes.
New matches use the current key; older keys stay for the matches that began with them.
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.common.errors import StartupError

KEY_BYTES: Final = 32
FIRST_KEY_ID: Final = "k1"
_KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
KEY_SUFFIX: Final = ".key"
_OTHERS = 0o007


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All master keys by id, and the id of the one that new matches use."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        """Check what every maker of a ring has to give."""
        assert self.current in self.keys, f"no key {self.current!r} in the ring"
        assert all(len(key) == KEY_BYTES for key in self.keys.values()), "keys have 32 bytes"

    def key(self, key_id: str) -> bytes | None:
        """Return the key with this id; None when the ring does not hold it (any more)."""
        return self.keys.get(key_id)

    @property
    def current_key(self) -> bytes:
        """The key for new matches."""
        return self.keys[self.current]


def load_key_ring(directory: Path, current: str = "") -> KeyRing:
    """Read a key ring; `current` defaults to the last id in sorted order.

    Raises StartupError that names the file and what is wrong with it, never its content.
    """
    try:
        paths = sorted(directory.glob(f"*{KEY_SUFFIX}"), key=lambda path: _natural(path.stem))
    except OSError as error:
        raise StartupError(
            f"The key directory {directory} cannot be read: {error.strerror}."
        ) from None
    if not paths:
        raise StartupError(f"There is no master key (a file <key id>{KEY_SUFFIX}) in {directory}.")
    keys = {path.stem: _read(path) for path in paths}
    chosen = current or paths[-1].stem
    if chosen not in keys:
        raise StartupError(
            f"The current master key {chosen!r} is not in {directory}; there are {', '.join(keys)}."
        )
    return KeyRing(chosen, keys)


def create_key(directory: Path, key_id: str = FIRST_KEY_ID) -> Path:
    """Write a new random key, readable by its owner only; StartupError when it cannot be written.

    An existing key is never overwritten.
    """
    path = directory / f"{key_id}{KEY_SUFFIX}"
    if not _KEY_ID.fullmatch(key_id):
        raise StartupError(f"A key id is 1 to 32 characters of A-Z a-z 0-9 . _ -, not {key_id!r}.")
    write_secret(path, secrets.token_hex(KEY_BYTES))
    return path


def ensure_key_ring(directory: Path) -> KeyRing:
    """Read the key ring, after making its first key when there is none: for the embedded mode."""
    if not any(directory.glob(f"*{KEY_SUFFIX}")):
        create_key(directory)
    return load_key_ring(directory)


def write_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner may read, durably and all at once.

    Raises StartupError when it exists already or cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, refuses to replace a file that another process made meanwhile.
        os.link(draft, path)
    except OSError as error:
        raise StartupError(f"The key file {path} cannot be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)


def parse_key(data: bytes) -> bytes:
    """Return the 32 bytes of a key given raw or in hexadecimal; ValueError for anything else."""
    if len(data) == KEY_BYTES:
        return data
    text = data.strip()
    if len(text) != 2 * KEY_BYTES:
        raise ValueError("a key is 64 hexadecimal digits or 32 raw bytes")
    try:
        return bytes.fromhex(text.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        raise ValueError("a key is 64 hexadecimal digits or 32 raw bytes") from None


def check_private(path: Path) -> None:
    """Refuse (StartupError) a secret file that everybody on the machine may read or change."""
    mode = path.stat().st_mode
    if mode & _OTHERS:
        raise StartupError(
            f"Everybody may access the key file {path} (mode {mode & 0o777:04o}); "
            f"make it private: chmod 600 {path}"
        )


def _read(path: Path) -> bytes:
    try:
        check_private(path)
        return parse_key(path.read_bytes())
    except OSError as error:
        raise StartupError(f"The key file {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise StartupError(f"The key file {path} is damaged: {error}.") from None


def _natural(key_id: str) -> tuple[tuple[int, str], ...]:
    """Order k9 before k10."""
    parts = re.findall(r"\d+|\D+", key_id)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
