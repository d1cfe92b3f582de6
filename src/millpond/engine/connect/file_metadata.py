"""`_metadata` of files in a plan: carried up to where it is named, and taken away above.

A read of files whose `_metadata` is named gives it as one more column, last. What stands between
the read and the name hands it on; above the topmost step that does, it is dropped again, so that
no star and no row ever holds it unasked. SQL texts look after themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.expressions import attribute, named, text_expression
from millpond.engine.connect.messages import input_relations, own_expressions
from millpond.engine.connect.operators import Source
from millpond.engine.connect.reads import location_of
from millpond.engine.protocol import EmptyInput, Input, ParquetInput, ServerInput, TableRead
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.file_metadata import (
    FILE_NAME_FUNCTION,
    FILE_PATH,
    is_metadata,
    names_metadata,
)
from millpond.engine.sqltext.source import Edit, apply_edits
from millpond.errors import SourceLocation
from millpond.errors.engine import UnsupportedReadError
from millpond.errors.names import InvalidNameError
from millpond.files.metadata import METADATA_COLUMN, METADATA_NAME
from millpond.names import split_name
from millpond.sql.tokens import identifier_value, scan

# Steps that hand every column of their input on.
_HANDING_ON = frozenset(
    {
        "filter",
        "limit",
        "offset",
        "tail",
        "sort",
        "sample",
        "hint",
        "repartition",
        "repartition_by_expression",
        "deduplicate",
        "with_watermark",
        "with_columns",
        "with_columns_renamed",
        "drop",
        "drop_na",
        "fill_na",
        "replace",
        "subquery_alias",
        "join",
        "lateral_join",
        "collect_metrics",
    }
)
_HALF_JOINS = frozenset({proto.Join.JOIN_TYPE_LEFT_SEMI, proto.Join.JOIN_TYPE_LEFT_ANTI})
# What a column of the name that the query itself gives is called while the other is dropped.
_SHOWN = "__millpond_shown_metadata"


def with_metadata_carried(
    relation: Any, sources: Sequence[Source], *, location: SourceLocation
) -> tuple[Any, tuple[Source, ...]]:
    """A copy of a plan in which `_metadata` reaches where it is named, and no further.

    Args:
        location: Where the query is.

    Raises:
        UnsupportedReadError: A star inside an expression could not be kept from giving it.

    Returns:
        The plan, and what its leaves read: files with the mark that `_metadata` is asked of them.
    """
    found = proto.Relation()
    found.CopyFrom(relation)
    carrying = _Carrying(iter(sources), location)
    carrying.relation(found, wanted=False)
    return found, tuple(carrying.sources)


def is_shadowed(read: TableRead, found: Input) -> bool:
    """Whether `_metadata` that a query names is none of the files': they have such a column."""
    return read.metadata and visible_columns(read, found) is None


def visible_columns(read: TableRead, found: Input) -> Sequence[str] | None:
    """The columns that a star gives of files, if a further one is shown for `_metadata`."""
    names = _names_beside_metadata(found) if read.metadata else None
    return None if names is None or any(map(is_metadata, names)) else names


def without_metadata(found: Input) -> Input:
    """An input of files without the column that nobody asked for."""
    if _names_beside_metadata(found) is None:
        return found
    from pyspark.sql.types import StructType

    if isinstance(found, ServerInput):
        return replace(found, has_metadata=False)
    assert isinstance(found, EmptyInput | ParquetInput)
    return replace(found, schema=StructType(found.schema.fields[:-1]))


def showing_metadata(relation: Any, visible: Sequence[str]) -> Any:
    """The relation of an input, with the further column under the name that queries use."""
    named_relation = proto.Relation()
    named_relation.to_df.input.CopyFrom(relation)
    named_relation.to_df.column_names.extend([*visible, METADATA_NAME])
    return named_relation


def _names_beside_metadata(found: Input) -> Sequence[str] | None:
    """The other columns of an input that has the column for `_metadata`."""
    if not isinstance(found, EmptyInput | ParquetInput | ServerInput) or found.schema is None:
        return None
    names: list[str] = found.schema.names
    return names[:-1] if names[-1:] == [METADATA_COLUMN] else None


