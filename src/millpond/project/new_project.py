"""Starts a project: a folder with a spec and two examples that run as they are."""

from __future__ import annotations

import os
from pathlib import Path

from millpond.errors.project import ProjectExistsError, ProjectNameError, ProjectNotCreatedError
from millpond.names import MAX_PART_BYTES

# JSON's form of a string is YAML's, too; the name holds no character that would need escapes.
_SPEC = """\
# The pipeline's spec: docs/spec.md of millpond lists every field.
name: "{name}"

# Tables, checkpoints and the event log. Relative to this folder; Apache Spark wants an absolute
# URI here, such as file:///data/{name}.
storage: pipeline-storage

catalog: main
schema: default

libraries:
  - glob:
      include: transformations/**
"""

_SQL = """\
-- Every change of a booking arrives as a whole record, and not always in order. Of each booking,
-- the record with the highest booking_update_id stays; one that comes late changes nothing.
-- The sequence is not updated_at: two changes may share a time, and rows at equal sequences
-- all stay.
CREATE OR REFRESH STREAMING TABLE current_bookings (
  CONSTRAINT has_status EXPECT (status IS NOT NULL) ON VIOLATION DROP ROW
)
COMMENT 'The newest state of every booking'
FLOW REPLACE USING (booking_id) SEQUENCE BY booking_update_id BY NAME
SELECT
  booking_id, booking_update_id, property_id, status, check_in, check_out, total_amount, updated_at
FROM STREAM(samples.wanderbricks.booking_updates);
"""

_PYTHON = '''\
"""Payments: of each booking the newest, and a summary that is computed anew in every update."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark: SparkSession  # millpond sets it


@dp.table(
    comment="The newest payment of every booking",
    replace_using=["booking_id"],
    sequence_by="payment_date",
)
@dp.expect_or_drop("positive amount", "amount > 0")
def latest_payments() -> DataFrame:
    return spark.readStream.table("samples.wanderbricks.payments")


@dp.materialized_view(comment="Payments by method and status")
def payment_summary() -> DataFrame:
    return (
        spark.read.table("latest_payments")
        .groupBy("payment_method", "status")
        .agg(F.count("*").alias("payments"), F.sum("amount").alias("amount"))
    )
'''

_GITIGNORE = """\
pipeline-storage/
__pycache__/
"""

_FILES = {
    "spark-pipeline.yml": _SPEC,
    "transformations/current_bookings.sql": _SQL,
    "transformations/payments.py": _PYTHON,
    ".gitignore": _GITIGNORE,
}


def init_project(parent: Path, name: str) -> Path:
    """Make a project folder `name` below `parent`.

    Raises:
        ProjectNameError: The name is no plain name of a folder.
        ProjectExistsError: There is something of that name.
        ProjectNotCreatedError: The folder can't be made or filled.
    """
    if not _is_plain(name):
        raise ProjectNameError.from_name(name)
    folder = parent / name
    try:
        folder.mkdir()
        for path, text in _FILES.items():
            file = folder / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text.replace("{name}", name), encoding="utf-8")
    except FileExistsError as error:
        raise ProjectExistsError.from_path(folder) from error
    except OSError as error:
        raise ProjectNotCreatedError.from_os_error(folder, error) from error
    return folder


def _is_plain(name: str) -> bool:
    """Letters and digits of any script, and a few marks between; nothing that a path reads."""
    return (
        name[:1].isalnum()
        and all(char.isalnum() or char in "-_." for char in name)
        and not name.endswith(".")
        and len(os.fsencode(name)) <= MAX_PART_BYTES
    )
