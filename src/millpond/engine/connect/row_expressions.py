"""Tells whether an expression's value follows from one row alone, whenever it is computed.

Only such a value may be kept with a row and used in a later batch.
"""

from __future__ import annotations

from typing import Any

from millpond.engine.connect.functions import AGGREGATING
from millpond.engine.connect.messages import own_expressions
from millpond.engine.shapes.functions import GENERATORS, kind_of_function
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.sql.tokens import identifier_value, keywords

# Functions that give another value each time, or in each batch.
_CHANGING = keywords(
    """
    curdate current_date current_time current_timestamp curtime input_file_block_length
    input_file_block_start input_file_name java_method localtimestamp monotonically_increasing_id
    now rand randn random randstr reflect shuffle spark_partition_id try_reflect uniform uuid
    """
)
# Those of them that are called without parentheses as well.
_CHANGING_WORDS = keywords("CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIMESTAMP")
# Functions that give the time of now where they have no argument.
_CHANGING_ALONE = keywords("unix_timestamp")
_MORE_THAN_A_ROW = frozenset(
    {
        "window",
        "subquery_expression",
        "typed_aggregate_expression",
        "unresolved_star",
        "unresolved_regex",
        "sort_order",
        "extension",
    }
)


def follows_from_row(expression: Any) -> bool:
    """Whether an expression is one value of a row, the same whenever it is computed."""
    return all(_is_steady(part) for part in (expression, *own_expressions(expression)))


def _is_steady(expression: Any) -> bool:
    match expression.WhichOneof("expr_type"):
        case "expression_string":
            return _is_steady_text(outline(f"SELECT {expression.expression_string.expression}"))
        case "unresolved_function" | "call_function" as kind:
            function = getattr(expression, kind)
            return _is_steady_call(function.function_name, bool(function.arguments))
        case "common_inline_user_defined_function":
            function = expression.common_inline_user_defined_function
            return function.deterministic and function.python_udf.eval_type not in AGGREGATING
        case kind:
            return kind not in _MORE_THAN_A_ROW


def _is_steady_call(name: str, has_arguments: bool) -> bool:
    name = name.lower()
    return not (
        name in _CHANGING
        or name in GENERATORS
        or (name in _CHANGING_ALONE and not has_arguments)
        or kind_of_function(name) is not None
    )


def _is_steady_text(found: Outline) -> bool:
    blocks = {id(block): block for block in found.owner}.values()
    if len(blocks) > 1 or any("OVER" in block.words for block in blocks):
        return False
    words = (
        index
        for index, token in enumerate(found.tokens)
        if token.word in _CHANGING_WORDS and found.word(index - 1) != "."
    )
    return not any(words) and all(
        _is_steady_call(identifier_value(found.tokens[index]), found.word(index + 2) != ")")
        for block in blocks
        for index in block.calls
        if not found.is_quantifier(index)
    )