class _Carrying:
    def __init__(self, sources: Iterator[Source], location: SourceLocation) -> None:
        self._given = sources
        self._location = location
        self.sources: list[Source] = []

    def relation(self, relation: Any, *, wanted: bool) -> bool:
        """Change a relation in place.

        Args:
            wanted: Whether a step above names `_metadata`, and can be given it.

        Returns:
            Whether it gives `_metadata` beside its own columns.
        """
        kind = relation.WhichOneof("rel_type")
        if kind in {"read", "sql", "relation_changes"}:
            return self._leaf(next(self._given), wanted=wanted)
        if kind == "with_relations":
            return self._with_relations(relation.with_relations, wanted=wanted)
        node = getattr(relation, kind)
        names = wanted if kind in _HANDING_ON or kind == "project" else False
        if _looks_at_all_columns(kind, node) or _defines(kind, node):
            names = False
        names = names or any(_expressions_name(relation))
        given = [self.relation(child, wanted=names) for child in input_relations(relation)]
        if not any(given):
            return False
        _name_paths(relation)
        self._check_stars(relation)
        if kind == "project":
            return _project(relation, wanted=wanted)
        if kind == "lateral_join" or (kind == "join" and node.join_type in _HALF_JOINS):
            given = given[:1]
        if kind not in _HANDING_ON or not any(given) or _defines(kind, node):
            return False
        if not wanted:
            _drop(relation)
        return wanted

    def _check_stars(self, relation: Any) -> None:
        if any(map(_has_inner_star, own_expressions(relation))):
            raise UnsupportedReadError.of(
                f"A star inside an expression beside {METADATA_NAME} of files",
                where=location_of(relation) or self._location,
                instead="name the columns, or take the fields of _metadata in a step before",
            )

    def _leaf(self, source: Source, *, wanted: bool) -> bool:
        if isinstance(source, TextAnalysis):
            self.sources.append(source)
            return source.gives_metadata and any(read.metadata for read in source.reads)
        if not isinstance(source, TableRead) or not source.is_files:
            self.sources.append(source)
            return False
        self.sources.append(replace(source, metadata=wanted))
        return wanted

    def _with_relations(self, node: Any, *, wanted: bool) -> bool:
        """A text with relations that it names, or a plan with subqueries of its expressions."""
        gives = self.relation(node.root, wanted=wanted)
        through = self.sources[-1] if node.root.WhichOneof("rel_type") == "sql" else None
        names = isinstance(through, TextAnalysis) and through.gives_metadata
        given = [self.relation(reference, wanted=names) for reference in node.references]
        return gives or (names and any(given))


def _looks_at_all_columns(kind: str, node: Any) -> bool:
    """Whether a step is about every column that there is, where none is named."""
    if kind == "deduplicate":
        return not node.column_names
    return kind in {"drop_na", "fill_na", "replace"} and not node.cols


def _defines(kind: str, node: Any) -> bool:
    """Whether a step gives a column of the name, which is a column like any other."""
    return kind == "with_columns" and any(is_metadata(alias.name[0]) for alias in node.aliases)


def _project(relation: Any, *, wanted: bool) -> bool:
    """Hand `_metadata` on through a projection, or keep its stars from giving it."""
    expressions = relation.project.expressions
    shown = [each for each in expressions if is_metadata(_output_name(each))]
    has_star = any(map(_is_star, expressions))
    if wanted and not shown:
        if not has_star:
            expressions.append(attribute(METADATA_NAME))
        return True
    if has_star:
        for each in shown:
            each.CopyFrom(named(_without_alias(each), _SHOWN))
        _drop(relation)
    if has_star and shown:
        _rename_shown(relation)
    return False


def _drop(relation: Any) -> None:
    """Take `_metadata` away above a relation, which goes on under its number."""
    below = proto.Relation()
    below.CopyFrom(relation)
    relation.Clear()
    relation.common.CopyFrom(below.common)
    relation.drop.input.CopyFrom(below)
    relation.drop.column_names.append(METADATA_NAME)


def _rename_shown(relation: Any) -> None:
    below = proto.Relation()
    below.CopyFrom(relation)
    relation.Clear()
    relation.common.CopyFrom(below.common)
    relation.with_columns_renamed.input.CopyFrom(below)
    rename = relation.with_columns_renamed.renames.add()
    rename.col_name, rename.new_col_name = _SHOWN, METADATA_NAME


def _expressions_name(relation: Any) -> Iterator[bool]:
    """For each expression of a step, whether it names `_metadata`, or means a field of it."""
    for expression in own_expressions(relation):
        match expression.WhichOneof("expr_type"):
            case "unresolved_attribute":
                yield any(map(is_metadata, _attribute_parts(expression)))
            case "unresolved_star":
                yield any(map(is_metadata, _target_parts(expression)))
            case "expression_string":
                text = expression.expression_string.expression
                yield names_metadata(outline(text), 0, len(text))
            case "unresolved_function" | "call_function" as kind:
                yield getattr(expression, kind).function_name.lower() == FILE_NAME_FUNCTION


