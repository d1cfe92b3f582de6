"""Errors about queries: their text, their shape, and what an engine says when it runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short, did_you_mean, shortened

_NAME_SEQUENCE = "name a column of the query, or give an expression over its columns"
_METADATA = "_metadata"
_RESCUED = "_rescued_data"
# Of what an engine says, which may hold values of the data.
_LONGEST = 2_000
_NAME_METADATA = (
    "only where files are read there is _metadata: select what is needed of it there, under a "
    "name of its own, as in SELECT *, _metadata.file_path AS path, and use that name"
)

_SPLIT = (
    "write IN (..) instead of many ORs, or put the values into a table; split what is put together "
    "into several views or flows"
)


class QuerySyntaxError(MillpondError, ValueError):
    """The text of a query can't be read."""

    error_class = "QUERY_SYNTAX_ERROR"
    sqlstate = "42601"

    @classmethod
    def at(cls, problem: str, *, where: SourceLocation, detail: str | None = None) -> Self:
        return cls(
            f"The query can't be read: {problem}.",
            where=where,
            detail=detail,
            hint="mend the SQL at the place shown",
        )


class QueryTooDeepError(MillpondError, ValueError):
    """A query is nested deeper than an engine can read."""

    error_class = "QUERY_TOO_DEEP"
    sqlstate = "54001"

    @classmethod
    def at(
        cls, nested: int, chained: int, *, where: SourceLocation, detail: str | None = None
    ) -> Self:
        return cls(
            f"The query is nested too deeply: more than {nested} parentheses, CASEs or types "
            f"inside of each other, or more than {chained:,} operators or set operations one after "
            "the other.",
            where=where,
            detail=detail,
            hint=_SPLIT,
        )

    @classmethod
    def of_steps(cls, *, where: SourceLocation | None) -> Self:
        """Of parts that stand in, or read, each other in more ways than a limit counts."""
        return cls(
            "The query is nested too deeply: too many of its parts stand in, or read, each other.",
            where=where,
            hint=_SPLIT,
        )

    @classmethod
    def of_columns(cls, *, where: SourceLocation | None) -> Self:
        return cls(
            "The query gives a column whose type is nested too deeply: the engine can't say what "
            "it is.",
            where=where,
            hint="nest arrays, maps and structs less than 45 deep",
        )


class NotAQueryError(MillpondError, ValueError):
    """A statement stands where one query is expected, or several queries do."""

    error_class = "NOT_A_QUERY"
    sqlstate = "42601"

    @classmethod
    def found(cls, found: str, *, where: SourceLocation, detail: str | None = None) -> Self:
        return cls(
            f"One query is expected, but this is {found}.",
            where=where,
            detail=detail,
            hint="write one SELECT; tables are made by the pipeline's own definitions",
        )


class InvalidReadOptionError(MillpondError, ValueError):
    """The options of a table read, `WITH (...)`, can't be read."""

    error_class = "INVALID_READ_OPTION"
    sqlstate = "42601"

    @classmethod
    def at(cls, problem: str, *, where: SourceLocation, detail: str | None = None) -> Self:
        return cls(
            f"The options of this read can't be read: {problem}.",
            where=where,
            detail=detail,
            hint="write WITH (skipChangeCommits, startingVersion = 3, maxFilesPerTrigger => '2')",
        )

    @classmethod
    def of_function(cls, problem: str, *, where: SourceLocation, detail: str | None = None) -> Self:
        """Of the arguments of `read_files` or `read_kafka`."""
        return cls(
            f"The arguments of this read can't be read: {problem}.",
            where=where,
            detail=detail,
            hint="write read_files('/data/folder', format => 'csv', header => true), with values "
            "as they are, not computed",
        )


class UnsupportedStreamingSourceError(MillpondError, NotImplementedError):
    """Something is read as a stream that can't be."""

    error_class = "UNSUPPORTED_STREAMING_SOURCE"
    sqlstate = "0A000"

    @classmethod
    def of(
        cls,
        source: str,
        *,
        where: SourceLocation | None,
        meant: str | None = None,
        detail: str | None = None,
    ) -> Self:
        """`meant` is what the name is likely misspelt for."""
        return cls(
            f"{source} can't be read as a stream.",
            where=where,
            detail=detail,
            hint=f"did you mean {meant}?"
            if meant
            else "read a table or files: STREAM(name), STREAM read_files('/path'), "
            'spark.readStream.table(name) or spark.readStream.format("csv").load(path)',
        )


class UnsupportedReadError(MillpondError, NotImplementedError):
    """A query reads data in a way that millpond can't follow."""

    error_class = "UNSUPPORTED_READ"
    sqlstate = "0A000"

    @classmethod
    def of(
        cls,
        source: str,
        *,
        where: SourceLocation | None,
        instead: str,
        detail: str | None = None,
    ) -> Self:
        return cls(f"{source} is not supported.", where=where, detail=detail, hint=instead)


