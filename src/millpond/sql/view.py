"""`CREATE VIEW` and `CREATE TEMPORARY VIEW`, and `CREATE LIVE VIEW` of older files."""

from __future__ import annotations

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Language, Pipeline
from millpond.errors.names import InvalidNameError
from millpond.errors.sql import ViewWithExpectationError
from millpond.sql.clauses import parse_view_clauses
from millpond.sql.columns import parse_specification
from millpond.sql.cursor import Cursor
from millpond.sql.identifiers import parse_table_name
from millpond.sql.query import parse_query
from millpond.sql.session import Session


def parse_view(cursor: Cursor, session: Session, *, temporary: bool) -> Pipeline:
    """The statement from the view's name on."""
    token = cursor.token
    location = cursor.where(token)
    name = parse_table_name(cursor, session, "name of the view")
    if temporary and (name.catalog, name.schema) != (session.catalog, session.schema):
        raise InvalidNameError(
            f"The temporary view {name} is named with a schema, but it lies in none.",
            hint=f"name it {name.table}: it can be read everywhere in the pipeline",
            **cursor.place(token),
        )
    specification = parse_specification(cursor, name, types=False)
    if not temporary and specification.first_expectation is not None:
        raise ViewWithExpectationError.from_view(
            str(name), **cursor.place(specification.first_expectation)
        )
    clauses = parse_view_clauses(cursor)
    if not cursor.accept("AS"):
        raise cursor.unexpected(
            *([] if specification.columns or clauses.order else ["("]),
            *("COMMENT", "TBLPROPERTIES", "AS"),
        )
    query = parse_query(cursor, session)
    dataset = Dataset(
        name=name,
        kind=DatasetKind.TEMPORARY_VIEW if temporary else DatasetKind.VIEW,
        location=location,
        comment=clauses.comment,
        table_properties=clauses.properties,
        schema=specification.schema,
        expectations=tuple(specification.expectations.values()),
    )
    flow = Flow(
        name=str(name),
        target=name,
        kind=FlowKind.VIEW,
        query=query,
        language=Language.SQL,
        location=query.location,
        spark_conf=session.flow_settings(),
    )
    return Pipeline(datasets=(dataset,), flows=(flow,))
