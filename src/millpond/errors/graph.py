"""Errors found while a pipeline's datasets and flows are put together, before data is read."""

from collections.abc import Iterable, Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.delta import DECIMAL_HINT
from millpond.errors.suggestion import did_you_mean, did_you_mean_table


def _meant(close: str | None, known: Iterable[str]) -> str:
    """A hint's first words: the closest of `known`, or all of them where they are few."""
    if close:
        return f"did you mean {close}? "
    names = sorted(set(known))
    return f"known are: {', '.join(names)}; " if 0 < len(names) <= 8 else ""


def _meant_table(name: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    return _meant(did_you_mean_table(name, names), names)


class UpstreamFailedError(MillpondError):
    """A dataset that a query reads could not be resolved, which is reported at that dataset.

    Internal: never shown, so it has no `error_class`.
    """


class TableNotFoundError(MillpondError, LookupError):
    """A query reads a table that neither the pipeline, the storage nor the samples hold."""

    error_class = "TABLE_OR_VIEW_NOT_FOUND"
    sqlstate = "42P01"

    @classmethod
    def from_read(
        cls, name: str, *, reader: str, known: Iterable[str], where: SourceLocation | None
    ) -> Self:
        return cls(
            f"{reader} reads {name}, which does not exist.",
            where=where,
            hint=_meant_table(name, set(known) - {reader})
            + "a table outside the pipeline is read by its location, delta.`/path/to/table`",
        )

    @classmethod
    def from_unrefreshed(cls, name: str, *, reader: str, where: SourceLocation | None) -> Self:
        return cls(
            f"{reader} reads {name}, which this pipeline defines but has never refreshed.",
            where=where,
            hint=f"refresh {name} first, or run the whole pipeline",
        )


class NotADeltaTableError(MillpondError, LookupError):
    """A query reads a location that holds no Delta table."""

    error_class = "DELTA_PATH_NOT_FOUND"
    sqlstate = "42K03"

    @classmethod
    def from_path(
        cls, path: str, absence: str, *, reader: str, where: SourceLocation | None
    ) -> Self:
        """Make the error; `absence` is a predicate of the location."""
        return cls(
            f"{reader} reads the location {path}, which {absence}.",
            where=where,
            hint="check the path; the folder of a Delta table has a _delta_log folder inside",
        )


class TableLocationError(MillpondError, OSError):
    """A table can't be where its definition, or the storage folder, puts it."""

    error_class = "TABLE_LOCATION_NOT_USABLE"
    sqlstate = "42K03"

    @classmethod
    def from_dataset(
        cls, name: str, path: str, obstacle: str, *, where: SourceLocation | None
    ) -> Self:
        """Make the error; `obstacle` is a predicate of the location."""
        return cls(
            f"{name} can't be at {path}, which {obstacle}.",
            where=where,
            hint="give the path of a folder on this machine that you may read and write; tables "
            "elsewhere need a Spark server (--engine)",
        )


class CircularDependencyError(MillpondError, ValueError):
    """Datasets read each other in a circle, or one reads itself."""

    error_class = "CIRCULAR_DEPENDENCY"
    sqlstate = "42K0I"

    @classmethod
    def from_path(cls, names: Sequence[str], *, where: SourceLocation | None) -> Self:
        return cls(
            f"These datasets depend on each other in a circle: {' -> '.join(names)}.",
            where=where,
            hint="remove one of the reads; a flow can't read the table that it writes",
        )


class FlowTargetNotFoundError(MillpondError, LookupError):
    """A flow writes to a table that the pipeline does not create, or that is not a table."""

    error_class = "FLOW_TARGET_NOT_FOUND"
    sqlstate = "42P01"

    @classmethod
    def from_flow(
        cls, flow: str, target: str, *, known: Iterable[str], where: SourceLocation
    ) -> Self:
        return cls(
            f"Flow {flow} writes to {target}, which no source file of the pipeline creates.",
            where=where,
            hint=_meant_table(target, known)
            + "declare it with CREATE STREAMING TABLE or dp.create_streaming_table",
        )

    @classmethod
    def from_kind(cls, flow: str, target: str, *, kind: str, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} writes to {target}, which is a {kind.lower().replace('_', ' ')}.",
            where=where,
            hint="a flow's target is a streaming table",
        )