def _attribute_parts(expression: Any) -> tuple[str, ...]:
    return _parts(expression.unresolved_attribute.unparsed_identifier)


def _target_parts(expression: Any) -> tuple[str, ...]:
    """The name before the dot and star of a star."""
    return _parts(expression.unresolved_star.unparsed_target.removesuffix(".*"))


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name; of one that can't be read, none: the engine says what is wrong."""
    if METADATA_NAME not in name.lower():
        return ()
    try:
        return split_name(name)
    except InvalidNameError:
        return ()


def _name_paths(relation: Any) -> None:
    """Put the field of `_metadata` in the place of `input_file_name()`, in place."""
    if relation.WhichOneof("rel_type") == "project":
        for column in relation.project.expressions:
            if _is_path(column):
                column.CopyFrom(named(_path(), f"{FILE_NAME_FUNCTION}()"))
    for expression in own_expressions(relation):
        if _is_path(expression):
            expression.CopyFrom(_path())
        elif expression.WhichOneof("expr_type") == "expression_string":
            text = expression.expression_string.expression
            tokens = outline(text).tokens
            calls = [
                Edit(token.start, tokens[index + 2].end, FILE_PATH)
                for index, token in enumerate(tokens[:-2])
                if token.text.lower() == FILE_NAME_FUNCTION and tokens[index + 1].word == "("
            ]
            expression.expression_string.expression = apply_edits(text, calls)


def _is_path(expression: Any) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind not in {"unresolved_function", "call_function"}:
        return False
    return str(getattr(expression, kind).function_name).lower() == FILE_NAME_FUNCTION


def _path() -> Any:
    expression = proto.Expression()
    expression.unresolved_attribute.unparsed_identifier = FILE_PATH
    return expression


def _has_inner_star(expression: Any) -> bool:
    """Whether a star stands inside an expression, where it would give `_metadata` as well."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function":
        function = expression.unresolved_function
        counts_rows = function.function_name.lower() == "count" and not function.is_distinct
        return not counts_rows and any(map(_is_star, function.arguments))
    if kind != "expression_string":
        return False
    found = outline(expression.expression_string.expression)
    return any(_is_inner_star(found, index) for index in range(len(found.tokens)))


def _is_inner_star(found: Outline, index: int) -> bool:
    """Whether a star in a text is an argument, and neither a product nor `count(*)`."""
    if found.word(index) != "*" or found.word(index + 1) not in {")", ","}:
        return False
    before = found.word(index - 1)
    if before == "." and index > 1:
        return not is_metadata(identifier_value(found.tokens[index - 2]))
    counts_rows = found.word(index - 2) == "COUNT" and found.word(index + 1) == ")"
    return before in {",", "DISTINCT"} or (before == "(" and not counts_rows)


def _is_star(expression: Any) -> bool:
    """Whether an expression gives all columns of a table, or those of a pattern."""
    match expression.WhichOneof("expr_type"):
        case "unresolved_regex":
            return True
        case "unresolved_star":
            return not any(map(is_metadata, _target_parts(expression)))
        case "expression_string":
            tokens = [*scan(expression.expression_string.expression)]
            words = [token.word for token in tokens]
            if words == ["*"]:
                return True
            is_qualified = words[-2:] == [".", "*"] and len(tokens) % 2 == 1
            return is_qualified and not is_metadata(identifier_value(tokens[-3]))
    return False


def _output_name(expression: Any) -> str:
    """The name of the column that an expression gives, as far as it matters here."""
    match expression.WhichOneof("expr_type"):
        case "alias":
            return str(expression.alias.name[0])
        case "unresolved_attribute":
            return (_attribute_parts(expression) or ("",))[-1]
        case "expression_string":
            tokens = [*scan(expression.expression_string.expression)]
            return identifier_value(tokens[-1]) if tokens else ""
    return ""


def _without_alias(expression: Any) -> Any:
    """What an expression gives a column of."""
    found = proto.Expression()
    match expression.WhichOneof("expr_type"):
        case "alias":
            found.CopyFrom(expression.alias.expr)
        case "expression_string":
            text = expression.expression_string.expression
            tokens = [*scan(text)]
            before = tokens[-2] if len(tokens) > 1 else None
            if before is None or before.word == ".":
                return text_expression(text)
            return text_expression(text[: before.start if before.word == "AS" else before.end])
        case _:
            found.CopyFrom(expression)
    return found
