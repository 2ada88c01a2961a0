"""What happens when a command cannot do its work: one sentence and an exit code, never a trace.

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage, 130 stopped by
Ctrl-C. Unexpected failures say where the trace was written; `--debug` prints it instead.
"""

import os
import secrets
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from services.cli.render_console import errors_to
from services.common.errors import ApiError, StartupError

FAILED = 1
STOPPED = 130


class CommandFailed(Exception):  # what the person reads, not an error of the program
    """A command could not do what was asked; the text is one sentence for people."""


def guarded(run: Callable[[], None], *, debug: bool = False) -> int:
    """Call `run` and return the exit code; say in one sentence what went wrong."""
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        errors_to("Stopped.")
        return STOPPED
    except BrokenPipeError:
        # The reader went away (`| head`): nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except BaseException as error:
        if debug:
            traceback.print_exc()
        errors_to(_sentence(error))
        return FAILED
    return 0


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        # Tasks that ran side by side: the first failure is the cause, the others follow from it.
        error = error.exceptions[0]
    match error:
        case CommandFailed() | StartupError():
            return str(error)
        case ApiError(reason="CONNECTION_LOST"):
            return "No server answers; is the address right, and is it running? (CONNECTION_LOST)"
        case ApiError():
            return f"{error.message} ({error.reason})"
        case OSError() if error.filename is not None:
            return f"{error.strerror or error}: {error.filename}"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return _incident(error)


def _incident(error: BaseException) -> str:
    """Write the trace to a file and say where it is."""
    number = secrets.token_hex(4)
    trace = "".join(traceback.format_exception(error))
    path = Path(tempfile.gettempdir()) / f"diceledger-incident-{number}.log"
    try:
        # Readable by its owner only: a trace may quote what a person typed.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return f"Something went wrong (incident {number}); run again with --debug to see what."
    return f"Something went wrong (incident {number}); the details are in {path}."
