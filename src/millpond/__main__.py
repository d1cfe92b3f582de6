"""The program: the command `millpond`, and `python -m millpond`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line and exit."""
    # Before the command line handles signals, amid imports, and after it, when all is done, Ctrl-C
    # is no matter for a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from millpond.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
