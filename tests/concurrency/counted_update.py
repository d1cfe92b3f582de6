"""The command line, with a count of the commits that another writer came before.

Usage: counted_update.py COUNT_FILE ARGUMENT ...
"""

from __future__ import annotations

import sys
from pathlib import Path

from millpond.cli.main import main
from millpond.delta import Transaction


def count_conflicts(file: Path) -> None:
    """Add a character to a file for each commit that has to be made anew."""
    discard = Transaction.discard

    def counted(transaction: Transaction) -> None:
        with file.open("a") as counts:
            counts.write(".")
        discard(transaction)

    Transaction.discard = counted  # type: ignore[method-assign] # the program itself stays as it is


if __name__ == "__main__":
    count_conflicts(Path(sys.argv.pop(1)))
    main()
