"""Tables that Spark writes with each feature of Delta's protocol, and what millpond makes of them.

`record_spark_tables.py` has Spark write them, and keeps them in an archive with Spark's own reading.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = Path(__file__).with_name("spark_tables.tar.xz")
# Where the tables lay when Spark wrote them: those that name files of others name this folder.
RECORDED_IN = "/tmp/millpond-foreign-tables"  # noqa: S108 - it is only a text here
ANSWERS = "answers"


@dataclass(frozen=True)
class SparkTable:
    """A table.

    Attributes:
        statements: What Spark does, with `{t}` for the table, `{path}` for its folder and `{other}`
            for the folder of another table.
        refused: What a reading is refused for, where it is.
    """

    name: str
    statements: tuple[str, ...]
    refused: str = ""
    other: str = ""


def _table(name: str, columns: str, *statements: str, more: str = "", **others: str) -> SparkTable:
    create = f"CREATE TABLE {{t}} ({columns}) USING delta {more}"
    return SparkTable(name, (create, *statements), **others)


def _with(**properties: str) -> str:
    listed = ", ".join(f"'{key.replace('__', '.')}' = '{v}'" for key, v in properties.items())
    return f"TBLPROPERTIES ({listed})"


_KV = "k BIGINT, v STRING"
_ROW = "INSERT INTO {t} VALUES (1, 'a')"
_ROWS = tuple(f"INSERT INTO {{t}} VALUES ({number}, 'a{number}')" for number in range(4))
_SMALL_PARTS = "SET spark.databricks.delta.checkpoint.partSize = 2"
_WHOLE = "RESET spark.databricks.delta.checkpoint.partSize"
_PARTITIONED = (
    "v INT, s STRING, ts TIMESTAMP, ntz TIMESTAMP_NTZ, d DATE, n DECIMAL(10, 3), f DOUBLE, "
    "b BOOLEAN, l BIGINT, x BINARY"
)
_WIDENED = ("k BIGINT", "d DECIMAL(20, 4)", "f DOUBLE", "t TIMESTAMP_NTZ", "s.a INT")

TABLES = (
    _table("checkpoint", _KV, *_ROWS, more=_with(delta__checkpointInterval="2")),
    _table(
        "multi_part_checkpoint",
        _KV,
        _SMALL_PARTS,
        *_ROWS,
        _WHOLE,
        more=_with(delta__checkpointInterval="3"),
    ),
    _table(
        "v2_checkpoint_with_sidecars",
        _KV,
        _SMALL_PARTS,
        *_ROWS,
        _WHOLE,
        more=_with(delta__checkpointInterval="3", delta__checkpointPolicy="v2"),
    ),
    _table(
        "column_mapping_by_name",
        "k BIGINT, `odd name,;()=` STRING, gone INT",
        "INSERT INTO {t} VALUES (1, 'a', 2)",
        "ALTER TABLE {t} RENAME COLUMN k TO key",
        "ALTER TABLE {t} DROP COLUMN gone",
        "INSERT INTO {t} VALUES (2, 'b')",
        more=_with(delta__columnMapping__mode="name"),
        refused="columnMapping",
    ),
    _table(
        "column_mapping_by_id",
        _KV,
        _ROW,
        more=_with(delta__columnMapping__mode="id"),
        refused="columnMapping",
    ),
    _table(
        "deletion_vectors",
        _KV,
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(20)",
        "DELETE FROM {t} WHERE k IN (3, 5)",
        more=_with(delta__enableDeletionVectors="true"),
    ),
    SparkTable(
        "shallow_clone",
        (
            "CREATE TABLE {t} SHALLOW CLONE delta.`{other}`",
            "DELETE FROM {t} WHERE k = 7",
            "INSERT INTO {t} VALUES (30, 'b')",
        ),
        other="deletion_vectors",
    ),
    _table(
        "odd_partitions",
        _PARTITIONED,
        "INSERT INTO {t} VALUES "
        "(1, 'a b/c=%ü:?#', timestamp'2026-01-02 03:04:05.678901', "
        "timestamp_ntz'2026-01-02 03:04:05.678901', date'2026-01-02', -1.5, -0.0D, true, -9L, X'41'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
        "(3, '', timestamp'1969-12-31 23:59:59', timestamp_ntz'0001-01-01', date'1582-10-04', 0, "
        "double('NaN'), false, 9223372036854775807L, X'42'), "
        "(4, ' __HIVE ', timestamp'9999-12-31', timestamp_ntz'2026-01-01', date'2026-01-01', "
        "9999999.999, double('Infinity'), true, 0L, X'61')",
        more="PARTITIONED BY (s, ts, ntz, d, n, f, b, l, x)",
    ),
    _table(
        "widened_types",
        "k INT, d DECIMAL(5, 2), f FLOAT, t DATE, s STRUCT<a: SHORT>",
        "INSERT INTO {t} VALUES (1, 1.25, 1.5, date'2026-01-01', named_struct('a', 1S))",
        *(f"ALTER TABLE {{t}} CHANGE COLUMN {c.replace(' ', ' TYPE ', 1)}" for c in _WIDENED),
        "INSERT INTO {t} VALUES (5000000000, 1.2345, 2.5, timestamp_ntz'2026-02-01 01:02:03', "
        "named_struct('a', 100000))",
        more=_with(delta__enableTypeWidening="true", delta__feature__timestampNtz="supported"),
    ),
    _table("row_tracking", _KV, _ROW, more=_with(delta__enableRowTracking="true")),
    _table(
        "identity_column",
        "id BIGINT GENERATED ALWAYS AS IDENTITY, k BIGINT",
        "INSERT INTO {t} (k) VALUES (1), (2)",
    ),
    _table(
        "generated_column",
        "k BIGINT, d BIGINT GENERATED ALWAYS AS (k * 2)",
        "INSERT INTO {t} (k) VALUES (1), (2)",
    ),
    _table(
        "column_default",
        "k BIGINT, v STRING DEFAULT 'x'",
        "INSERT INTO {t} (k) VALUES (1), (2)",
        more=_with(delta__feature__allowColumnDefaults="supported"),
    ),
    _table("check_constraint", _KV, "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (k > 0)", _ROW),
    _table("not_null", "k BIGINT NOT NULL, v STRING", _ROW),
    _table("liquid_clustering", _KV, *_ROWS, "OPTIMIZE {t}", more="CLUSTER BY (k)"),
    _table("change_data_feed", _KV, *_ROWS, more=_with(delta__enableChangeDataFeed="true")),
    _table(
        "in_commit_timestamps",
        _KV,
        _ROW,
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        _ROW,
    ),
    _table(
        "variant",
        "k BIGINT, v VARIANT",
        "INSERT INTO {t} SELECT 1, parse_json('[1]')",
        refused="variantType",
    ),
    _table("varchar", "k BIGINT, v VARCHAR(3)", _ROW),
    _table("void", "k BIGINT, n VOID", refused="void"),
    _table(
        "all_types",
        "t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, c DECIMAL(38, 10), x BINARY, f FLOAT, "
        "m MAP<STRING, ARRAY<STRUCT<x: INT, `y.z`: TIMESTAMP>>>",
        "INSERT INTO {t} VALUES (timestamp'2026-01-02 03:04:05.678901', "
        "timestamp_ntz'2026-01-02 03:04:05.678901', date'0001-01-01', "
        "1234567890123456789012345678.0123456789, X'00ff', float('NaN'), map('a', "
        "array(named_struct('x', 1, 'y.z', timestamp'2026-01-02 03:04:05.678901')))), "
        "(timestamp'1500-01-01', NULL, date'9999-12-31', NULL, NULL, NULL, NULL)",
    ),
    _table(
        "replaced",
        _KV,
        _ROW,
        "REPLACE TABLE {t} (k BIGINT, w STRING) USING delta",
        "INSERT INTO {t} VALUES (2, 'b')",
    ),
    _table("restored", _KV, _ROW, "DELETE FROM {t}", "RESTORE TABLE {t} TO VERSION AS OF 1"),
    _table(
        "iceberg_compatible",
        _KV,
        _ROW,
        more=_with(delta__enableIcebergCompatV2="true", delta__columnMapping__mode="name"),
        refused="columnMapping",
    ),
    _table(
        "dropped_feature",
        _KV,
        _ROW,
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
        more=_with(delta__enableDeletionVectors="true"),
    ),
)


def unpack(folder: Path) -> None:
    """Put the tables and Spark's readings into a folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for entry in folder.glob("*/_delta_log/*.json"):
        text = entry.read_text(encoding="utf-8")
        if RECORDED_IN in text:
            entry.write_text(text.replace(RECORDED_IN, str(folder)), encoding="utf-8")
            # It names that folder as well, and the entries are all there.
            for checkpoint in entry.parent.glob("*checkpoint*"):
                checkpoint.unlink()
