"""Reads files into Parquet: each of them whole and in one version, or not at all."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import WrittenFile, copy_to_files, escape_glob, literal, quote
from millpond.delta.schema import duckdb_type
from millpond.delta.shared_connection import cursor
from millpond.errors import MillpondError
from millpond.errors.disk_reason import is_out_of_room
from millpond.errors.file_formats import FileColumnTypeError, FileUnreadableError
from millpond.errors.file_reads import other_header
from millpond.files.columns import FileColumns, NewColumn, check_count, storable
from millpond.files.contents import plain_content
from millpond.files.cut_files import check_not_cut
from millpond.files.damage import is_damage
from millpond.files.formats import format_of
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection
from millpond.files.formats.casts import cast_sql
from millpond.files.listed_file import ListedFile
from millpond.files.metadata import METADATA_COLUMN
from millpond.files.options import EvolutionMode, FileOptions
from millpond.files.partitions import Folders, partition_columns, partition_values
from millpond.files.stores import stat

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructField, StructType

_STOPPING = frozenset({EvolutionMode.ADD_NEW_COLUMNS, EvolutionMode.FAIL_ON_NEW_COLUMNS})
# So many files are read by one query at most.
_GROUP_FILES = 500
# What DuckDB puts before its messages.
_KIND_OF_ERROR = re.compile(r"(?:[A-Z][A-Za-z-]+ )+Error: ")
# Most live for a moment and are read once; those that become a table's are as Spark writes them.
_COMPRESSION = "snappy"


@dataclass
class FilesRead:
    """What came of reading some files.

    Attributes:
        parquet: Files that hold the rows, with the columns of `FileColumns.input_schema`.
        changed: Files of which there is another version than the listed one: that one.
        missing: URIs of files that are gone.
        failed: Why files can't be read, by URI.
        damaged: URIs of those of them that are to blame themselves.
        unlike: The columns of files that were not asked for and stop the read, by URI.
        empty: URIs of files all of whose rows are null in all columns that were looked for inside.
    """

    parquet: list[WrittenFile] = field(default_factory=list)
    changed: list[ListedFile] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    unlike: dict[str, tuple[NewColumn, ...]] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)


def read_files(
    files: Sequence[ListedFile],
    options: FileOptions,
    columns: FileColumns,
    *,
    root: Path,
    folder: Path,
    refuses_cut_files: bool = False,
) -> FilesRead:
    """Read the listed versions of some files.

    Args:
        root: What relative paths of the read start from.
        folder: For the Parquet files; it may not exist yet.
        refuses_cut_files: Whether a file without rows is damaged if it may be one that was cut off
            before its first row.

    Raises:
        OSError: There is no room to write to, or no file can be opened any more.
    """
    found = FilesRead()
    folder.mkdir(parents=True, exist_ok=True)
    group = _Group(options, columns, root, folder, found, refuses_cut_files=refuses_cut_files)
    for first in range(0, len(files), _GROUP_FILES):
        group.read(files[first : first + _GROUP_FILES])
    return found


class _Group:
    """Reads files by as few queries as can be, and finds those that spoil it for the others."""

    def __init__(
        self,
        options: FileOptions,
        columns: FileColumns,
        root: Path,
        folder: Path,
        found: FilesRead,
        *,
        refuses_cut_files: bool,
    ) -> None:
        self._options = options
        self._columns = columns
        self._root = root
        self._folder = folder
        self._found = found
        self._refuses_cut_files = refuses_cut_files
        self._format = format_of(options.format)
        self._folders = Folders(options, root=root)
        self._wider = columns.inside  # with the new columns of the files so far

    def read(self, files: Sequence[ListedFile]) -> None:
        contents: list[tuple[ListedFile, LocalFile]] = []
        for file in self._unchanged(files):
            try:
                if self._new_folders(file) and self._options.evolution in _STOPPING:
                    self._found.unlike[file.uri] = self._columns_of_folders(file)
                    continue
                content = plain_content(file, self._options, folder=self._folder)
                if self._refuses_cut_files:
                    check_not_cut(content, self._options)
                contents.append((file, content))
            except (MillpondError, OSError, UnicodeError) as error:
                self._fail(file, error)
        self._read(contents)

    def _new_folders(self, file: ListedFile) -> dict[str, str | None]:
        """What the folders of a file say of columns that the read lacks and could have.

        Where the user gives the columns, others of folders are not asked for.
        """
        values = self._folders.values(file.uri)
        if self._options.schema is not None:
            return {}
        known = {name.lower() for name in (*self._columns.of_folders, self._columns.rescued or "")}
        return {name: text for name, text in values.items() if name.lower() not in known}

    def _columns_of_folders(self, file: ListedFile) -> tuple[NewColumn, ...]:
        new = self._new_folders(file)
        found = partition_columns([file], self._options, root=self._root)
        return tuple(NewColumn(each, of_folder=True) for each in found if each.name in new)

    def _unchanged(self, files: Sequence[ListedFile]) -> Iterator[ListedFile]:
        for file in files:
            try:
                now = stat(file.uri, self._options.store_options)
            except FileUnreadableError as error:
                self._add_failed(file, error)
                continue
            if now is None:
                self._found.missing.append(file.uri)
            elif not file.is_same_version(now):
                self._found.changed.append(now)
            else:
                yield file

    def _read(self, contents: Sequence[tuple[ListedFile, LocalFile]]) -> None:
        """Read files whose content is at hand; each is told apart from the rest if need be."""
        import duckdb

        if not contents:
            return
        try:
            parquet, new_columns = self._written(contents)
        except (MillpondError, duckdb.Error, OSError, RuntimeError, UnicodeError) as error:
            raise_if_out_of_room(error)
            blamed = _blamed(error, contents)
            if blamed is not None:
                self._fail(blamed, error)
            self._read_halves([pair for pair in contents if pair[0] is not blamed])
            return
        if new_columns is not None:
            if len(contents) > 1:
                self._read_halves(contents)
            else:
                self._add_unlike(contents[0], new_columns)
            return
        files = [file for file, _ in contents]
        unchanged = set(self._unchanged(files))
        if len(unchanged) == len(files):
            self._found.parquet.extend(parquet)
            self._found.empty.extend(self._empty_of(contents, parquet))
            return
        for written in parquet:
            written.path.unlink()
        self._read([pair for pair in contents if pair[0] in unchanged])

    def _empty_of(
        self, contents: Sequence[tuple[ListedFile, LocalFile]], parquet: Sequence[WrittenFile]
    ) -> Iterator[str]:
        """URIs of the files, read together, that gave rows and nothing but nulls from inside."""
        import duckdb

        has_only_empty_rows = bool(parquet) and all(map(self._is_empty, parquet))
        if has_only_empty_rows and (len(contents) == 1 or not self._columns.inside.fields):
            yield from (file.uri for file, _ in contents)
        elif len(contents) > 1 and (has_only_empty_rows or self._has_empty_rows(parquet)):
            # Which file they are of is not written with rows.
            try:
                empty = self._without_values(contents)
            except (MillpondError, duckdb.Error, OSError):
                return  # one is gone meanwhile, and its rows are there
            yield from (contents[index][0].uri for index in empty)

    def _without_values(self, contents: Sequence[tuple[ListedFile, LocalFile]]) -> list[int]:
        """Read files once more, and say which of them have rows and no value from inside."""
        local = [content for _, content in contents]
        scratch = self._folder / uuid.uuid4().hex
        scratch.mkdir()
        no_value = " AND ".join(f"{quote(name)} IS NULL" for name in self._columns.inside.names)
        index = quote(FILE_INDEX)
        with cursor([content.path for content in local]) as connection:
            selection = self._format.select(
                local, self._options, self._columns.inside, connection=connection, folder=scratch
            )
            found = selection.taken(
                lambda taken: connection.execute(
                    f"SELECT {index} FROM ({taken.sql}) GROUP BY {index} "
                    f"HAVING bool_and({no_value}) ORDER BY {index}"
                ).fetchall()
            )
        return [row[0] for row in found]

    def _has_empty_rows(self, parquet: Sequence[WrittenFile]) -> bool:
        """Whether any row is null in all columns from inside the files."""
        inside = tuple(map(quote, self._columns.inside.names))
        nulls: Counter[str] = Counter()
        for written in parquet:
            for path, found in written.column_statistics.items():
                if path.startswith(inside):
                    nulls[path] += int(found.get("null_count", 0))
        if not nulls or not all(nulls.values()):
            return False
        files = [written.path for written in parquet]
        with cursor(files) as connection:
            no_value = " AND ".join(f"{name} IS NULL" for name in inside)
            listed = ", ".join(literal(escape_glob(str(file))) for file in files)
            query = f"SELECT 1 FROM read_parquet([{listed}]) WHERE {no_value} LIMIT 1"
            return bool(connection.execute(query).fetchall())

    def _is_empty(self, written: WrittenFile) -> bool:
        """Whether nothing but nulls came from inside the files, as far as it is cheap to tell."""
        if not self._columns.inside.fields:
            # Looked for, and none found: all that there is was rescued.
            return self._options.schema is None
        inside = tuple(map(quote, self._columns.inside.names))
        counts = [
            int(found.get("null_count", 0))
            for path, found in written.column_statistics.items()
            if path.startswith(inside)
        ]
        return bool(counts) and all(count == written.rows for count in counts)

    def _add_unlike(self, file: tuple[ListedFile, LocalFile], new_columns: StructType) -> None:
        import duckdb

        listed, content = file
        try:
            has_other_header = self._options.format == "csv" and self._has_other_header(content)
        except (MillpondError, duckdb.Error) as error:
            self._fail(listed, error)
            return
        if has_other_header:
            # What stands in the place of a header would be columns for good.
            self._found.failed[listed.uri] = other_header(
                has_schema=self._options.schema is not None
            )
            return
        self._wider = united(self._wider, new_columns.fields)
        self._found.unlike[listed.uri] = tuple(map(NewColumn, new_columns))

    def _has_other_header(self, content: LocalFile) -> bool:
        """Whether a file has none of the columns that are known of the others."""
        options = replace(self._options, infer_types=False)
        with cursor([content.path]) as connection:
            found = self._format.infer(
                [content], options, connection=connection, folder=self._folder
            )
        known = {name.lower() for name in self._columns.inside.names}
        return bool(known) and known.isdisjoint(map(str.lower, found.names))

    def _read_halves(self, contents: Sequence[tuple[ListedFile, LocalFile]]) -> None:
        half = len(contents) // 2
        self._read(contents[:half])
        self._read(contents[half:])

    def _written(
        self, contents: Sequence[tuple[ListedFile, LocalFile]]
    ) -> tuple[list[WrittenFile], StructType | None]:
        """The rows as Parquet, or the columns that stop it."""
        scratch = self._folder / uuid.uuid4().hex
        scratch.mkdir()
        local = [content for _, content in contents]
        files = [file for file, _ in contents]
        with cursor([content.path for content in local]) as connection:
            selection = self._format.select(
                local, self._options, self._columns.inside, connection=connection, folder=scratch
            )
            return selection.taken(partial(self._copied, files, connection))

    def _copied(
        self, files: Sequence[ListedFile], connection: DuckDBPyConnection, selection: Selection
    ) -> tuple[list[WrittenFile], StructType | None]:
        new_columns = self._lacking(selection.new_columns)
        if new_columns.fields and self._options.evolution in _STOPPING:
            if self._options.evolution is EvolutionMode.ADD_NEW_COLUMNS:
                check_count(united(self._wider, new_columns.fields))
            return [], new_columns
        written = copy_to_files(
            connection,
            self._select(selection.sql, files),
            self._folder,
            compression=_COMPRESSION,
        )
        return [file for file, _ in written if file.rows], None

    def _lacking(self, found: StructType) -> StructType:
        """Those of the columns found in files that the read lacks and could have."""
        from pyspark.sql.types import StructType

        known = {field.name.lower(): field for field in self._columns.inside.fields}
        new = storable(self._columns.without_those_beside(found), self._options.dialect)

        def is_lacking(column: StructField) -> bool:
            field = known.get(column.name.lower())
            return field is None or united(StructType([field]), [column]) != StructType([field])

        return StructType(list(filter(is_lacking, new.fields)))

    def _select(self, rows: str, files: Sequence[ListedFile]) -> str:
        """The rows with what stands beside them: of their file, and what did not fit."""
        values = ", ".join(
            f"({', '.join(self._facts(index, file))})" for index, file in enumerate(files)
        )
        names = [FILE_INDEX, METADATA_COLUMN, "__path", "__rescued", *self._folder_names()]
        beside = f"(VALUES {values}) AS file ({', '.join(map(quote, names))})"
        shown = [self._column(field.name) for field in self._columns.schema.fields]
        if self._columns.has_metadata:
            shown.append(f"file.{quote(METADATA_COLUMN)}")
        join = (
            f"JOIN {beside} USING ({quote(FILE_INDEX)})"
            if len(files) > 1
            else f"CROSS JOIN {beside}"
        )
        return f"SELECT {', '.join(shown)} FROM ({rows}) AS content {join}"

    def _column(self, name: str) -> str:
        if name == self._columns.rescued:
            inside = f"content.{quote(RESCUED)}"
            return (
                f"CASE WHEN {inside} IS NOT NULL "
                f"THEN left({inside}, -1) || coalesce(',' || file.__rescued, '') || file.__path "
                f"WHEN file.__rescued IS NOT NULL "
                f"THEN '{{' || file.__rescued || file.__path END AS {quote(name)}"
            )
        side = "file" if name in self._columns.of_folders else "content"
        return f"{side}.{quote(name)}"

    def _folder_names(self) -> list[str]:
        return [f.name for f in self._columns.schema.fields if f.name in self._columns.of_folders]

    def _facts(self, index: int, file: ListedFile) -> Iterator[str]:
        modified = f"make_timestamptz({file.modified_ns // 1000})"
        yield str(index)
        yield (
            f"{{'file_path': {literal(file.uri)}, 'file_name': {literal(file.name)}, "
            f"'file_size': {file.size_bytes}::BIGINT, 'file_block_start': 0::BIGINT, "
            f"'file_block_length': {file.size_bytes}::BIGINT, "
            f"'file_modification_time': {modified}}}"
        )
        yield literal(f',"_file_path":{json.dumps(file.uri)}}}')
        values = [*self._folder_values(file)]
        keeps = self._columns.rescued is not None
        yield self._rescued_of_folders(file, values) if keeps else "CAST(NULL AS VARCHAR)"
        yield from (_folder_value(column, text, fails=not keeps) for column, text in values)

    def _folder_values(self, file: ListedFile) -> Iterator[tuple[StructField, str | None]]:
        if not self._columns.of_folders:
            return
        values = {name.lower(): text for name, text in partition_values(file.uri).items()}
        for column in self._columns.schema.fields:
            if column.name in self._columns.of_folders:
                yield column, values.get(column.name.lower())

    def _rescued_of_folders(
        self, file: ListedFile, values: Iterable[tuple[StructField, str | None]]
    ) -> str:
        """SQL for the values of folders that have no column, or do not fit theirs; or NULL."""
        rescued = [literal(_member(name, text)) for name, text in self._new_folders(file).items()]
        rescued += [
            f"CASE WHEN {_folder_value(column, text, fails=False)} IS NULL "
            f"THEN {literal(_member(column.name, text))} END"
            for column, text in values
            if text is not None
        ]
        return f"nullif(concat_ws(',', {', '.join(rescued)}), '')" if rescued else "NULL::VARCHAR"

    def _fail(self, file: ListedFile, error: Exception) -> None:
        raise_if_out_of_room(error)
        if not [*self._unchanged([file])]:
            # Whoever wrote to it meanwhile is the cause.
            return
        self._add_failed(file, error)

    def _add_failed(self, file: ListedFile, error: Exception) -> None:
        self._found.failed[file.uri] = reason_of(error, file.uri)
        if is_damage(error):
            self._found.damaged.add(file.uri)


def _member(name: str, value: str | None) -> str:
    """A member of a JSON object. Of names that are not UTF-8, bytes are escaped."""
    text = f"{json.dumps(name, ensure_ascii=False)}:{json.dumps(value, ensure_ascii=False)}"
    return text.encode("utf-8", "backslashreplace").decode()


def reason_of(error: Exception, uri: str) -> str:
    """Why a file can't be read, in a line to stand beside its name."""
    import duckdb

    what = error.what if isinstance(error, MillpondError) else str(error)
    reason = what.removeprefix(f"{uri} can't be read: ").strip().partition("\n")[0]
    if isinstance(error, OSError) and error.strerror:
        # Its text names the file again.
        reason = error.strerror
    if isinstance(error, duckdb.OutOfMemoryException) or reason.startswith("Out of Memory Error"):
        return f"a row of it, or a part of its columns, needs more memory than there is ({reason})"
    return _KIND_OF_ERROR.sub("", reason)


