"""Where the program begins: nothing is imported before Ctrl-C is a quiet end."""

import sys

_STOPPED = 130


def main() -> None:
    """Run the command `diceledger`; its exit code is that of `services.cli.main`."""
    try:
        # Takes the better part of a second: the time in which people change their minds.
        from services.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(_STOPPED)
    run()


if __name__ == "__main__":
    main()
