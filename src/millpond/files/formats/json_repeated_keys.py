"""Which JSON files have objects within their records that have a key twice.

DuckDB takes the first value of such a key, and Spark the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.delta.schema import quote
from millpond.files.formats.base import FILE_INDEX
from millpond.files.formats.json_found import ARRAY, MIXED, NULL, OBJECT, Found
from millpond.files.formats.json_sources import Source, records_sql, strict_sqls

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# DuckDB has room for all fields of a type with each record, also for those that it does not have.
_MAX_FIELDS = 500
# Whatever stands there fits. So it does with "NULL", but DuckDB passes over the fields of that type
# in a STRUCT that has others, however often they are there.
_ANYTHING = "JSON"


def repeating_files(
    sources: Sequence[Source], found: Found, connection: DuckDBPyConnection
) -> set[int]:
    """The places of the files with such objects.

    Args:
        found: What all the records hold. They have no key twice themselves.
    """
    import duckdb

    columns = _columns(found)
    if columns is None:
        return _looked_through(sources, connection)
    try:
        for sql in strict_sqls(sources, columns) if columns else ():
            counts = ", ".join(f"count({quote(name)})" for name in columns)
            connection.execute(f"SELECT {counts} FROM ({sql})")
    except duckdb.Error:
        # An error may have other causes than a repeated key, so look at the keys themselves.
        return _looked_through(sources, connection)
    return set()


def _looked_through(sources: Sequence[Source], connection: DuckDBPyConnection) -> set[int]:
    """The places of the files with such objects, by the keys of all objects.

    A file for which there isn't the memory is taken for one.
    """
    import duckdb

    try:
        rows = connection.execute(
            f"SELECT DISTINCT {quote(FILE_INDEX)} FROM ({records_sql(sources)}) "
            "WHERE len(list_filter(json_keys(json, '$..*'), "
            "lambda __keys: list_unique(__keys) < len(__keys))) > 0"
        ).fetchall()
    except duckdb.OutOfMemoryException:
        # It needs much for long records; writing a file anew does not, and keeps what counts.
        if len(sources) == 1:
            return {0}
        each = (_looked_through([source], connection) for source in sources)
        return {place for place, found in enumerate(each) if found}
    return {index for (index,) in rows}


def _columns(found: Found) -> dict[str, str] | None:
    """The types of the columns that hold objects; the objects are STRUCTs of `_ANYTHING`.

    `None` where there are objects of which no one type tells the keys.
    """
    if found.has_more or sum(map(_count_of_fields, found.fields.values())) > _MAX_FIELDS:
        return None
    columns: dict[str, str] = {}
    for key, inner in found.fields.items():
        told = _type(inner)
        if told is None:
            return None
        if told != _ANYTHING:
            columns[key] = told
    return columns


def _type(found: Found) -> str | None:
    if not _has_objects(found):
        return _ANYTHING
    kinds = found.kinds - {NULL}
    if kinds == {ARRAY} and found.items is not None:
        told = _type(found.items)
        return told and f"{told}[]"
    if kinds != {OBJECT} or found.has_more:
        return None
    types = {key: _type(inner) for key, inner in _fields(found).items()}
    if None in types.values():
        return None
    fields = [f"{quote(key)} {told}" for key, told in types.items()]
    return f"STRUCT({', '.join(fields)})" if fields else _ANYTHING


def _has_objects(found: Found) -> bool:
    if found.kinds & {OBJECT, MIXED}:
        return True
    return found.items is not None and _has_objects(found.items)


def _fields(found: Found) -> dict[str, Found]:
    """Those of objects, without the empty one with nulls that stands for an object without keys.

    So nulls under a real empty key that is there twice are not told; nothing is lost by that.
    """
    return {key: inner for key, inner in found.fields.items() if key or inner.kinds - {NULL}}


def _count_of_fields(found: Found) -> int:
    items = _count_of_fields(found.items) if found.items is not None else 0
    return len(found.fields) + items + sum(map(_count_of_fields, found.fields.values()))