def _blamed(
    error: Exception, contents: Sequence[tuple[ListedFile, LocalFile]]
) -> ListedFile | None:
    """The file that an error is about: the only one, or the one whose name is its first word."""
    if len(contents) == 1:
        return contents[0][0]
    what = error.what if isinstance(error, MillpondError) else ""
    first = what.partition(" ")[0]
    return next((file for file, _ in contents if file.uri == first), None)


def united(known: StructType, more: Iterable[StructField]) -> StructType:
    """Columns with others that they lack, by names in any case; fields of structs too."""
    from pyspark.sql.types import StructType

    from millpond.files.formats.merged_types import merge_structs

    waiting: dict[str, StructField] = {}
    for column in more:
        if column.name.lower() in waiting:
            # Another file has fields of the same column.
            known = merge_structs(known, StructType(list(waiting.values())), keep_types=True)
            waiting = {}
        waiting[column.name.lower()] = column
    return merge_structs(known, StructType(list(waiting.values())), keep_types=True)


def _folder_value(column: StructField, text: str | None, *, fails: bool) -> str:
    """SQL for what a folder says of a column.

    Args:
        fails: Whether it fails where that is no value of its type; else it is null then.
    """
    if text is None:
        return f"CAST(NULL AS {duckdb_type(column.dataType)})"
    value = cast_sql(literal(text), column.dataType)
    error = FileColumnTypeError.from_folder(
        f"{column.name}={text}", wanted=column.dataType.simpleString()
    )
    return f"coalesce({value}, error({literal(str(error))}))" if fails else value


def raise_if_out_of_room(error: BaseException) -> None:
    """Raise what is no fault of the file that was read, but of where its rows are written to."""
    if not is_out_of_room(error):
        return
    if isinstance(error, MillpondError) and error.__cause__ is not None:
        # It names the file, which is not to blame.
        raise_if_out_of_room(error.__cause__)
    raise error
