"""The columns of files: the user's, or inferred once and kept, the same for all batches."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta.shared_connection import cursor
from millpond.errors import MillpondError
from millpond.errors.file_reads import (
    FilesUnreadableError,
    KeptColumnsUnreadableError,
    TooManyColumnsError,
)
from millpond.errors.files import InvalidFileOptionError
from millpond.files.columns import FileColumns, NewColumn, check_count, storable
from millpond.files.contents import plain_content
from millpond.files.damage import is_damage
from millpond.files.formats import format_of
from millpond.files.formats.base import LocalFile
from millpond.files.listed_file import ListedFile
from millpond.files.options import Dialect, FileOptions
from millpond.files.partitions import partition_columns, partition_values
from millpond.files.reading import raise_if_out_of_room, reason_of, united
from millpond.storage import Store, scratch_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import DataType, StructType

# Inference looks at the first files, up to so many and so many bytes.
_SAMPLE_FILES = 1000
_SAMPLE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class KeptColumns:
    """What was found out about some files.

    Attributes:
        inside: Columns inside the files.
        of_folders: Columns of the names of folders.
        proposed: What files were found to have beyond those, which no query was checked with yet.
    """

    inside: StructType
    of_folders: StructType
    proposed: tuple[NewColumn, ...] = ()

    def with_columns(self, new: Iterable[NewColumn]) -> KeptColumns:
        """The columns with some that were proposed, and no proposal any more."""
        columns = list(new)
        inside = [column.field for column in columns if not column.of_folder]
        of_folders = [column.field for column in columns if column.of_folder]
        return KeptColumns(united(self.inside, inside), united(self.of_folders, of_folders))


_PROPOSING = threading.Lock()


class FileSchemas:
    """Inferred columns, one file for each way to read some files."""

    def __init__(self, folder: Path, store: Store | None) -> None:
        """Set up.

        Args:
            store: `None` to keep nothing.
        """
        self._folder = folder
        self._store = store

    def kept(self, options: FileOptions) -> KeptColumns | None:
        """What an earlier update found out.

        Raises:
            KeptColumnsUnreadableError: The file is torn.
        """
        from pyspark.sql.types import StructField, StructType

        path = self._path(options)
        try:
            value = json.loads(path.read_bytes())
            return KeptColumns(
                StructType.fromJson(value["inside"]),
                StructType.fromJson(value["of_folders"]),
                tuple(
                    NewColumn(StructField.fromJson(column), of_folder=of_folder)
                    for column, of_folder in value.get("proposed", [])
                ),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise KeptColumnsUnreadableError.from_file(path, reason=str(error)) from error

    def keep(self, options: FileOptions, columns: KeptColumns) -> None:
        """Keep what was found out for later updates."""
        if self._store is None:
            return
        value = {
            "paths": options.paths,
            "format": options.format,
            "inside": columns.inside.jsonValue(),
            "of_folders": columns.of_folders.jsonValue(),
            "proposed": [(new.field.jsonValue(), new.of_folder) for new in columns.proposed],
        }
        self._store.put(self._path(options), json.dumps(value, ensure_ascii=False).encode())

    def propose(self, options: FileOptions, new: Sequence[NewColumn]) -> None:
        """Keep columns that files have beyond what was found out, unless they are too many.

        The next update takes those that its queries can take. Flows side by side may find different
        ones in the same files.
        """
        with _PROPOSING:
            kept = self.kept(options)
            if kept is None:
                return
            proposed = tuple(dict.fromkeys((*kept.proposed, *new)))
            with suppress(TooManyColumnsError):
                check_count(kept.with_columns(proposed).inside)
                self.keep(options, replace(kept, proposed=proposed))

    def _path(self, options: FileOptions) -> Path:
        told_by = [
            options.paths,
            options.format,
            # Columns that the user gave are none that were found out.
            options.schema is not None,
            options.infer_types,
            options.partition_columns,
            sorted(options.format_options.items()),
        ]
        digest = hashlib.sha256(json.dumps(told_by).encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{digest[:32]}.json"


def infer(files: Sequence[ListedFile], options: FileOptions, *, root: Path) -> KeptColumns:
    """Find out the columns of files by looking at the first of them, as far as they can be read.

    Raises:
        MillpondError: None of them can be read, or they contradict each other.
    """
    inside = _inferred(files, options) if options.schema is None else options.schema
    return KeptColumns(inside, partition_columns(files, options, root=root))


def _inferred(files: Sequence[ListedFile], options: FileOptions) -> StructType:
    """The columns of the first files of which any can be read."""
    first_error: MillpondError | None = None
    for sample in _samples(files):
        with scratch_folder("infer") as folder, cursor() as connection:
            try:
                return _Inference(options, connection, folder).columns(sample)
            except MillpondError as error:
                first_error = first_error or error
    assert first_error is not None
    raise first_error


class _Inference:
    """Infers columns inside files. One that can't be read is left for the read to tell of."""

    def __init__(self, options: FileOptions, connection: DuckDBPyConnection, folder: Path) -> None:
        self._options = options
        self._connection = connection
        self._folder = folder

    def columns(self, files: Sequence[ListedFile]) -> StructType:
        import duckdb

        contents: list[LocalFile] = []
        error: Exception | None = None
        unreadable = ""
        for file in files:
            try:
                contents.append(plain_content(file, self._options, folder=self._folder))
            except (MillpondError, OSError) as caught:
                raise_if_out_of_room(caught)
                error, unreadable = error or caught, unreadable or file.uri
        if contents or error is None:
            try:
                return self._together(contents)
            except (MillpondError, duckdb.Error, OSError, RecursionError) as caught:
                raise_if_out_of_room(caught)
                error, unreadable = caught, contents[0].uri if contents else ""
                contents = self._readable(contents)
        if contents:
            return self._together(contents)
        assert error is not None
        if isinstance(error, MillpondError):
            error.where = error.where or self._options.location
            raise error
        raise FilesUnreadableError.from_files(
            " ".join(self._options.paths),
            reasons={unreadable: reason_of(error, unreadable)},
            where=self._options.location,
            is_passable=is_damage(error),
        ) from error

    def _readable(self, contents: Sequence[LocalFile]) -> list[LocalFile]:
        """Those of some files, which can't be read together, that can be read."""
        import duckdb

        if len(contents) < 2:
            return []
        half = len(contents) // 2
        readable: list[LocalFile] = []
        for part in (contents[:half], contents[half:]):
            try:
                self._together(part)
            except (MillpondError, duckdb.Error, OSError, RecursionError):
                readable += self._readable(part)
            else:
                readable += part
        return readable

    def _together(self, contents: Sequence[LocalFile]) -> StructType:
        found = format_of(self._options.format).infer(
            contents, self._options, connection=self._connection, folder=self._folder
        )
        columns = storable(found, self._options.dialect)
        check_count(columns, uris=[content.uri for content in contents])
        return columns


