"""Reads the options of a read of files as the user wrote them into `FileOptions`.

Done when the pipeline is read, before any file is. What a format's own options may be
is for the format to say; their names are checked here.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.files import (
    FileFormatUnknownError,
    FilesPathMissingError,
    FilesSchemaMissingError,
    InvalidFileOptionError,
    UnknownFileOptionError,
    UnsupportedFileOptionError,
)
from millpond.files import known_options as known
from millpond.files.compressions import ENDINGS_OF_COMPRESSIONS
from millpond.files.globs import is_glob
from millpond.files.listing import list_files
from millpond.files.locations import Location, locate
from millpond.files.option_values import OptionValues
from millpond.files.options import (
    DEFAULT_MAX_FILES,
    DEFAULT_RESCUED_COLUMN,
    UNLIMITED_FILES,
    CleanSource,
    Dialect,
    Discovery,
    EvolutionMode,
    FileOptions,
    ParseMode,
)
from millpond.files.schema_hints import quoted_names

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PREFIX = "cloudfiles."
# Formats whose columns are the same for every file.
_FIXED_COLUMNS = frozenset({"text", "binaryfile"})
_THIRTY_DAYS_S = 30 * 24 * 3600.0


class _SparkClean(Enum):
    OFF = "off"
    DELETE = "delete"
    ARCHIVE = "archive"


def parse_options(
    *,
    format: str,  # noqa: A002 - what users call it
    paths: Iterable[str],
    options: Mapping[str, str],
    columns: str | None,
    streaming: bool,
    parse_schema: Callable[[str], StructType],
    where: SourceLocation | None = None,
    infers_streams: bool = False,
    root: Path | None = None,
    written: Mapping[str, str] | None = None,
) -> FileOptions:
    """Read what a read of files asks for.

    Args:
        format: `cloudfiles`, `read_files`, or the format of the files.
        options: By name in lower case, as the reader was given them.
        columns: The user's columns, as DDL or JSON.
        parse_schema: Reads such text.
        infers_streams: Whether `spark.sql.streaming.schemaInference` is set.
        root: What relative paths start from. Given it, `read_files` may leave the format out,
            which is then told by the endings of the files that there are.
        written: By names in lower case, those that the user wrote, for messages.

    Raises:
        MillpondError: There is no such option, or it has a value that it can't have.
    """
    dialect = {"cloudfiles": Dialect.CLOUD_FILES, "read_files": Dialect.READ_FILES}.get(
        format.lower(), Dialect.SPARK
    )
    given = _without_prefix(options) if dialect is not Dialect.SPARK else dict(options)
    where_to_look = tuple(paths) or (given.get("path", ""),)
    if not all(path.strip() for path in where_to_look):
        raise FilesPathMissingError.from_reader(_reader(dialect, format), where=where)
    places = [locate(path, root=root or Path("/"), where=where) for path in where_to_look]
    name = format if dialect is Dialect.SPARK else given.get("format", "").strip()
    if not name and dialect is Dialect.READ_FILES:
        name = _told_format(given, where_to_look, root=root, where=where)
    names_as_written = _WrittenNames(options, written or {})
    if not name:
        # One that is misspelt is what is wrong then.
        any_format = OptionValues(given, _spellings(dialect, ""), where)
        _check_names(any_format, dialect, "", names_as_written)
    file_format = _known_format(name, dialect, where=where)
    values = OptionValues(given, _spellings(dialect, file_format), where)
    _check_names(values, dialect, file_format, names_as_written)
    text = columns or (given.get("schema") if dialect is Dialect.READ_FILES else None)
    request = _Request(
        format=file_format,
        dialect=dialect,
        values=values,
        streaming=streaming,
        schema=_parsed(text, parse_schema, where=where),
    )
    hints = _parsed(quoted_names(values.text("schemaHints") or ""), parse_schema, where=where)
    if streaming and dialect is Dialect.SPARK and not infers_streams:
        request.check_schema_of_stream()
    max_files = DEFAULT_MAX_FILES if dialect is not Dialect.SPARK else UNLIMITED_FILES
    clean, retention_s, move_to = request.clean_source(places)
    return FileOptions(
        format=file_format,
        paths=where_to_look,
        dialect=dialect,
        streaming=streaming,
        schema=request.schema,
        schema_hints=hints,
        infer_types=request.infers_types(),
        evolution=request.evolution(),
        rescued_column=request.rescued_column(),
        partition_columns=request.partition_columns(),
        discovery=request.discovery(),
        allow_overwrites=values.boolean("allowOverwrites", default=False),
        include_existing=values.boolean("includeExistingFiles", default=True),
        ignore_missing=values.boolean("ignoreMissingFiles", default=False),
        ignore_corrupt=values.boolean("ignoreCorruptFiles", default=False),
        max_files=values.positive("maxFilesPerTrigger") or max_files,
        max_bytes=values.size("maxBytesPerTrigger"),
        clean_source=clean,
        clean_source_retention_s=retention_s,
        clean_source_move_to=move_to,
        mode=values.choice("mode", ParseMode, default=ParseMode.PERMISSIVE),
        format_options=request.format_options(),
        store_options={
            name: text for name, text in given.items() if name.startswith(known.STORE_PREFIX)
        },
        location=where,
    )


# Ways to write names of hosts, and escapes; Python has them among its encodings of text.
_OF_NAMES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})


@dataclass(frozen=True)
class _Request:
    """The parts of the answer that depend on several options."""

    format: str
    dialect: Dialect
    values: OptionValues
    streaming: bool
    schema: StructType | None

    @property
    def is_spark(self) -> bool:
        return self.dialect is Dialect.SPARK

    def check_schema_of_stream(self) -> None:
        if self.schema is None and self.format not in _FIXED_COLUMNS:
            raise FilesSchemaMissingError.from_format(self.format, where=self.values.where)

    def infers_types(self) -> bool:
        if self.is_spark:
            # Spark takes the columns of CSV for strings, unless told, and no other format's.
            return self.values.boolean("inferSchema", default=self.format != "csv")
        by_reader = self.dialect is Dialect.READ_FILES
        by_format = self.values.boolean("inferSchema", default=by_reader)
        return self.values.boolean("inferColumnTypes", default=by_format)

    def evolution(self) -> EvolutionMode:
        default = EvolutionMode.ADD_NEW_COLUMNS if self.schema is None else EvolutionMode.NONE
        mode = self.values.choice("schemaEvolutionMode", EvolutionMode, default=default)
        if mode is EvolutionMode.ADD_NEW_COLUMNS and self.schema is not None:
            raise InvalidFileOptionError.from_evolution_with_schema(
                self.values.spelling("schemaEvolutionMode"),
                hints=self.values.spelling("schemaHints"),
                where=self.values.where,
            )
        if self.is_spark or not self.streaming or self.format in _FIXED_COLUMNS:
            return EvolutionMode.NONE
        return mode

    def rescued_column(self) -> str | None:
        given = self.values.text("rescuedDataColumn")
        if given is not None:
            return given.strip() or None
        if self.is_spark or self.format in _FIXED_COLUMNS:
            return None
        mode = (self.values.text("schemaEvolutionMode") or "").strip().lower()
        if self.schema is not None and mode != EvolutionMode.RESCUE.value:
            names = {name.lower(): name for name in self.schema.names}
            return names.get(DEFAULT_RESCUED_COLUMN)
        # Auto Loader's `none`, said aloud, keeps nothing of what has no column.
        return None if mode == EvolutionMode.NONE.value else DEFAULT_RESCUED_COLUMN

    def partition_columns(self) -> tuple[str, ...] | None:
        if self.is_spark:
            # Spark looks for no partitions where it takes every folder.
            return () if self.values.boolean("recursiveFileLookup", default=False) else None
        return self.values.names("partitionColumns")

    def discovery(self) -> Discovery:
        values = self.values
        zone = values.zone("timeZone")
        pattern = values.text("pathGlobFilter") or values.text("fileNamePattern")
        strict = self.is_spark or values.boolean(
            "useStrictGlobber", default=self.dialect is Dialect.READ_FILES
        )
        return Discovery(
            recursive=values.boolean("recursiveFileLookup", default=not self.is_spark),
            path_glob=pattern or None,
            strict_globber=strict,
            base_path=values.text("basePath"),
            modified_after_ns=values.time_ns("modifiedAfter", zone=zone),
            modified_before_ns=values.time_ns("modifiedBefore", zone=zone),
            max_file_age_s=values.seconds("maxFileAge"),
        )

    def clean_source(self, places: Sequence[Location]) -> tuple[CleanSource, float, str | None]:
        if self.is_spark:
            chosen = self.values.choice("cleanSource", _SparkClean, default=_SparkClean.OFF)
            clean = CleanSource.MOVE if chosen is _SparkClean.ARCHIVE else CleanSource[chosen.name]
            option, retention_s = "sourceArchiveDir", 0.0
        else:
            clean = self.values.choice("cleanSource", CleanSource, default=CleanSource.OFF)
            option = "cleanSource.moveDestination"
            given_s = self.values.seconds("cleanSource.retentionDuration")
            retention_s = _THIRTY_DAYS_S if given_s is None else given_s
        if clean is not CleanSource.MOVE:
            return clean, retention_s, None
        move_to = (self.values.text(option) or "").strip()
        if not move_to:
            raise InvalidFileOptionError.from_missing(
                self.values.spelling(option),
                needed_by=self.values.spelling("cleanSource"),
                where=self.values.where,
            )
        if not move_to.startswith("/") and ":/" not in move_to:
            raise self.values.invalid(option, must_be="an absolute path or a URI")
        target = locate(move_to, root=Path("/"), where=self.values.where)
        for place in places:
            # What lies where a pattern happens to reach is left out of the listing.
            if not is_glob(place.path) and target.is_in(place):
                raise InvalidFileOptionError.from_destination_inside(
                    self.values.spelling(option),
                    move_to,
                    source=place.shown,
                    where=self.values.where,
                )
        return clean, retention_s, move_to

    def format_options(self) -> dict[str, str]:
        for name in ("encoding", "charset"):
            if self.format in known.TEXT_FORMATS and not _is_encoding(self.values.text(name)):
                raise self.values.invalid(
                    name, must_be="an encoding that Python knows, such as 'utf-8' or 'cp1252'"
                )
        names = (*known.OF_FORMAT[self.format], "readerCaseSensitive", "columnNameOfCorruptRecord")
        wanted = {name.lower() for name in (*names, "timeZone")}
        return {name: text for name, text in self.values.given.items() if name in wanted}


def _is_encoding(name: str | None) -> bool:
    """Whether it names an encoding of text, or none at all."""
    try:
        "".encode(name or "utf-8")
        found = codecs.lookup(name or "utf-8").name
    except (LookupError, UnicodeError, ValueError):  # a NUL in the name
        return False
    return found not in _OF_NAMES


def _parsed(
    text: str | None,
    parse_schema: Callable[[str], StructType],
    *,
    where: SourceLocation | None,
) -> StructType | None:
    if text is None or not text.strip():
        return None
    try:
        return parse_schema(text)
    except MillpondError as error:
        error.where = error.where or where
        raise


@dataclass(frozen=True)
class _WrittenNames:
    """The names of options as the user wrote them.

    Attributes:
        options: By name in lower case, with its prefix.
        written: By the same, what the user wrote, as far as that is known.
    """

    options: Mapping[str, str]
    written: Mapping[str, str]

    def of(self, name: str) -> str:
        """How the user wrote an option, given in lower case and with or without its prefix."""
        prefixed = PREFIX + name.removeprefix(PREFIX)
        whole = prefixed if prefixed in self.options else name
        shown = f"cloudFiles.{name.removeprefix(PREFIX)}" if whole == prefixed else name
        return self.written.get(whole, shown)


def _without_prefix(options: Mapping[str, str]) -> dict[str, str]:
    plain = {name: text for name, text in options.items() if not name.startswith(PREFIX)}
    prefixed = {
        name.removeprefix(PREFIX): text for name, text in options.items() if name.startswith(PREFIX)
    }
    return plain | prefixed


def _told_format(
    given: Mapping[str, str],
    paths: tuple[str, ...],
    *,
    root: Path | None,
    where: SourceLocation | None,
) -> str:
    """The format that the paths tell, or the files there, or nothing."""
    told = format_of_names(paths)
    if told is not None or root is None:
        return told or ""
    values = OptionValues(given, {}, where)
    looked_for = _Request("text", Dialect.READ_FILES, values, streaming=True, schema=None)
    options = FileOptions(
        format="text",
        paths=paths,
        streaming=True,
        discovery=looked_for.discovery(),
        location=where,
    )
    return format_of_names(file.name for file in list_files(options, root=root, unlisted={})) or ""


def _known_format(name: str, dialect: Dialect, *, where: SourceLocation | None) -> str:
    option = {Dialect.CLOUD_FILES: "cloudFiles.format", Dialect.READ_FILES: "format"}.get(
        dialect, "format(...)"
    )
    if not name:
        raise FileFormatUnknownError.from_missing(option=option, known=known.FORMATS, where=where)
    lower = known.FORMAT_ALIASES.get(name.lower(), name.lower())
    if lower not in known.FORMATS:
        raise FileFormatUnknownError.from_format(
            name, option=option, known=known.FORMATS, where=where
        )
    return lower


def format_of_names(names: Iterable[str]) -> str | None:
    """The format that the endings of files tell, if all tell the same.

    >>> format_of_names(["/data/a.csv.gz", "/data/b.csv"])
    'csv'
    """
    found = {_format_of_name(name) for name in names}
    return found.pop() if len(found) == 1 else None


def _format_of_name(name: str) -> str | None:
    endings = name.rsplit("/", 1)[-1].lower().split(".")[1:]
    if endings and endings[-1] in ENDINGS_OF_COMPRESSIONS:
        endings.pop()
    return known.ENDINGS.get(endings[-1]) if endings else None


def _names(dialect: Dialect, file_format: str) -> tuple[str, ...]:
    common = (*known.GENERIC, *known.OF_FORMAT.get(file_format, ()), *known.OF_STORE)
    if dialect is Dialect.SPARK:
        return (*common, *known.SPARK_ONLY, "singleVariantColumn")
    own = (*common, *known.AUTO_LOADER_GENERIC, *known.AUTO_LOADER)
    return (*own, "schema") if dialect is Dialect.READ_FILES else own


def _spellings(dialect: Dialect, file_format: str) -> dict[str, str]:
    prefixed = known.AUTO_LOADER if dialect is Dialect.CLOUD_FILES else ()
    spelt = {name.lower(): name for name in _names(dialect, file_format)}
    return spelt | {name.lower(): f"cloudFiles.{name}" for name in prefixed}


def _check_names(
    values: OptionValues, dialect: Dialect, file_format: str, written: _WrittenNames
) -> None:
    if dialect is not Dialect.SPARK and not values.boolean("validateOptions", default=True):
        return
    of_auto_loader = {name.lower(): name for name in known.AUTO_LOADER}
    refused = {name.lower(): (name, instead) for name, instead in known.REFUSED.items()}
    # What another format would mind is no slip of the pen, and Spark's readers pass over it.
    of_formats = {name.lower() for names in known.OF_FORMAT.values() for name in names}
    unknown: list[str] = []
    for name, text in values.given.items():
        # Tags of a queue that is not used.
        if name.startswith("resourcetag.") and dialect is not Dialect.SPARK:
            continue
        if name in refused:
            spelt, instead = refused[name]
            raise UnsupportedFileOptionError.from_option(
                values.spelt.get(name, spelt), instead=instead, where=values.where
            )
        if name not in values.spelt and name not in of_formats:
            plain = name.removeprefix(PREFIX)
            shown = written.of(name)
            if dialect is Dialect.SPARK and plain in of_auto_loader:
                raise UnsupportedFileOptionError.from_option(
                    shown,
                    instead=f'read with format("cloudFiles") and its option '
                    f"cloudFiles.{of_auto_loader[plain]}",
                    where=values.where,
                )
            unknown.append(shown)
            continue
        _check_order(name, text, values)
    if unknown:
        raise UnknownFileOptionError.from_options(
            unknown,
            reader=_reader(dialect, file_format),
            known=values.spelt.values(),
            where=values.where,
        )


def _check_order(name: str, text: str, values: OptionValues) -> None:
    """Refuse the two options of Spark's that change which files count as seen."""
    if text.strip().lower() != "true":
        return
    if name == "latestfirst":
        raise UnsupportedFileOptionError.from_option(
            "latestFirst",
            instead="leave it out: files are read in the order of their modification times",
            where=values.where,
        )
    if name == "filenameonly":
        raise UnsupportedFileOptionError.from_option(
            "fileNameOnly",
            instead="leave it out: files of one name in several folders are several files",
            where=values.where,
        )


def _reader(dialect: Dialect, file_format: str) -> str:
    if dialect is Dialect.SPARK:
        return f"{file_format} files"
    return f"{dialect.value} ({file_format})" if file_format in known.FORMATS else dialect.value
