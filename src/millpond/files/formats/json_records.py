"""The records of JSON files: how DuckDB reads them, and what keys and values they hold."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta.schema import literal, quote
from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.base import FILE_INDEX, LocalFile
from millpond.files.formats.json_found import Found
from millpond.files.formats.json_lenient import MAX_DEPTH, depth_of
from millpond.files.formats.json_options import JsonOptions
from millpond.files.formats.json_repeated_keys import repeating_files
from millpond.files.formats.json_rewriting import (
    CORRUPT_KEY,
    OWN_KEYS,
    REST_KEY,
    Place,
    Rewriting,
)
from millpond.files.formats.json_sources import Source, records_sql, source_of
from millpond.files.options import ParseMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Which option lineSep leaves lines as DuckDB takes them.
_LINE_ENDS = frozenset({None, "\n", "\r\n"})
_EMPTY_OBJECT = '"JSON"'
# DuckDB does not tell an object without keys from values of several kinds, so it gets one: all of
# a record, of which texts are passed over as a whole, up to such an object or to the end.
_KEYLESS = r'((?:"(?:[^"\\]|\\.)*"|[^"])*?)(?:\{\s*\}|$)'
_KEYED = '{"":null}'
_REPLACED = rf"\1{_KEYED}"
_FETCHED_ROWS = 1000
# Only such numbers may be too large for a BIGINT or a DOUBLE, or none as JSON has them.
_NOT_FINITE = r"[:,\[]\s*-?(?i:nan|inf)"
_EXTREME = rf"[0-9]{{19}}|[0-9][eE]\+?[0-9]{{3}}|{_NOT_FINITE}"
# DuckDB writes numbers in its own way, which is another one for such as these.
_AWKWARD = r"\.[0-9]+0[^0-9.]|[0-9][eE][0-9+-]|[0-9.]{16}|[^0-9]0\.0000|-0[^.]"


@dataclass
class Records:
    """The records of some files.

    Attributes:
        sources: The files, in order.
        found: What all of them hold.
        has_extreme_numbers: Whether some may be beyond what DuckDB's types hold.
        has_rest: Whether some have values that do not count, under `REST_KEY`.
        has_corrupt: Whether some could not be read; their texts are under `CORRUPT_KEY`.
        words: The places where numbers were that are none, or infinite; they are texts now.
    """

    sources: list[Source]
    found: Found = field(default_factory=Found)
    has_extreme_numbers: bool = False
    has_rest: bool = False
    has_corrupt: bool = False
    words: frozenset[Place] = frozenset()

    def sql(self) -> str:
        """A SELECT of the records as `json`, and of `FILE_INDEX`."""
        return records_sql(self.sources)

    def has_awkward_numbers(self, connection: DuckDBPyConnection) -> bool:
        """Whether DuckDB may write some numbers otherwise than they are written."""
        (found,) = connection.execute(
            f"SELECT bool_or(regexp_matches(json, {literal(_AWKWARD)})) FROM ({self.sql()})"
        ).fetchall()[0]
        return bool(found)


def _structure_sql(record: str) -> str:
    """What a record holds, as text: kinds of values, and keys of objects."""
    structure = f"CAST(json_structure({record}) AS VARCHAR)"
    keyed = f"regexp_replace({record}, {literal(_KEYLESS)}, {literal(_REPLACED)}, 'g')"
    # The end of the record matched, too.
    keyed = f"CAST(json_structure(left({keyed}, -{len(_KEYED)})) AS VARCHAR)"
    return (
        f"CASE WHEN {structure} <> {literal(_EMPTY_OBJECT)} "
        f"AND contains({structure}, {literal(_EMPTY_OBJECT)}) THEN {keyed} ELSE {structure} END"
    )


def find_records(
    files: Sequence[LocalFile],
    options: JsonOptions,
    mode: ParseMode,
    *,
    connection: DuckDBPyConnection,
    folder: Path,
    keeps_text: bool = False,
    has_own_keys: bool = False,
) -> Records:
    """Look through all records of some files; write files anew whose records need it.

    Args:
        keeps_text: Whether the texts of records are needed as they are in the files, unless they
            are long.
        has_own_keys: Whether the files were written by millpond, and `OWN_KEYS` are its own.

    Raises:
        FileUnreadableError: A file can't be read.
        MalformedRecordError: A record can't be read, and the mode is FAILFAST.
    """
    sources = [source_of(file, options) for file in files]
    survey = _Survey(connection, has_own_keys=has_own_keys)
    if options.line_separator in _LINE_ENDS:
        unfit = survey.unfit(sources)
    else:
        unfit = set(range(len(files)))
    rewriting = Rewriting(options, mode, keeps_text, has_own_keys)
    if unfit:
        for index in sorted(unfit):
            target = folder / f"{uuid.uuid4().hex}.json"
            rewriting.write(files[index], target)
            sources[index] = Source(replace(files[index], path=target))
        survey = _Survey(connection, has_own_keys=True)
        survey.all(sources)
    return Records(
        sources,
        survey.found,
        has_extreme_numbers=survey.has_extreme_numbers,
        has_rest=survey.has_rest,
        has_corrupt=survey.has_corrupt,
        words=frozenset(rewriting.words),
    )


class _Survey:
    """What the records of files hold, by one query for all of them where that can be."""

    def __init__(self, connection: DuckDBPyConnection, *, has_own_keys: bool) -> None:
        self._connection = connection
        self._has_own_keys = has_own_keys
        self.found = Found()
        self.has_extreme_numbers = False
        self.has_rest = False
        self.has_corrupt = False

    def unfit(self, sources: Sequence[Source]) -> set[int]:
        """Take in what files hold; returns those that DuckDB does not read as Spark does."""
        unfit = self._misread(sources)
        fit = [index for index in range(len(sources)) if index not in unfit]
        # Of files that millpond wrote itself all keys are known to be there once.
        if fit and not self._has_own_keys:
            repeating = repeating_files(
                [sources[index] for index in fit], self.found, self._connection
            )
            unfit |= {fit[index] for index in repeating}
        return unfit

    def _misread(self, sources: Sequence[Source]) -> set[int]:
        import duckdb

        unfit = {index for index, source in enumerate(sources) if source.is_torn}
        whole = [index for index in range(len(sources)) if index not in unfit]
        try:
            return unfit | self._look(sources, whole)
        except duckdb.Error:
            pass
        for index in whole:
            try:
                unfit |= self._look(sources, [index])
            except duckdb.Error:
                unfit.add(index)
        return unfit

    def all(self, sources: Sequence[Source]) -> None:
        """Take in what files hold.

        Raises:
            FileUnreadableError: One of them can't be read.
        """
        import duckdb

        try:
            self._look(sources, range(len(sources)))
        except duckdb.Error:
            for index, source in enumerate(sources):
                try:
                    self._look(sources, [index])
                except duckdb.Error as error:
                    raise FileUnreadableError.from_file(
                        source.file.uri, reason=str(error)
                    ) from error

    def _look(self, sources: Sequence[Source], indexes: Sequence[int]) -> set[int]:
        if not indexes:
            return set()
        file = quote(FILE_INDEX)
        has_extreme = False
        cursor = self._connection.execute(
            f"SELECT {file}, structure, max(keys), bool_or(extreme) FROM ("
            f"SELECT {file}, {_structure_sql('json')} AS structure, "
            "len(json_keys(json)) AS keys, "
            f"regexp_matches(json, {literal(_EXTREME)}) AS extreme "
            f"FROM ({records_sql([sources[index] for index in indexes])})) GROUP BY ALL"
        )
        unfit: set[int] = set()
        while rows := cursor.fetchmany(_FETCHED_ROWS):
            for index, structure, keys, extreme in rows:
                has_extreme |= bool(extreme)
                if not self._add(structure, keys):
                    unfit.add(indexes[index])
        if has_extreme:
            self.has_extreme_numbers = True
            # DuckDB takes such words for numbers, but has no JSON for them.
            rows = self._connection.execute(
                f"SELECT DISTINCT {file} FROM "
                f"({records_sql([sources[index] for index in indexes])}) "
                f"WHERE regexp_matches(json, {literal(_NOT_FINITE)})"
            ).fetchall()
            unfit |= {indexes[index] for (index,) in rows}
        return unfit

    def _add(self, structure: str | None, keys: int) -> bool:
        """Take in what some records hold; whether DuckDB reads them as Spark does."""
        parsed = _parsed(structure)
        if parsed is None or keys > len(parsed):
            return False
        own = OWN_KEYS & parsed.keys()
        held = {key: inner for key, inner in parsed.items() if key not in own}
        if (own and not self._has_own_keys) or depth_of(held) > MAX_DEPTH:
            return False
        self.has_rest |= REST_KEY in own
        self.has_corrupt |= CORRUPT_KEY in own
        self.found.add(held)
        return True


def _parsed(structure: str | None) -> dict[str, Any] | None:
    """The structure of an object; `None` for that of another value, or of none."""
    if structure is None:
        return None
    if structure == _EMPTY_OBJECT:
        return {}
    try:
        parsed = json.loads(structure)
    except RecursionError:
        return None
    return parsed if isinstance(parsed, dict) else None
