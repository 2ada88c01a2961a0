"""Where a client's bearer token comes from, and the metadata that goes with every call."""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

# A token itself, or something that gives the token to use for the next call.
TokenSource = str | Callable[[], str] | Callable[[], Awaitable[str]]


def token_file(path: Path) -> Callable[[], str]:
    """A source that reads the file at each call, so that a renewed token is picked up."""

    def read() -> str:
        return path.read_text(encoding="utf-8").strip()

    return read


class Credentials:
    """Token and language of one caller. Never printed: its repr shows no token."""

    def __init__(self, token: TokenSource | None, locale: str = "en") -> None:
        self._token = token
        self.locale = locale

    def __repr__(self) -> str:
        return f"Credentials(locale={self.locale!r})"

    async def metadata(self) -> tuple[tuple[str, str], ...]:
        """gRPC metadata for one call. Raises OSError when the token's file cannot be read."""
        language = ("accept-language", self.locale)
        if self._token is None:
            return (language,)
        return (("authorization", f"Bearer {await _current(self._token)}"), language)


async def _current(source: TokenSource) -> str:
    if isinstance(source, str):
        return source
    token = source()
    if inspect.isawaitable(token):
        return await token
    return token
