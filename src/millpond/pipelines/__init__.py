"""The Python API of pipelines, by convention imported as `dp`.

Source files say `from pyspark import pipelines as dp`, as on any other runtime, and get this
module while millpond loads them; `import dlt` gives it, too. `from millpond import pipelines as dp`
gives it anywhere, with signatures that editors and type checkers know.

A definition only says what a dataset is. Nothing is read or written until `millpond run` has put
all definitions together; so a query function returns a DataFrame, and does not use one up.
"""

from typing import TYPE_CHECKING

from millpond.pipelines.expectations import (
    expect,
    expect_all,
    expect_all_or_drop,
    expect_all_or_fail,
    expect_or_drop,
    expect_or_fail,
)
from millpond.pipelines.flows import append_flow, replace_flow
from millpond.pipelines.reading import read, read_stream
from millpond.pipelines.tables import create_streaming_table, materialized_view, table
from millpond.pipelines.unsupported import UNSUPPORTED, unsupported
from millpond.pipelines.views import temporary_view

view = temporary_view

__all__ = [
    "append_flow",
    "create_streaming_table",
    "expect",
    "expect_all",
    "expect_all_or_drop",
    "expect_all_or_fail",
    "expect_or_drop",
    "expect_or_fail",
    "materialized_view",
    "read",
    "read_stream",
    "replace_flow",
    "table",
    "temporary_view",
    "view",
]

if not TYPE_CHECKING:
    # Hidden from type checkers, so that they report a name that is not supported.
    def __getattr__(name: str) -> object:
        if name in UNSUPPORTED:
            return unsupported(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
