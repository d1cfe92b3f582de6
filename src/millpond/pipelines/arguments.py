"""Checks of the arguments that users give, alike for every function of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from millpond.errors import SourceLocation
from millpond.errors.pipelines import (
    ArgumentTypeError,
    ArgumentValueError,
    FeatureNotSupportedError,
)
from millpond.errors.replace_using import (
    ReplaceUsingDuplicateKeyError,
    ReplaceUsingMissingSequenceByError,
    ReplaceUsingNoKeyError,
    SequenceByWithoutReplaceUsingError,
)

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

REFRESH_POLICIES = ("auto", "incremental", "incremental_strict", "full")


@dataclass(frozen=True)
class Arguments:
    """The call whose arguments are checked: the function's name for users, and its place."""

    api: str
    where: SourceLocation

    def text(self, argument: str, value: Any) -> str:
        """A string that is not blank."""
        if not isinstance(value, str):
            raise self._type_error(argument, value, "a string")
        if not value.strip():
            raise ArgumentValueError.from_value(
                self.api, argument, value, expected="a string that is not empty", where=self.where
            )
        return value

    def optional_text(self, argument: str, value: Any) -> str | None:
        if value is not None and not isinstance(value, str):
            raise self._type_error(argument, value, "a string")
        return value

    def flag(self, argument: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._type_error(argument, value, "True or False")
        return value

    def texts(self, argument: str, value: Any) -> tuple[str, ...]:
        """A list of strings; `None` is an empty one."""
        if value is None:
            return ()
        if not _is_list_of_text(value):
            raise self._type_error(argument, value, "a list of strings")
        return tuple(value)

    def mapping(self, argument: str, value: Any) -> dict[str, str]:
        """A dict of strings; `None` is an empty one."""
        if value is None:
            return {}
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise self._type_error(argument, value, "a dict of strings")
        for key, item in value.items():
            if not isinstance(item, str):
                text = str(item).lower() if isinstance(item, bool) else str(item)
                raise self._type_error(
                    f"{argument}[{key!r}]", item, "a string", hint=f"write it as {text!r}"
                )
        return dict(value)

    def schema(self, value: Any) -> StructType | str | None:
        if value is None or isinstance(value, str):
            return value
        from pyspark.sql.types import StructType

        if not isinstance(value, StructType):
            raise self._type_error("schema", value, "a StructType or DDL text")
        return value

    def clustering(
        self, *, partition_cols: tuple[str, ...], cluster_by: tuple[str, ...], auto: bool
    ) -> None:
        """Partitioning and clustering exclude each other."""
        if partition_cols and (cluster_by or auto):
            other = "cluster_by" if cluster_by else "cluster_by_auto"
            raise ArgumentValueError.from_pair(self.api, "partition_cols", other, where=self.where)

    def table_format(self, value: Any) -> None:
        if value is not None and self.text("format", value).lower() != "delta":
            raise FeatureNotSupportedError.from_argument(
                self.api,
                "format",
                reason=f"tables are stored as Delta, not as {value}",
                hint="leave format out, or say format='delta'",
                where=self.where,
            )

    def row_filter(self, value: Any) -> None:
        if value is not None:
            raise FeatureNotSupportedError.from_argument(
                self.api,
                "row_filter",
                reason="there is no catalog that would hide rows from a reader",
                hint="leave it out here; a filter for everybody belongs into the query",
                where=self.where,
            )

    def refresh_policy(self, value: Any) -> None:
        """`auto`, `full` and `incremental` ask for no more than a recomputed view gives."""
        if value is None:
            return
        if self.text("refresh_policy", value).lower() not in REFRESH_POLICIES:
            raise ArgumentValueError.from_value(
                self.api,
                "refresh_policy",
                value,
                expected="one of " + ", ".join(REFRESH_POLICIES),
                where=self.where,
            )
        if value.lower() == "incremental_strict":
            raise FeatureNotSupportedError.from_argument(
                self.api,
                "refresh_policy",
                reason="materialized views are recomputed whole, so no refresh is incremental",
                hint="say refresh_policy='auto', or leave it out",
                where=self.where,
            )

    def replace_where(self, value: Any) -> None:
        if value is not None:
            raise FeatureNotSupportedError.from_argument(
                self.api,
                "replace_where",
                reason="there are no REPLACE WHERE flows",
                hint="replace by key instead: replace_using and sequence_by",
                where=self.where,
            )

    def replacing(
        self, flow: str, *, replace_using: Any, sequence_by: Any
    ) -> tuple[tuple[str, ...], str | Column | None]:
        """The keys and the sequence of a REPLACE USING flow; none of both for another flow."""
        if replace_using is None:
            if sequence_by is not None:
                raise SequenceByWithoutReplaceUsingError.from_flow(flow, where=self.where)
            return (), None
        keys = self.texts("replace_using", replace_using)
        if not keys:
            raise ReplaceUsingNoKeyError.from_flow(flow, where=self.where)
        seen: set[str] = set()
        for key in keys:
            folded = self.text("replace_using", key).lower()
            if folded in seen:
                raise ReplaceUsingDuplicateKeyError.from_flow(flow, key=key, where=self.where)
            seen.add(folded)
        if sequence_by is None:
            raise ReplaceUsingMissingSequenceByError.from_flow(flow, where=self.where)
        return keys, self._sequence(sequence_by)

    def _sequence(self, value: Any) -> str | Column:
        if isinstance(value, str):
            return self.text("sequence_by", value)
        from pyspark.sql import Column

        if not isinstance(value, Column):
            raise self._type_error("sequence_by", value, "a column name or a Column")
        return value

    def _type_error(
        self, argument: str, value: object, expected: str, *, hint: str | None = None
    ) -> ArgumentTypeError:
        return ArgumentTypeError.from_value(
            self.api, argument, value, expected=expected, where=self.where, hint=hint
        )


def is_function(value: object) -> TypeGuard[Callable[[], Any]]:
    """Whether `value` can be a query function; a class is callable, but gives no DataFrame."""
    return callable(value) and not isinstance(value, type)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
