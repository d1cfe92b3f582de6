"""The first import of PySpark's client, in whatever process."""

from __future__ import annotations

import sys


def import_client() -> None:
    """Import it.

    It takes a process without a main file, as `python -c` and pytest-xdist start them, for a run of
    its own doctests, and ends it. So there is one for as long as the import takes, and no longer:
    processes that this one starts would look for it.
    """
    main = sys.modules["__main__"]
    has_file = hasattr(main, "__file__")
    if not has_file:
        main.__file__ = __file__
    try:
        import pyspark.sql.connect.client  # noqa: F401 - all that is wanted
    finally:
        if not has_file:
            del main.__file__
