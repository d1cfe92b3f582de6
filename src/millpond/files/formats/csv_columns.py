"""Makes typed columns of the texts of CSV files, and keeps the texts that do not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.delta.schema import duckdb_type, literal, quote
from millpond.files.formats.base import FILE_INDEX, RESCUED
from millpond.files.formats.casts import cast_sql
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_tables import EXTRA, LINE, RAW, WIDTH, CsvTable
from millpond.files.options import ParseMode

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

# More columns than these make a query that takes longer to plan than to run.
_WIDE = 200


@dataclass(frozen=True)
class Wanted:
    """What is made of the rows.

    Attributes:
        columns: The asked columns, that of malformed rows among them.
        rescues: Whether texts that do not fit are kept; then they do not make a row malformed.
    """

    columns: StructType
    rescues: bool
    mode: ParseMode
    options: CsvOptions

    @property
    def data(self) -> list[StructField]:
        """The columns that are looked for in the files."""
        return [field for field in self.columns.fields if not self.is_corrupt_record(field)]

    def is_corrupt_record(self, field: StructField) -> bool:
        return field.name.lower() == self.options.corrupt_record.lower()

    @property
    def has_corrupt_record(self) -> bool:
        return any(map(self.is_corrupt_record, self.columns.fields))


@dataclass(frozen=True)
class _Place:
    """An asked column that a table has."""

    field: StructField
    position: int

    @property
    def text(self) -> str:
        return f"v{self.position}"

    @property
    def value(self) -> str:
        return f"t{self.position}"

    @property
    def is_text(self) -> bool:
        return self.field.dataType.typeName() in {"string", "binary"}

    @property
    def misfits(self) -> str:
        return f"({self.value} IS NULL AND {self.text} IS NOT NULL)"


class TypedTable:
    """The asked columns of a table of texts."""

    def __init__(self, table: CsvTable, wanted: Wanted) -> None:
        self._table = table
        self._wanted = wanted
        self._options = wanted.options
        self._places = list(self._found())
        taken = {place.position for place in self._places}
        self.unasked = [position for position in range(table.width) if position not in taken]
        # What stands at the others is in `EXTRA`.
        self._shown = [p for p in self.unasked if table.kept is None or p in table.kept]

    def _found(self) -> Iterator[_Place]:
        if self._options.by_position:
            for position, field in enumerate(self._wanted.data[: self._table.width]):
                yield _Place(field, position)
            return
        fold = str if self._options.case_sensitive else str.lower
        positions: dict[str, int] = {}
        for position in range(self._table.width):
            positions.setdefault(fold(self._table.column_name(position)), position)
        for field in self._wanted.data:
            found = positions.get(fold(field.name))
            if found is not None:
                yield _Place(field, found)

    def sql(self) -> str:
        """A SELECT of the asked columns, `FILE_INDEX` and `RESCUED`."""
        places = {place.field.name: place for place in self._places}
        shown = []
        for field in self._wanted.columns.fields:
            value = f"NULL::{duckdb_type(field.dataType, column=field.name)}"
            if self._wanted.is_corrupt_record(field):
                if self._table.is_detailed:
                    value = f"CASE WHEN {self._malformed()} THEN {RAW} END"
            elif field.name in places:
                value = places[field.name].value
            shown.append(f"{value} AS {quote(field.name)}")
        keep = ""
        if self._wanted.mode is ParseMode.DROP_MALFORMED:
            keep = f" WHERE NOT coalesce({self._malformed()}, false)"
        return (
            f"SELECT {', '.join([*shown, FILE_INDEX, f'{self._rescued()} AS {RESCUED}'])} "
            f"FROM ({self._typed()}){keep}"
        )

    def malformed_sql(self) -> str:
        """A SELECT of `FILE_INDEX`, the line and why, of the rows that are malformed."""
        line = LINE if self._table.is_detailed else "NULL::BIGINT"
        reasons = [
            f"WHEN {place.misfits} THEN {literal(self._reason(place))} || to_json({place.text})"
            for place in self._places
            if not place.is_text and not self._wanted.rescues
        ]
        width = WIDTH if self._table.is_detailed else str(self._table.width)
        count = f"'it has ' || {width} || ' values, not {self._expected_width()}'"
        reason = f"CASE {' '.join(reasons)} ELSE {count} END" if reasons else count
        return (
            f"SELECT {FILE_INDEX}, {line} AS line, {reason} AS reason FROM ({self._typed()}) "
            f"WHERE {self._malformed()}"
        )

    def _reason(self, place: _Place) -> str:
        return f"column {place.field.name} is {place.field.dataType.simpleString()}, and not "

    def _typed(self) -> str:
        """The texts `v..` and values `t..` of the table's columns, and what is beside them."""
        needed = [place.position for place in self._places]
        if self._wanted.rescues:
            needed += self._shown
        texts = [f"c{position} AS v{position}" for position in sorted(needed)]
        detail = [WIDTH, LINE, EXTRA, RAW] if self._table.is_detailed else []
        values = [f"{self._value(place)} AS {place.value}" for place in self._places]
        inner = f"SELECT {', '.join([*texts, FILE_INDEX, *detail])} FROM ({self._table.sql})"
        return f"SELECT {', '.join(['*', *values])} FROM ({inner})"

    def _value(self, place: _Place) -> str:
        kind, formats = place.field.dataType, self._options.formats
        if place.is_text or len(self._places) <= _WIDE:
            return cast_sql(place.text, kind, formats=formats)
        # DuckDB looks for what a query computes twice, which takes the square of the number of such
        # terms. It does not look within lambdas.
        value = cast_sql("__text", kind, formats=formats)
        return f"list_transform([{place.text}], lambda __text: {value})[1]"

    def _expected_width(self) -> int:
        if self._options.by_position:
            return len(self._wanted.data)
        return self._table.width

    def _malformed(self) -> str:
        """Whether a row is malformed, as Spark means it."""
        width = WIDTH if self._table.is_detailed else str(self._table.width)
        conditions = [f"{width} <> {self._expected_width()}"]
        if not self._wanted.rescues:
            conditions += [place.misfits for place in self._places if not place.is_text]
        return f"({' OR '.join(conditions)})"

    def _rescued(self) -> str:
        if not self._wanted.rescues:
            return "NULL::VARCHAR"
        kept = [
            (place.misfits, place.field.name, place.text)
            for place in self._places
            if not place.is_text
        ]
        kept += [
            (f"v{position} IS NOT NULL", self._table.column_name(position), f"v{position}")
            for position in self._shown
        ]
        parts = [
            f"CASE WHEN {condition} THEN {_key(name)} || to_json({text})::VARCHAR END"
            for condition, name, text in kept
        ]
        conditions = [condition for condition, _, _ in kept]
        if self._table.is_detailed:
            parts.append(EXTRA)
            conditions.append(f"{EXTRA} IS NOT NULL")
        if not parts:
            return "NULL::VARCHAR"
        return (
            f"CASE WHEN {' OR '.join(conditions)} "
            f"THEN '{{' || concat_ws(',', {', '.join(parts)}) || '}}' END"
        )


def asked_positions(names: tuple[str, ...] | None, width: int, *, wanted: Wanted) -> frozenset[int]:
    """The positions of the asked columns in files with these names, or so many columns."""
    table = CsvTable("", width, names, is_detailed=True, files=())
    return frozenset(range(width)).difference(TypedTable(table, wanted).unasked)


def _key(name: str) -> str:
    return literal(f"{json.dumps(name, ensure_ascii=False)}:")
