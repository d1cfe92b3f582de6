"""Checks that an expectation's constraint is one boolean expression over the columns of a row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.types import BooleanType, NullType, StructType
from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.definitions import Expectation
from millpond.engine.connect.expressions import named, text_expression
from millpond.engine.connect.failures import Subject, analysis_error
from millpond.engine.connect.messages import empty_relation
from millpond.engine.shapes.functions import GENERATORS, kind_of_function
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.parsing import parse_query
from millpond.engine.sqltext.source import QueryText
from millpond.errors import SourceLocation
from millpond.errors.engine import InvalidExpectationError
from millpond.sql.depth import too_deep
from millpond.sql.tokens import TokenKind, identifier_value, keywords

_NOWHERE = SourceLocation("<expectation>")
_READERS = keywords(
    "read_files read_kafka read_kinesis read_pubsub read_pulsar cloud_files http_request "
    "java_method reflect try_reflect"
)


def check_constraint(
    expectation: Expectation,
    schema: StructType,
    *,
    client: Any,
    python_functions: Collection[str],
) -> None:
    """Check one expectation.

    Args:
        schema: The columns of a row.
        python_functions: Names of functions that user code registered, in lower case.

    Raises:
        InvalidExpectationError: The constraint is not one boolean expression.
        UnresolvedColumnError: It names a column that is not there.
        UnresolvedRoutineError: It calls a function that is not there.
    """
    problem = problem_of_text(expectation.constraint, python_functions=python_functions)
    if problem is not None:
        raise InvalidExpectationError.of(
            expectation.name, problem, where=expectation.location, detail=expectation.constraint
        )
    found = _type_of(expectation, schema, client)
    if not isinstance(found, BooleanType | NullType):
        raise InvalidExpectationError.of(
            expectation.name,
            f"gives {found.simpleString()}, not a boolean",
            where=expectation.location,
            detail=expectation.constraint,
        )


def problem_of_text(expression: str, *, python_functions: Collection[str]) -> str | None:
    """What keeps a text from being one expression over a row, or `None`."""
    # A comment at its end must not swallow what follows.
    text = f"SELECT {expression}\n"
    found = outline(text)
    if len(found.tokens) < 2:
        return "is empty"
    broken = [token for token in found.tokens if token.kind is TokenKind.UNTERMINATED]
    if broken:
        return f"holds a {broken[0].text[:1]} that is never closed"
    if any(token.word == ";" for token in found.tokens):
        return "holds more than one statement"
    if too_deep(found.tokens) is not None:
        return "is nested too deeply"
    tree = parse_query(text)
    if isinstance(tree, ParseError):
        return "can't be read as an expression"
    return _problem_in_tree(tree) or _problem_in_calls(found, python_functions)


def _problem_in_tree(tree: exp.Query) -> str | None:
    if len(list(tree.find_all(exp.Query))) > 1:
        return "holds a subquery"
    extra = {key for key, value in tree.args.items() if value} - {"expressions"}
    expression = tree.expressions[0]
    if extra or len(tree.expressions) > 1 or isinstance(expression, exp.Tuple):
        return "is more than one expression"
    if isinstance(expression, exp.Alias):
        return "gives a name to its result"
    if tree.find(exp.Window) is not None:
        return "holds a window function"
    if isinstance(expression, exp.Star) or expression.is_star:
        return "holds *, which is no value"
    return None


def _problem_in_calls(tokens: Outline, python_functions: Collection[str]) -> str | None:
    for index in tokens.owner[0].calls:
        name = identifier_value(tokens.tokens[index]).lower()
        if name in python_functions:
            return f"calls the Python function {name}"
        if name in _READERS:
            return f"calls {name}, which reads from outside the row"
        if name in GENERATORS:
            return f"calls {name}, which gives several rows"
        if tokens.is_quantifier(index):
            return f"holds LIKE {name.upper()}, which the engine lacks; write the patterns with OR"
        if kind_of_function(name) is not None:
            return f"calls {name}, which looks at more than one row"
    return None


def _type_of(expectation: Expectation, schema: StructType, client: Any) -> Any:
    project = proto.Relation()
    project.project.input.CopyFrom(empty_relation(schema))
    project.project.expressions.append(named(text_expression(expectation.constraint), "met"))
    try:
        return client.schema(proto.Plan(root=project)).fields[0].dataType
    except PySparkException as error:
        subject = Subject(
            f"The constraint of the expectation {expectation.name!r}",
            where=expectation.location,
            texts=[QueryText(expectation.constraint, expectation.location or _NOWHERE)],
            known=schema.names,
        )
        raise analysis_error(error, subject) from error