class UnsupportedStreamingOperationError(MillpondError, NotImplementedError):
    """A flow's query does something over a stream that no flow supports."""

    error_class = "UNSUPPORTED_STREAMING_OPERATION"
    sqlstate = "0A000"

    @classmethod
    def of(
        cls,
        operation: str,
        *,
        reason: str,
        instead: str,
        where: SourceLocation | None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"{operation} over a stream is not supported: {reason}.",
            where=where,
            detail=detail,
            hint=instead,
        )


class OperationNotAllowedError(MillpondError, RuntimeError):
    """Code that defines a pipeline runs a query, writes, or changes the session."""

    error_class = "OPERATION_NOT_ALLOWED_IN_DEFINITION"
    sqlstate = "0A000"

    @classmethod
    def of(cls, operation: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{operation} is not allowed in a pipeline's source files: they only define queries, "
            "and millpond runs them.",
            where=where,
            hint="return a DataFrame from a decorated function; put settings under "
            "`configuration` in the pipeline's spec",
        )


class QueryFunctionError(MillpondError, RuntimeError):
    """A query function raised an exception of its own; it is this error's `__cause__`."""

    error_class = "QUERY_FUNCTION_FAILED"
    sqlstate = "38000"

    @classmethod
    def raised(cls, name: str, error: BaseException, *, where: SourceLocation) -> Self:
        text = str(error).strip()
        return cls(
            f"The query function {name} raised {type(error).__name__}"
            + (f": {text}" if text else "."),
            where=where,
            hint="mend the function; it must build and return a DataFrame",
        )


class QueryFunctionResultError(MillpondError, TypeError):
    """A query function returned something that is no DataFrame."""

    error_class = "QUERY_FUNCTION_RETURNED_NO_DATAFRAME"
    sqlstate = "38000"

    @classmethod
    def of(cls, name: str, returned: object, *, where: SourceLocation) -> Self:
        found = "nothing" if returned is None else f"a value of type {type(returned).__name__}"
        return cls(
            f"The query function {name} returned {found} instead of a DataFrame.",
            where=where,
            hint="end the function with `return df`",
        )


class UnresolvedColumnError(MillpondError, LookupError):
    """A query names a column that its inputs do not have."""

    error_class = "UNRESOLVED_COLUMN"
    sqlstate = "42703"

    @classmethod
    def of(
        cls,
        column: str,
        *,
        subject: str,
        known: Iterable[str],
        metadata: Collection[str] = (),
        where: SourceLocation | None,
        detail: str | None,
    ) -> Self:
        """Of a column's name as it may be written.

        Args:
            known: The columns that there are.
            metadata: The fields of `_metadata`, where files are read.
        """
        return cls(
            f"{subject} names the column {cut_short(column)}, which its inputs do not have.",
            where=where,
            detail=detail,
            hint=_column_hint(column, known, metadata)
            or "check the spelling, and the columns of the tables that are read",
        )


class UnresolvedRoutineError(MillpondError, LookupError):
    """A query calls a function that the engine does not have."""

    error_class = "UNRESOLVED_ROUTINE"
    sqlstate = "42883"

    @classmethod
    def of(
        cls, name: str, *, subject: str, where: SourceLocation | None, detail: str | None
    ) -> Self:
        return cls(
            f"{subject} calls the function {name}, which the engine does not have.",
            where=where,
            detail=detail,
            hint="check the spelling; a Python function is made known with spark.udf.register",
        )


class QueryAnalysisError(MillpondError, ValueError):
    """The engine refuses a query before it reads any data."""

    error_class = "QUERY_ANALYSIS_FAILED"
    sqlstate = "42000"

    @classmethod
    def of(cls, text: str, *, subject: str, where: SourceLocation | None, detail: str) -> Self:
        return cls(
            f"{subject} can't be analysed: {cut_short(text, limit=_LONGEST)}",
            where=where,
            detail=cut_short(detail, limit=_LONGEST),
            hint="mend the query at the place shown",
        )


class QueryRunError(MillpondError, RuntimeError):
    """A query failed while it ran, most often because of a value in the data."""

    error_class = "QUERY_FAILED"
    sqlstate = "22000"

    @classmethod
    def of(cls, text: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The query failed while it ran: {cut_short(text, limit=_LONGEST)}",
            where=where,
            hint="a value in the data may not fit: try_cast, try_divide and the like give null "
            "instead of failing",
        )

    @classmethod
    def unplanned(cls, text: str, *, where: SourceLocation | None) -> Self:
        """Of a query that the engine understands and can't plan."""
        return cls(
            f"The engine can't plan the query: {cut_short(text, limit=_LONGEST)}",
            where=where,
            hint="where grouped rows are sorted or filtered by an expression that is not "
            "selected, or by a field of a struct, select it under a name in a subquery in FROM, "
            "and use that name",
        )


