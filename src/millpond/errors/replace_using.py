"""What a REPLACE USING flow can be refused for, whichever language it is written in.

Classes are grouped by when they are found: in the definition, over the whole pipeline, in the
query's columns, and last with the data and the table of earlier runs.
"""

from collections.abc import Iterable, Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short, did_you_mean, did_you_mean_table, shortened

ORDERABLE_HINT = (
    "use columns of types that can be ordered: numbers, strings, dates, timestamps, booleans, "
    "binary, or structs and arrays of these; MAP and VARIANT can't be ordered"
)


class ReplaceUsingError(MillpondError, ValueError):
    """Base of the causes for which a REPLACE USING flow is refused or stopped."""


class ReplaceUsingNotKeyedByFileError(ReplaceUsingError):
    """Files without rows are to empty their keys, and it can't be told which keys these are."""

    error_class = "REPLACE_USING_NOT_KEYED_BY_FILE"
    sqlstate = "42601"

    @classmethod
    def from_flow(cls, flow: str, *, setting: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"Flow {flow} sets {setting}, but it is not keyed by file.",
            where=where,
            hint="stream one folder of files, with _metadata.file_path or _metadata.file_name as "
            "the only key and _metadata.file_modification_time as the sequence, each selected as "
            "it is, under any name, and read in the flow's own query, not through a view or a join",
        )

    @classmethod
    def from_table(cls, table: str, *, setting: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"{table} sets {setting}, but no REPLACE USING flow feeds it.",
            where=where,
            hint="leave the setting out, or let its flow REPLACE USING the path of the file",
        )


# Found in the definition of the flow itself.


class ReplaceUsingNoKeyError(ReplaceUsingError):
    """The list of key columns is empty."""

    error_class = "REPLACE_USING_NO_KEY"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls, flow: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"Flow {flow} is a REPLACE USING flow without a key column.",
            where=where,
            detail=detail,
            hint="name at least one column whose rows are replaced together: "
            'REPLACE USING (region) in SQL, replace_using=["region"] in Python',
        )


class ReplaceUsingDuplicateKeyError(ReplaceUsingError):
    """A key column is named twice; letter case makes no difference."""

    error_class = "REPLACE_USING_DUPLICATE_KEY"
    sqlstate = "42701"

    @classmethod
    def from_flow(
        cls, flow: str, *, key: str, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"REPLACE USING flow {flow} names the key column {key!r} more than once.",
            where=where,
            detail=detail,
            hint="name each key column once; letter case makes no difference",
        )


class ReplaceUsingMissingSequenceByError(ReplaceUsingError):
    """There are key columns but nothing says which row is newer."""

    error_class = "REPLACE_USING_MISSING_SEQUENCE_BY"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls, flow: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"REPLACE USING flow {flow} does not say what orders its rows.",
            where=where,
            detail=detail,
            hint="add SEQUENCE BY <column> after the key list in SQL, or "
            'sequence_by="<column>" in Python: of each key, the rows at the highest value stay',
        )


class SequenceByWithoutReplaceUsingError(ReplaceUsingError):
    """A sequence is given where there are no key columns."""

    error_class = "SEQUENCE_BY_WITHOUT_REPLACE_USING"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls, flow: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"Flow {flow} has a sequence (SEQUENCE BY, sequence_by) but no key columns.",
            where=where,
            detail=detail,
            hint="add REPLACE USING (<columns>) in SQL or replace_using=[...] in Python, "
            "or leave the sequence out",
        )


class ReplaceUsingWithOnceError(ReplaceUsingError):
    """`ONCE` and `REPLACE USING` exclude each other."""

    error_class = "REPLACE_USING_WITH_ONCE"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls, flow: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"REPLACE USING flow {flow} can't be a flow that runs once.",
            where=where,
            detail=detail,
            hint="leave ONCE (once=True) out: a REPLACE USING flow follows its stream",
        )


