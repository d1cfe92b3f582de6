"""`CREATE STREAMING TABLE`: a table, and the flow that the statement gives it, if any."""

from __future__ import annotations

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Language, Pipeline
from millpond.errors.sql import FlowAndAsQueryError
from millpond.names import TableName
from millpond.sql.clauses import parse_table_clauses
from millpond.sql.columns import parse_specification
from millpond.sql.cursor import Cursor
from millpond.sql.flow import parse_inline_flow
from millpond.sql.identifiers import parse_table_name
from millpond.sql.query import parse_query
from millpond.sql.session import Session

_FLOW_WORDS = frozenset({"FLOW", "INSERT", "REPLACE", "AUTO"})


def parse_streaming_table(cursor: Cursor, session: Session, *, private: bool) -> Pipeline:
    """The statement from the table's name on."""
    location = cursor.where(cursor.token)
    name = parse_table_name(cursor, session, "name of the table")
    specification = parse_specification(cursor, name, types=True)
    clauses = parse_table_clauses(cursor)
    dataset = Dataset(
        name=name,
        kind=DatasetKind.STREAMING_TABLE,
        location=location,
        comment=clauses.comment,
        table_properties=clauses.properties,
        partition_cols=clauses.partition_cols,
        cluster_by=clauses.cluster_by,
        cluster_by_auto=clauses.cluster_by_auto,
        schema=specification.schema,
        expectations=tuple(specification.expectations.values()),
        private=private,
        path=clauses.path,
    )
    if cursor.at_end:
        return Pipeline(datasets=(dataset,))
    if cursor.at("FLOW"):
        flow = parse_inline_flow(cursor, session, name)
    elif cursor.accept("AS"):
        if cursor.at_any(_FLOW_WORDS):
            raise FlowAndAsQueryError.from_table(str(name), **cursor.place())
        flow = _append_flow(cursor, session, name)
    else:
        raise cursor.unexpected(
            *([] if specification.schema or clauses.order else ["("]), "a clause", "FLOW", "AS", ";"
        )
    return Pipeline(datasets=(dataset,), flows=(flow,))


def _append_flow(cursor: Cursor, session: Session, table: TableName) -> Flow:
    query = parse_query(cursor, session)
    return Flow(
        name=str(table),
        target=table,
        kind=FlowKind.APPEND,
        query=query,
        language=Language.SQL,
        location=query.location,
        spark_conf=session.flow_settings(),
    )
