"""Whatever a query can be made of was decided on: a new version of a library adds nothing unseen."""

import pytest
from pyspark.sql.connect import proto
from sqlglot import exp

from millpond.engine.connect.operators import DECIDED, DECIDED_EXPRESSIONS, KINDS
from millpond.engine.shapes import OperatorKind
from millpond.engine.shapes.check import RULES


def oneof(message, name):
    return {field.name for field in message.DESCRIPTOR.oneofs_by_name[name].fields}


# Refused where the plan is read, as it is a leaf.
READS = {"relation_changes"}


def test_every_relation_was_decided_on():
    assert oneof(proto.Relation, "rel_type") == DECIDED | READS


def test_every_expression_was_decided_on():
    assert oneof(proto.Expression, "expr_type") == DECIDED_EXPRESSIONS


def test_every_kind_but_the_unknown_has_a_rule():
    assert set(OperatorKind) - {OperatorKind.UNKNOWN} == set(RULES)


def test_relations_that_are_not_followed_are_refused():
    assert {kind for kind, found in KINDS.items() if found is OperatorKind.UNKNOWN} == {
        "transpose",
        "as_of_join",
        "nearest_by_join",
        "show_string",
        "html_string",
        "cached_remote_relation",
        "catalog",
        "ml_relation",
        "extension",
        "unknown",
    }


# What sqlglot's nodes may carry, as of the version that the analysis was written for. A new one is
# refused over a stream until it is decided on, here and in `millpond.engine.sqltext.operators`.
MODIFIERS = (
    "match laterals joins connect pivots prewhere where group having qualify windows distribute "
    "sort cluster order limit offset locks sample settings format options for_"
)
ARGUMENTS = {
    exp.Select: (
        "with_ kind expressions hint distinct into from_ operation_modifiers exclude " + MODIFIERS
    ),
    exp.Subquery: "this alias with_ " + MODIFIERS,
    exp.SetOperation: "with_ this expression distinct by_name side kind on " + MODIFIERS,
    exp.Table: (
        "this alias db catalog laterals joins pivots hints system_time version format pattern "
        "ordinality when only partition changes rows_from sample indexed"
    ),
    exp.Join: (
        "this on side kind using method global_ hint match_condition nearest directed expressions "
        "pivots"
    ),
    exp.Lateral: "this view outer alias cross_apply ordinality",
    exp.With: "expressions recursive search cycle udfs",
    exp.Group: "expressions grouping_sets cube rollup totals all",
    exp.Distinct: "expressions on",
    exp.Limit: "this expression offset limit_options expressions",
    exp.In: "this expressions query unnest field is_global",
}


@pytest.mark.parametrize("node", ARGUMENTS, ids=lambda node: node.__name__)
def test_every_argument_of_a_node_was_decided_on(node):
    assert set(node.arg_types) == set(ARGUMENTS[node].split())