class ReplaceUsingMissingByNameError(ReplaceUsingError):
    """The SQL text lacks `BY NAME`, which REPLACE USING demands."""

    error_class = "REPLACE_USING_MISSING_BY_NAME"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        place: str = "after SEQUENCE BY and before the query",
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"REPLACE USING flow {flow} lacks BY NAME.",
            where=where,
            detail=detail,
            hint=f"write BY NAME {place}: columns are matched by name, never by position",
        )


# Found over the whole pipeline.


class ReplaceUsingNotStreamingError(ReplaceUsingError):
    """The flow's query reads no stream."""

    error_class = "REPLACE_USING_NOT_STREAMING"
    sqlstate = "0A000"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        source: str | None = None,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        read = f"it reads {source} as a whole" if source else "it reads no stream"
        return cls(
            f"REPLACE USING flow {flow} needs a streaming query, but {read}.",
            where=where,
            detail=detail,
            hint="read the source as a stream: STREAM t or STREAM read_files(..) in SQL, "
            "spark.readStream.table(...) in Python",
        )


class ReplaceUsingSecondFlowError(ReplaceUsingError):
    """Another flow, of any kind, writes to the target of a REPLACE USING flow."""

    error_class = "REPLACE_USING_SECOND_FLOW"
    sqlstate = "0A000"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        target: str,
        other: str,
        other_where: SourceLocation | None = None,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        """`flow` is the REPLACE USING flow, `other` the flow that is one too many."""
        place = f" ({other_where})" if other_where else ""
        return cls(
            f"REPLACE USING flow {flow} must be the only flow into {target}, "
            f"but flow {other}{place} writes there, too.",
            where=where,
            detail=detail,
            hint="give each flow a table of its own, or unite their sources in one query "
            "(UNION ALL)",
        )


class ReplaceUsingTargetNotCreatedError(ReplaceUsingError):
    """The pipeline does not create the streaming table that the flow writes to."""

    error_class = "REPLACE_USING_TARGET_NOT_CREATED"
    sqlstate = "42P01"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        target: str,
        created: Iterable[str] = (),
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        """`created` are the streaming tables that the pipeline does create."""
        near = did_you_mean_table(target, created)
        meant = f"did you mean {near}? Otherwise create" if near else "create"
        return cls(
            f"REPLACE USING flow {flow} writes to {target}, which is no streaming table of this "
            "pipeline.",
            where=where,
            detail=detail,
            hint=f"{meant} it: CREATE STREAMING TABLE {target} in SQL, "
            f'dp.create_streaming_table("{target}") in Python',
        )


# Found in the columns of the query.


class ReplaceUsingKeyNotFoundError(ReplaceUsingError):
    """A key column is not among the columns of the query."""

    error_class = "REPLACE_USING_KEY_NOT_FOUND"
    sqlstate = "42703"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        key: str,
        columns: Sequence[str],
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"The query of REPLACE USING flow {flow} has no column {key!r}, named as a key.",
            where=where,
            detail=detail,
            hint=_columns_hint(key, columns),
        )


class ReplaceUsingSequenceNotFoundError(ReplaceUsingError):
    """A column that the sequence names is not among the columns of the query."""

    error_class = "REPLACE_USING_SEQUENCE_NOT_FOUND"
    sqlstate = "42703"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        sequence: str,
        columns: Sequence[str],
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"The query of REPLACE USING flow {flow} has no column {sequence!r}, named as the "
            "sequence.",
            where=where,
            detail=detail,
            hint=_columns_hint(sequence, columns),
        )


class ReplaceUsingKeyNotOrderableError(ReplaceUsingError):
    """A key column's type has no order."""

    error_class = "REPLACE_USING_KEY_NOT_ORDERABLE"
    sqlstate = "42804"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        key: str,
        type_text: str,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"The key column {key!r} of REPLACE USING flow {flow} is of type {type_text}, which "
            "can't be ordered.",
            where=where,
            detail=detail,
            hint=ORDERABLE_HINT,
        )


