"""The JSON object of what did not fit: one part for each column that may have something."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millpond.delta.schema import literal

# Where the text of a record is kept that could not be read at all.
CORRUPT_RECORD = "_corrupt_record"


@dataclass(frozen=True)
class RescuedPart:
    """What may have to be kept of one column.

    Attributes:
        name: The column's name in the file.
        when: SQL of the condition that it has to be kept.
        json: SQL of its value as the text of a JSON value.
    """

    name: str
    when: str
    json: str


def rescued_sql(parts: Iterable[RescuedPart], *, members: Iterable[str] = ()) -> str:
    """SQL of the JSON object, or of NULL where nothing has to be kept.

    Args:
        members: SQL of further members as text, such as `"a":1,"b":2`; NULL for none.
    """
    texts = [
        f"CASE WHEN {part.when} THEN {literal(json_name(part.name) + ':')} || {part.json} END"
        for part in parts
    ]
    texts += members
    if not texts:
        return "CAST(NULL AS VARCHAR)"
    # concat_ws leaves NULLs out, and gives an empty text for nothing but NULLs.
    inner = f"nullif(concat_ws(',', {', '.join(texts)}), '')"
    return f"'{{' || {inner} || '}}'"


def json_name(name: str) -> str:
    """A name as JSON writes it.

    >>> json_name("price")
    '"price"'
    """
    import json

    return json.dumps(name, ensure_ascii=False)