def file_columns(options: FileOptions, kept: KeptColumns) -> FileColumns:
    """The columns of a read: the user's, or the inferred ones with the user's hints."""
    from pyspark.sql.types import StringType, StructField, StructType

    folders = {field.name.lower(): field for field in kept.of_folders.fields}
    if options.schema is not None:
        schema = options.schema
        if options.dialect is Dialect.SPARK:
            # Spark has the columns of folders behind the others, whether they were given or not.
            given = {field.name.lower(): field for field in schema.fields}
            own = [f for f in schema.fields if f.name.lower() not in folders]
            schema = StructType([*own, *(given.get(name, f) for name, f in folders.items())])
        rescued = options.rescued_column
        if rescued is not None:
            names = {name.lower(): name for name in schema.names}
            if rescued.lower() not in names:
                # Who names a column for what does not fit wants it, whatever the schema says.
                schema = StructType([*schema.fields, StructField(rescued, StringType())])
            rescued = names.get(rescued.lower(), rescued)
        return FileColumns(
            schema,
            of_folders=frozenset(name for name in schema.names if name.lower() in folders),
            rescued=rescued,
        )
    fields = [f for f in kept.inside.fields if f.name.lower() not in folders]
    fields += kept.of_folders.fields
    for hint in (options.schema_hints or StructType([])).fields:
        fields = _hinted(fields, hint.name.split("."), hint.dataType)
    if options.rescued_column is not None:
        fields = [f for f in fields if f.name.lower() != options.rescued_column.lower()]
        fields.append(StructField(options.rescued_column, StringType()))
    return FileColumns(
        StructType(fields),
        of_folders=frozenset(f.name for f in fields if f.name.lower() in folders),
        rescued=options.rescued_column,
    )