class DatasetWithoutFlowError(MillpondError, ValueError):
    """A streaming table is declared, but nothing feeds it."""

    error_class = "DATASET_WITHOUT_FLOW"

    @classmethod
    def from_dataset(cls, name: str, *, where: SourceLocation) -> Self:
        return cls(
            f"Streaming table {name} is declared, but no flow writes to it.",
            where=where,
            hint="add a query to it, or a flow: CREATE FLOW, @dp.append_flow or @dp.replace_flow",
        )


class FlowNotStreamingError(MillpondError, ValueError):
    """A flow that must read a stream has a batch query."""

    error_class = "FLOW_NOT_STREAMING"
    sqlstate = "42000"

    @classmethod
    def from_append(
        cls,
        flow: str,
        target: str,
        *,
        where: SourceLocation,
        source: str | None = None,
        detail: str | None = None,
    ) -> Self:
        read = f"reads {source} as a whole" if source else "reads no stream"
        return cls(
            f"Flow {flow} feeds the streaming table {target}, but its query {read}.",
            where=where,
            detail=detail,
            hint="read the source with STREAM(..), STREAM read_files(..) or spark.readStream; for "
            "a batch query that runs once say INSERT ONCE or once=True, or make the table a "
            "materialized view",
        )


class FlowIsStreamingError(MillpondError, ValueError):
    """A query that must be a batch query reads a stream."""

    error_class = "FLOW_IS_STREAMING"
    sqlstate = "42000"

    @classmethod
    def from_flow(cls, flow: str, *, kind: str, where: SourceLocation | None) -> Self:
        return cls(
            f"Flow {flow} is {kind}, whose query is a batch query, but it reads a stream.",
            where=where,
            hint="take STREAM or readStream away, or make the dataset a streaming table",
        )


class ViewReadMismatchError(MillpondError, ValueError):
    """A streaming view is read as a batch, or a batch view as a stream."""

    error_class = "VIEW_READ_MISMATCH"
    sqlstate = "42000"

    @classmethod
    def from_read(
        cls, view: str, *, reader: str, view_streams: bool, where: SourceLocation | None
    ) -> Self:
        if view_streams:
            return cls(
                f"{reader} reads the view {view} as a batch, but the view reads a stream.",
                where=where,
                hint=f"read it with STREAM({view}) or spark.readStream.table",
            )
        return cls(
            f"{reader} reads the view {view} as a stream, but the view's query is a batch query.",
            where=where,
            hint="read a stream inside the view, or take STREAM or readStream away here",
        )


class DeclaredSchemaMismatchError(MillpondError, ValueError):
    """A query's columns do not fit the columns that the table declares."""

    error_class = "DECLARED_SCHEMA_MISMATCH"
    sqlstate = "42KDE"

    @classmethod
    def from_extra(cls, flow: str, columns: Sequence[str], *, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} gives columns that its table does not declare: {', '.join(columns)}.",
            where=where,
            hint="declare them, or leave them out of the query",
        )

    @classmethod
    def from_type(
        cls, flow: str, column: str, *, declared: str, found: str, where: SourceLocation
    ) -> Self:
        return cls(
            f"Flow {flow} gives column {column} as {found}, but its table declares {declared}.",
            where=where,
            hint=f"CAST({column} AS {declared}) in the query, or change the declaration",
        )

    @classmethod
    def from_inferred(
        cls,
        flow: str,
        column: str,
        *,
        declared: str,
        found: str,
        option: str,
        where: SourceLocation,
    ) -> Self:
        """Build the error for a column as it was inferred from files.

        Args:
            option: How the query tells its type where the files are read.
        """
        return cls(
            f"Flow {flow} gives column {column} as {found}, inferred from files, but its table "
            f"declares {declared}.",
            where=where,
            hint=f"give its type where the files are read: {option}; a CAST in the query comes "
            f"after values that are no {found} were taken for NULL. Or change the declaration",
        )

    @classmethod
    def from_missing(cls, flow: str, column: str, *, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} does not give column {column}, which its table declares NOT NULL.",
            where=where,
            hint="add the column to the query, or take NOT NULL away",
        )

    @classmethod
    def from_count(cls, flow: str, *, declared: int, found: int, where: SourceLocation) -> Self:
        return cls(
            f"{flow} names {declared} columns, but its query gives {found}.",
            where=where,
            hint="name every column of the query once, in order",
        )

    @classmethod
    def from_text(cls, dataset: str, text: str, *, reason: str, where: SourceLocation) -> Self:
        shown = text if len(text) <= 200 else text[:197] + "..."
        return cls(
            f"The declared schema of {dataset} can't be read: {shown!r}.",
            where=where,
            detail=reason,
            hint="write it as in CREATE TABLE, such as: id BIGINT, name STRING NOT NULL",
        )


