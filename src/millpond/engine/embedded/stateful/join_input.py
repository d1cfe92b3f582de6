"""One input of a join of streams, as the engine sees it: what it has columns for."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.types import StructField, StructType

from millpond.engine.embedded.stateful.event_time import is_event_time, late_by


class JoinInput:
    """A relation of which only the columns matter.

    Args:
        client: A client of the engine.
        relation: Its names, qualifiers and plan numbers are those that the condition uses.
    """

    def __init__(self, client: Any, relation: Any) -> None:
        self.client = client
        self.relation = relation
        self._columns: dict[bytes, StructField | None] = {}
        self.schema: StructType = client.schema(proto.Plan(root=relation))
        index = late_by(self.schema)
        # The name, in lower case, of the column by which late rows are told.
        self.event_time = None if index is None else self.schema.names[index].lower()

    def column(self, expression: Any) -> StructField | None:
        """The column that an expression over this input alone is, or `None` where it is none."""
        key = expression.SerializeToString(deterministic=True)
        if key not in self._columns:
            self._columns[key] = self._resolve(expression)
        return self._columns[key]

    def is_event_time(self, field: StructField) -> bool:
        """Whether a column of this input is that by which late rows are told, as it is."""
        return is_event_time(field) and field.name.lower() == self.event_time

    def _resolve(self, expression: Any) -> StructField | None:
        project = proto.Relation()
        project.project.input.CopyFrom(self.relation)
        project.project.expressions.append(expression)
        try:
            schema: StructType = self.client.schema(proto.Plan(root=project))
        except PySparkException:
            return None
        return schema.fields[0] if len(schema.fields) == 1 else None
