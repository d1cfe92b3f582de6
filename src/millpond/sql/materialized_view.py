"""`CREATE MATERIALIZED VIEW`, and `CREATE LIVE TABLE` of older files."""

from __future__ import annotations

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Language, Pipeline
from millpond.sql.clauses import parse_materialized_view_clauses
from millpond.sql.columns import parse_specification
from millpond.sql.cursor import Cursor
from millpond.sql.identifiers import parse_table_name
from millpond.sql.query import parse_query
from millpond.sql.session import Session


def parse_materialized_view(cursor: Cursor, session: Session, *, private: bool) -> Pipeline:
    """The statement from the view's name on."""
    location = cursor.where(cursor.token)
    name = parse_table_name(cursor, session, "name of the materialized view")
    specification = parse_specification(cursor, name, types=False)
    clauses = parse_materialized_view_clauses(cursor)
    if cursor.at("FLOW"):
        raise cursor.unexpected(
            "AS", hint="a materialized view has a query, not a flow; a streaming table has flows"
        )
    if not cursor.accept("AS"):
        raise cursor.unexpected("a clause", "AS")
    query = parse_query(cursor, session)
    dataset = Dataset(
        name=name,
        kind=DatasetKind.MATERIALIZED_VIEW,
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
    flow = Flow(
        name=str(name),
        target=name,
        kind=FlowKind.MATERIALIZED_VIEW,
        query=query,
        language=Language.SQL,
        location=query.location,
        spark_conf=session.flow_settings(),
    )
    return Pipeline(datasets=(dataset,), flows=(flow,))