class UnsupportedColumnDefinitionError(MillpondError, NotImplementedError):
    """A declared column asks for something that millpond can't do."""

    error_class = "UNSUPPORTED_COLUMN_DEFINITION"
    sqlstate = "0A000"

    @classmethod
    def from_column(cls, dataset: str, column: str, *, what: str, where: SourceLocation) -> Self:
        return cls(
            f"Column {column} of {dataset} is declared with {what}, which millpond can't do.",
            where=where,
            hint="compute the column in the query",
        )


class ReservedColumnNameError(MillpondError, ValueError):
    """A query gives a column of a name that millpond needs for itself."""

    error_class = "RESERVED_COLUMN_NAME"
    sqlstate = "42939"

    @classmethod
    def from_column(cls, flow: str, column: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{flow} gives a column named {column}, a name that millpond keeps for itself.",
            where=where,
            hint="rename it in the query; reserved are __file, __row, file_row_number, and names "
            "that begin with __millpond_",
        )


class UnsupportedColumnTypeError(MillpondError, TypeError):
    """A query gives a column of a type that a Delta table can't hold."""

    error_class = "UNSUPPORTED_COLUMN_TYPE"
    sqlstate = "0A000"

    @classmethod
    def from_column(cls, flow: str, column: str, *, type_text: str, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} gives column {column} of type {type_text}, which no Delta table can "
            "hold.",
            where=where,
            hint=f"CAST({column} AS ..) to a type that can be stored, or leave the column out",
        )

    @classmethod
    def from_decimal(cls, flow: str, column: str, *, type_text: str, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} gives column {column} of type {type_text}, which no Delta table can "
            "hold.",
            where=where,
            hint=DECIMAL_HINT,
        )


class FlowSchemaConflictError(MillpondError, ValueError):
    """Two flows of one table give a column different types."""

    error_class = "FLOW_SCHEMA_CONFLICT"
    sqlstate = "42KDE"

    @classmethod
    def from_flow(cls, flow: str, target: str, *, reason: str, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} gives columns that don't fit the other flows of {target}.",
            where=where,
            detail=reason,
            hint="CAST the column to one type in every flow",
        )


class UnknownTableColumnError(MillpondError, LookupError):
    """A table is partitioned or clustered by a column that it does not have."""

    error_class = "UNKNOWN_TABLE_COLUMN"
    sqlstate = "42703"

    @classmethod
    def from_column(
        cls, dataset: str, column: str, *, clause: str, known: Iterable[str], where: SourceLocation
    ) -> Self:
        names = sorted(set(known))
        return cls(
            f"{dataset} is {clause} by {column}, which its query does not give.",
            where=where,
            hint=_meant(did_you_mean(column, names), names).rstrip("; ") or None,
        )


class ReservedTablePropertyError(MillpondError, ValueError):
    """A table sets a property in which millpond keeps what it must know of the table."""

    error_class = "RESERVED_TABLE_PROPERTY"

    @classmethod
    def from_property(
        cls, dataset: str, key: str, *, settings: Iterable[str], where: SourceLocation
    ) -> Self:
        """Build the error.

        Args:
            settings: Properties of that kind that a table may set.
        """
        meant = did_you_mean(key, settings)
        hint = "use another name; settings of millpond stand under configuration in the spec"
        return cls(
            f"{dataset} sets the table property {key}, a name that millpond keeps for itself.",
            where=where,
            hint=f"did you mean {meant}?" if meant else hint,
        )


class UnknownDatasetError(MillpondError, LookupError):
    """A dataset was selected for a refresh that the pipeline does not define."""

    error_class = "UNKNOWN_DATASET"
    sqlstate = "42P01"

    @classmethod
    def from_selection(cls, name: str, *, option: str, known: Iterable[str]) -> Self:
        return cls(
            f"{option} names {name}, which the pipeline does not define as a table.",
            hint=_meant_table(name, known).rstrip("; ") or None,
        )
