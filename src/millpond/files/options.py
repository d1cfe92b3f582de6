"""What a read of files asks for, whichever of the three spellings it is written in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from millpond.errors import SourceLocation

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DEFAULT_MAX_FILES = 1000
# What Spark's own file source takes into a batch, where the user sets no limit.
UNLIMITED_FILES = sys.maxsize
DEFAULT_RESCUED_COLUMN = "_rescued_data"


class Dialect(Enum):
    """Which reader an option is an option of: the defaults differ."""

    SPARK = "spark"  # spark.readStream.format("csv"), spark.read.csv
    CLOUD_FILES = "cloudFiles"  # spark.readStream.format("cloudFiles")
    READ_FILES = "read_files"  # the SQL function


class EvolutionMode(Enum):
    """What a column that the schema lacks does to a stream."""

    ADD_NEW_COLUMNS = "addNewColumns"
    RESCUE = "rescue"
    FAIL_ON_NEW_COLUMNS = "failOnNewColumns"
    NONE = "none"


class ParseMode(Enum):
    """What becomes of a row that can't be read."""

    PERMISSIVE = "PERMISSIVE"
    DROP_MALFORMED = "DROPMALFORMED"
    FAIL_FAST = "FAILFAST"


class CleanSource(Enum):
    """What becomes of a file once its rows are in the table."""

    OFF = "OFF"
    DELETE = "DELETE"
    MOVE = "MOVE"


@dataclass(frozen=True)
class Discovery:
    """Which files a read takes.

    Attributes:
        recursive: Whether folders below are looked into although they are not `key=value`.
        path_glob: The names that files must match, or `None`.
        strict_globber: Whether `*` stops at `/` and follows Spark's rules, or reaches into folders.
        base_path: Below which folder `key=value` gives columns, where that is not the path itself.
        modified_after_ns: Files at or before that are left out, if given. Nanoseconds since 1970.
        modified_before_ns: Files at or after that are left out, if given.
        max_file_age_s: Seconds after which a file is neither looked at nor remembered, if given.
    """

    recursive: bool = False
    path_glob: str | None = None
    strict_globber: bool = False
    base_path: str | None = None
    modified_after_ns: int | None = None
    modified_before_ns: int | None = None
    max_file_age_s: float | None = None


@dataclass(frozen=True)
class FileOptions:
    """A read of files.

    Attributes:
        format: `csv`, `json`, `parquet`, `avro`, `text`, `binaryfile` or `xml`.
        paths: As the user wrote them: folders, files, globs or URIs.
        streaming: Whether it is a stream: a glob may then match nothing yet.
        schema: The user's columns, as given: the rescued column is among them if they name it.
            `None` where they are inferred.
        schema_hints: Types of some columns by name, over what is inferred; nested ones with dots.
        infer_types: Whether inference looks for types, or takes strings (CSV, JSON, XML).
        evolution: As given, or the default of dialect and schema.
        rescued_column: Where values that do not fit are kept, or `None` to keep none.
        partition_columns: Columns of `key=value` folders, or `None` for all that there are.
        allow_overwrites: Whether a file that changed is read again.
        include_existing: Whether files that are there at the start of a stream are read.
        ignore_missing: Whether a file that is gone before it was read is no error.
        ignore_corrupt: Whether a file that can't be read is left out without an error.
        max_files: Files of a batch at most.
        max_bytes: Bytes of a batch, beyond which no further file is taken, or `None`.
        mode: What becomes of malformed rows.
        format_options: The other options, of the format's reader; keys in lower case.
        store_options: Settings of the client of an object store, as Hadoop calls them, such as
            `fs.s3a.endpoint`; keys in lower case.
        location: The line of user code that reads the files.
    """

    format: str
    paths: tuple[str, ...]
    dialect: Dialect = Dialect.SPARK
    streaming: bool = False
    schema: StructType | None = None
    schema_hints: StructType | None = None
    infer_types: bool = False
    evolution: EvolutionMode = EvolutionMode.NONE
    rescued_column: str | None = None
    partition_columns: tuple[str, ...] | None = None
    discovery: Discovery = field(default_factory=Discovery)
    allow_overwrites: bool = False
    include_existing: bool = True
    ignore_missing: bool = False
    ignore_corrupt: bool = False
    max_files: int = DEFAULT_MAX_FILES
    max_bytes: int | None = None
    clean_source: CleanSource = CleanSource.OFF
    clean_source_retention_s: float = 30 * 24 * 3600.0
    clean_source_move_to: str | None = None
    mode: ParseMode = ParseMode.PERMISSIVE
    format_options: Mapping[str, str] = field(default_factory=dict)
    store_options: Mapping[str, str] = field(default_factory=dict)
    location: SourceLocation | None = field(default=None, compare=False)