class InvalidExpectationError(MillpondError, ValueError):
    """An expectation's constraint is not one boolean expression over a row."""

    error_class = "INVALID_EXPECTATION"
    sqlstate = "42804"

    @classmethod
    def of(
        cls, name: str, problem: str, *, where: SourceLocation | None, detail: str | None = None
    ) -> Self:
        return cls(
            f"The constraint of the expectation {name!r} {problem}.",
            where=where,
            detail=detail,
            hint="write one boolean SQL expression over the columns of the query, "
            "such as amount > 0",
        )


class InvalidSequenceError(MillpondError, ValueError):
    """`sequence_by` is not one expression over the columns of the query."""

    error_class = "INVALID_SEQUENCE_EXPRESSION"
    sqlstate = "42601"

    @classmethod
    def of(cls, problem: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The sequence {problem}.",
            where=where,
            hint=_NAME_SEQUENCE,
        )

    @classmethod
    def missing_column(cls, column: str, *, known: Iterable[str]) -> Self:
        """Of a column's name as it may be written, where the query gives the columns `known`."""
        return cls(
            f"The sequence names the column {cut_short(column)}, which the query does not give.",
            hint=_column_hint(column, known) or _NAME_SEQUENCE,
        )


class DuplicateColumnError(MillpondError, ValueError):
    """A query gives two columns of one name; Spark's names do not tell case apart."""

    error_class = "DUPLICATE_COLUMN"
    sqlstate = "42711"

    @classmethod
    def of(cls, names: list[str], *, where: SourceLocation | None) -> Self:
        listed = ", ".join(names)
        return cls(
            f"The query gives more than one column named {listed}.",
            where=where,
            hint="select the columns by name and rename one with AS or alias()",
        )


class InvalidIntervalError(MillpondError, ValueError):
    """A length of time, such as a watermark's delay, can't be read or can't be used."""

    error_class = "INVALID_INTERVAL"
    sqlstate = "22006"

    @classmethod
    def unreadable(cls, text: str, *, call: str, where: SourceLocation | None) -> Self:
        return cls(
            f"{call} is given {text!r}, which is no length of time.",
            where=where,
            hint="write numbers and units, such as '10 minutes' or '1 hour 30 minutes'",
        )

    @classmethod
    def negative(cls, text: str, *, call: str, where: SourceLocation | None) -> Self:
        return cls(
            f"{call} is given {text!r}, which is negative.",
            where=where,
            hint="give how long to wait for late rows, '0 seconds' or more",
        )

    @classmethod
    def not_positive(cls, text: str, *, call: str, where: SourceLocation | None) -> Self:
        return cls(
            f"{call} is given {text!r}, which is not above zero.",
            where=where,
            hint="give a length above zero, such as '10 minutes'",
        )

    @classmethod
    def with_months(cls, text: str, *, call: str, where: SourceLocation | None) -> Self:
        return cls(
            f"{call} is given {text!r}, and months differ in length.",
            where=where,
            hint="give it in days or weeks, such as '30 days'",
        )


class CyclicViewError(MillpondError, RecursionError):
    """Views read each other in a circle."""

    error_class = "CYCLIC_VIEW"
    sqlstate = "42K0E"

    @classmethod
    def through(cls, name: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The view {name} reads itself, directly or through other views.",
            where=where,
            hint="break the circle: let one of the views read a table",
        )


def _column_hint(column: str, known: Iterable[str], metadata: Collection[str] = ()) -> str | None:
    """What may have been meant by the name of a column that is not there."""
    last = column.rpartition(".")[2].strip("`")
    is_metadata = _METADATA in column.lower().split(".")
    names = sorted(known)
    near = did_you_mean(last, names)
    # A field of `_metadata` is not what another column is misspelt for.
    near_field = did_you_mean(last, metadata) if is_metadata or last in metadata else None
    if near_field:
        return f"did you mean {_METADATA}.{near_field}?"
    if is_metadata:
        fields = f"the fields of {_METADATA} are {shortened(metadata)}"
        return fields if metadata else _NAME_METADATA
    if last.lower() == _RESCUED and metadata:
        return (
            f"this read of files has {last} only if it is asked for: name it in the schema that is "
            f"given ({last} STRING), or set the option rescuedDataColumn to '{last}'"
        )
    if near:
        return f"did you mean {near}?"
    return f"the columns are {shortened(names)}" if names else None