class ReplaceUsingSequenceNotOrderableError(ReplaceUsingError):
    """The sequence's type has no order."""

    error_class = "REPLACE_USING_SEQUENCE_NOT_ORDERABLE"
    sqlstate = "42804"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        type_text: str,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"The sequence of REPLACE USING flow {flow} is of type {type_text}, which can't be "
            "ordered.",
            where=where,
            detail=detail,
            hint=ORDERABLE_HINT,
        )


# Found with the data, or in the table of earlier runs.


class ReplaceUsingNullSequenceError(ReplaceUsingError):
    """Rows of a micro-batch have no sequence; nothing of the batch was applied.

    Attributes:
        row_json: One of these rows as JSON, where it is known.
    """

    error_class = "REPLACE_USING_NULL_SEQUENCE"
    sqlstate = "22004"

    row_json: str | None = None

    @classmethod
    def from_batch(
        cls,
        flow: str,
        *,
        target: str,
        batch_id: int,
        rows: int,
        sequence: str | None = None,
        row_json: str | None = None,
        where: SourceLocation | None = None,
    ) -> Self:
        """`sequence` is its text, as the flow has it."""
        counted = "1 row" if rows == 1 else f"{rows:,} rows"
        named = "" if sequence is None else f" ({sequence})"
        error = cls(
            f"{counted} of batch {batch_id} of REPLACE USING flow {flow} into {target} "
            f"{'has' if rows == 1 else 'have'} a null sequence{named}. "
            "Nothing of the batch was applied.",
            where=where,
            detail=None if row_json is None else f"one of them: {cut_short(row_json, limit=1000)}",
            hint="give every row a sequence, or leave such rows out: with a WHERE in the query, "
            "or an expectation that drops them (ON VIOLATION DROP ROW); a text in a file that is "
            "no value of the column's type is null, too: see the column _rescued_data",
        )
        error.row_json = row_json
        return error


class ReplaceUsingKeyDriftError(ReplaceUsingError):
    """The key columns or their types are not those that the table was filled with."""

    error_class = "REPLACE_USING_KEY_DRIFT"
    sqlstate = "55019"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        target: str,
        stored: Sequence[str],
        defined: Sequence[str],
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        """`stored` and `defined` are the keys as text, such as `region STRING`."""
        return cls(
            f"REPLACE USING flow {flow} now has the keys ({', '.join(defined)}), but {target} was "
            f"filled with the keys ({', '.join(stored)}).",
            where=where,
            detail=detail,
            hint=_refresh_hint(target),
        )


class ReplaceUsingSequenceTypeDriftError(ReplaceUsingError):
    """The sequence's type is not the one that the table was filled with."""

    error_class = "REPLACE_USING_SEQUENCE_TYPE_DRIFT"
    sqlstate = "55019"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        target: str,
        stored: str,
        defined: str,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"The sequence of REPLACE USING flow {flow} is now of type {defined}, but {target} was "
            f"filled with a sequence of type {stored}.",
            where=where,
            detail=detail,
            hint=_refresh_hint(target),
        )


class ReplaceUsingSequenceUnknownError(ReplaceUsingError):
    """Files of the target carry no stored sequence, so later batches can't be compared."""

    error_class = "REPLACE_USING_SEQUENCE_UNKNOWN"
    sqlstate = "55019"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        target: str,
        files: int,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        counted = "1 file" if files == 1 else f"{files:,} files"
        return cls(
            f"{counted} of {target}, the target of REPLACE USING flow {flow}, "
            f"{'carries' if files == 1 else 'carry'} no sequence to compare new rows with. "
            "Another program wrote there, or rewrote what the flow had written.",
            where=where,
            detail=detail,
            hint=f"{_refresh_hint(target)}; or make the sequence a column of the query, which "
            "every writer then keeps",
        )


def _columns_hint(name: str, columns: Sequence[str]) -> str:
    near = did_you_mean(name, columns)
    meant = f"did you mean {near!r}? " if near else ""
    return f"{meant}the query has the columns {shortened(columns)}"


def _refresh_hint(target: str) -> str:
    return f"put the old definition back, or refill the table: millpond run --full-refresh {target}"
