"""Delta tables: snapshots, data files, deletion vectors, commits. Leaves queries to the engines."""

from millpond.delta.actions import (
    AddFile,
    Commit,
    DeletionVector,
    Metadata,
    Protocol,
    RemoveFile,
)
from millpond.delta.checkpoints import is_behind, write_checkpoint
from millpond.delta.data_files import (
    WrittenFile,
    adopt_data_files,
    copy_to_files,
    write_data_files,
)
from millpond.delta.deletion_vectors import (
    VECTOR_FOLDER,
    read_deletion_vectors,
    vector_path,
    write_deletion_vectors,
)
from millpond.delta.duckdb_connection import DEFAULT_MEMORY_LIMIT, connect, was_interrupted
from millpond.delta.file_skipping import ColumnRange, files_overlapping
from millpond.delta.live_rows import (
    FILE_COLUMN,
    ROW_COLUMN,
    check_data_files,
    damage_told,
    data_file_bytes,
    escape_glob,
    hidden_columns_of,
    live_rows_sql,
)
from millpond.delta.log import LOG_FOLDER
from millpond.delta.nested_names import column_types, has_names, with_names_of
from millpond.delta.one_entry_log import write_one_entry_log
from millpond.delta.schema import duckdb_type, is_type_widened, literal, quote, widen_schema
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import FileStats
from millpond.delta.table import Table, check_definition
from millpond.delta.transaction import Transaction

__all__ = [
    "DEFAULT_MEMORY_LIMIT",
    "FILE_COLUMN",
    "LOG_FOLDER",
    "ROW_COLUMN",
    "VECTOR_FOLDER",
    "AddFile",
    "ColumnRange",
    "Commit",
    "DeletionVector",
    "FileStats",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "Snapshot",
    "Table",
    "Transaction",
    "WrittenFile",
    "adopt_data_files",
    "check_data_files",
    "check_definition",
    "column_types",
    "connect",
    "copy_to_files",
    "damage_told",
    "data_file_bytes",
    "duckdb_type",
    "escape_glob",
    "files_overlapping",
    "has_names",
    "hidden_columns_of",
    "is_behind",
    "is_type_widened",
    "literal",
    "live_rows_sql",
    "quote",
    "read_deletion_vectors",
    "vector_path",
    "was_interrupted",
    "widen_schema",
    "with_names_of",
    "write_checkpoint",
    "write_data_files",
    "write_deletion_vectors",
    "write_one_entry_log",
]
