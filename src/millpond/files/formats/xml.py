"""XML files: elements of one name are the rows.

They are written anew as JSON whose values are texts, and read as that.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from millpond.errors.file_formats import MalformedRecordError
from millpond.files.formats.base import LocalFile, Selection
from millpond.files.formats.json import STOPPING
from millpond.files.formats.json_options import JsonOptions, json_options
from millpond.files.formats.json_records import find_records
from millpond.files.formats.json_rewriting import CORRUPT_KEY, OWN_KEYS, REST_KEY
from millpond.files.formats.json_select import JsonSelect
from millpond.files.formats.merged_types import merge_structs
from millpond.files.formats.xml_options import XmlOptions, xml_options
from millpond.files.formats.xml_rows import Row, RowReader, open_text
from millpond.files.formats.xml_values import XmlFound, row_values
from millpond.files.options import Dialect, ParseMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millpond.files.options import FileOptions


class XmlFormat:
    """XML, by the standard library's parser, one row at a time."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,  # noqa: ARG002 - Python finds out the types
        folder: Path,
    ) -> StructType:
        """The elements and attributes of all rows, in order of their names."""
        rewriting = _Rewriting(xml_options(options.format_options), options)
        for file in files:
            target = rewriting.write(file, folder)
            target.unlink()
        schema = rewriting.schema()
        corrupt = json_options(options.format_options).corrupt_column
        if rewriting.wants_corrupt_column and corrupt not in schema.names:
            schema = StructType([StructField(corrupt, StringType()), *schema.fields])
        return schema

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> Selection:
        """Names match columns as keys of JSON do."""
        rewriting = _Rewriting(xml_options(options.format_options), options)
        written = [replace(file, path=rewriting.write(file, folder)) for file in files]
        given = replace(json_options(options.format_options), multi_line=False, line_separator=None)
        records = find_records(
            written,
            JsonOptions(),
            options.mode,
            connection=connection,
            folder=folder,
            has_own_keys=True,
        )
        select = JsonSelect(
            records, columns, given, options, connection, text_key=rewriting.given.value_tag
        )
        return Selection(select.sql(), rewriting.new_columns(columns))


class _Rewriting:
    """Writes rows as JSON, and notes what they hold."""

    def __init__(self, given: XmlOptions, options: FileOptions) -> None:
        self.given = given
        self._options = options
        self._found = XmlFound()
        self._has_corrupt = False

    @property
    def wants_corrupt_column(self) -> bool:
        """Whether a column is inferred for rows that can't be read, as Spark does."""
        return (
            self._has_corrupt
            and self._options.rescued_column is None
            and self._options.dialect is Dialect.SPARK
        )

    def schema(self) -> StructType:
        """The columns of the rows that were written."""
        decimals = json_options(self._options.format_options).prefers_decimal
        return self._found.schema(self.given, types=self._options.infer_types, decimals=decimals)

    def new_columns(self, columns: StructType) -> StructType:
        """Those of the rows that were written and not asked for."""
        if self._found.has_more and self._options.evolution not in STOPPING:
            return StructType([])
        merged = merge_structs(columns, self.schema(), keep_types=True)
        known = {field.name: field.dataType for field in columns.fields}
        return StructType([f for f in merged.fields if known.get(f.name) != f.dataType])

    def write(self, file: LocalFile, folder: Path) -> Path:
        """Write the rows of a file; returns the file with one object a line.

        Raises:
            FileUnreadableError: A row is too long.
            MalformedRecordError: A row can't be read, and the mode is FAILFAST.
        """
        target = folder / f"{uuid.uuid4().hex}.json"
        with (
            open_text(file, self._options) as content,
            target.open("w", encoding="utf-8") as output,
        ):
            rows = RowReader(content, self.given.row_tag, file.uri)
            for number, row in enumerate(rows, start=1):
                line = self._line(row, number, file)
                if line is not None:
                    output.write(line + "\n")
        return target

    def _line(self, row: Row, number: int, file: LocalFile) -> str | None:
        shown = row.text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        try:
            values = row_values(row.text, self.given)
        except ValueError as error:
            reason = str(error) if row.is_closed else "the file ends within it"
        else:
            others = {name: values.pop(name) for name in OWN_KEYS & values.keys()}
            self._found.add(values)
            if others:
                values[REST_KEY] = others
            if shown != row.text:
                values[CORRUPT_KEY] = shown
            return json.dumps(values)
        if self._options.mode is ParseMode.FAIL_FAST:
            raise MalformedRecordError.in_file(file.uri, record=number, text=shown, reason=reason)
        if self._options.mode is ParseMode.DROP_MALFORMED:
            return None
        self._has_corrupt = True
        return json.dumps({CORRUPT_KEY: shown})
