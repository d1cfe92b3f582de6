"""Features of the Delta protocol that a table must list before a column may have a type.

Delta adds them to a new table by itself, never to one that is there. Of the types that a pipeline's
table can have, it asks so for one only: the others are in every version, or added as they come.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PREFIX = "delta.feature."
_TIMESTAMP_NTZ = {f"{_PREFIX}timestampNtz": "supported"}


def features_of_types(schema: StructType) -> Mapping[str, str]:
    """The properties that turn on what the types of columns need, also those inside columns."""
    from pyspark.sql.types import TimestampNTZType

    return _TIMESTAMP_NTZ if _holds(schema, TimestampNTZType) else {}


def is_listed(key: str, features: Collection[str]) -> bool:
    """Whether a property turns a feature on that the table lists: no table shows the property."""
    folded = key.lower()
    return folded.startswith(_PREFIX) and folded.removeprefix(_PREFIX) in {
        feature.lower() for feature in features
    }


def _holds(part: object, kind: type) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(part, StructType):
        return any(_holds(field.dataType, kind) for field in part.fields)
    if isinstance(part, ArrayType):
        return _holds(part.elementType, kind)
    if isinstance(part, MapType):
        return _holds(part.keyType, kind) or _holds(part.valueType, kind)
    return isinstance(part, kind)
