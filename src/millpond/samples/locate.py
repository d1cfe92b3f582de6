"""From a table's name to the folder of its Delta table, made or brought up to date when needed.

Once a table is there this costs two looks at the file system: nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millpond.errors import SourceLocation
from millpond.errors.samples import SampleTableNotFoundError
from millpond.names import path_segment
from millpond.options import SAMPLES_SCALE, SAMPLES_SLICES
from millpond.samples.wanderbricks.tables import GROWING_TABLES, TABLES
from millpond.storage import ROOT_MODE, Layout, LocalStore

CATALOG = "samples"
SCHEMA = "wanderbricks"
BOOKINGS_PER_SCALE = 2000


def locate(
    parts: tuple[str, ...],
    *,
    layout: Layout,
    configuration: Mapping[str, str],
    where: SourceLocation | None = None,
) -> Path | None:
    """Return the folder of a sample table, or `None` for a name outside `samples.wanderbricks`.

    The folder's name carries the number of bookings, so another `millpond.samples.scale` is another
    table: a flow that reads it notices, as for any source that was replaced. A table that already
    holds more slices than asked for stays as it is.

    Args:
        parts: A full name, in any case.
        layout: Where the pipeline keeps its files.
        configuration: The pipeline's settings, of which `millpond.samples.*` matter here.
        where: The line that reads the table, for messages.

    Raises:
        SampleTableNotFoundError: `samples.wanderbricks` has no such table.
        InvalidOptionError: A setting has a value that it can't have.
    """
    folded = tuple(part.lower() for part in parts)
    if len(folded) != 3 or folded[:2] != (CATALOG, SCHEMA):
        return None
    table = folded[2]
    if table not in TABLES:
        raise SampleTableNotFoundError.from_name(parts[2], known=TABLES, where=where)
    bookings = round(SAMPLES_SCALE.read(configuration) * BOOKINGS_PER_SCALE)
    slices = SAMPLES_SLICES.read(configuration)
    if table not in GROWING_TABLES:
        slices = 1
    folder = layout.samples.joinpath(
        path_segment(SCHEMA), f"bookings-{bookings}", path_segment(table)
    )
    if not holds_slice(folder, slices):
        from millpond.samples.folder import bring_up_to

        LocalStore().make_folder(layout.root, mode=ROOT_MODE)
        bring_up_to(folder, table, bookings=bookings, slices=slices, lock=layout.samples / "lock")
    return folder


def holds_slice(folder: Path, slice_number: int) -> bool:
    """Whether the table has the slice: slice n is the table's commit n - 1."""
    return (folder / "_delta_log" / f"{slice_number - 1:020}.json").exists()