def with_folders_of(
    files: Sequence[ListedFile], options: FileOptions, columns: FileColumns, *, root: Path
) -> FileColumns:
    """The columns for reading some files: folders may give columns of the user's that none gave.

    Where no file was there, or none in such a folder, when the columns were looked for, only these
    files can tell.
    """
    told = {name.lower() for file in files for name in partition_values(file.uri)}
    names = options.schema.names if options.schema is not None else ()
    if not any(name.lower() in told for name in names if name not in columns.of_folders):
        return columns
    found = {name.lower() for name in partition_columns(files, options, root=root).names}
    given = {name for name in names if name.lower() in found}
    return replace(columns, of_folders=columns.of_folders | given)


def check_readable(options: FileOptions, columns: FileColumns) -> None:
    """Raise unless files could be read so; looks at none.

    Raises:
        MillpondError: An option of the format is wrong, or a column is none that it can give.
    """
    with scratch_folder("check") as folder, cursor() as connection:
        format_of(options.format).select(
            [], options, columns.inside, connection=connection, folder=folder
        )


def _samples(files: Sequence[ListedFile]) -> Iterator[list[ListedFile]]:
    """The files in parts, each of which is enough to tell the columns if any of it can be read."""
    sample: list[ListedFile] = []
    size_bytes = 0
    for file in files:
        size_bytes += file.size_bytes
        if sample and (size_bytes > _SAMPLE_BYTES or len(sample) >= _SAMPLE_FILES):
            yield sample
            sample, size_bytes = [], file.size_bytes
        sample.append(file)
    yield sample


def _hinted(fields: Sequence[Any], path: Sequence[str], data_type: DataType) -> list[Any]:
    """The columns with another type for one of them, or with it at the end if there is none."""
    from pyspark.sql.types import NullType, StructField

    found = list(fields)
    for index, field in enumerate(found):
        if field.name.lower() == path[0].lower():
            inner = _hinted_inside(field.dataType, path[1:], data_type)
            found[index] = StructField(field.name, inner)
            return found
    return [*found, StructField(path[0], _hinted_inside(NullType(), path[1:], data_type))]


def _hinted_inside(outer: DataType, path: Sequence[str], data_type: DataType) -> DataType:
    """A type with another one at a place inside, named as in Spark: `element`, `key`, `value`.

    What is found to be neither a struct nor an array is one by its hint.

    Raises:
        InvalidFileOptionError: An array or a map has no such place.
    """
    from pyspark.sql.types import ArrayType, MapType, NullType, StructType

    if not path:
        return data_type
    step, rest = path[0].lower(), path[1:]
    if step == "element" and not isinstance(outer, StructType):
        element = outer.elementType if isinstance(outer, ArrayType) else NullType()
        return ArrayType(_hinted_inside(element, rest, data_type))
    if isinstance(outer, MapType) and step == "key":
        return MapType(_hinted_inside(outer.keyType, rest, data_type), outer.valueType)
    if isinstance(outer, MapType) and step == "value":
        return MapType(outer.keyType, _hinted_inside(outer.valueType, rest, data_type))
    if isinstance(outer, ArrayType | MapType):
        raise InvalidFileOptionError.from_hint(".".join(path), inside=outer.typeName())
    return StructType(
        _hinted(outer.fields if isinstance(outer, StructType) else [], path, data_type)
    )
