"""What the Python API refuses while a source file defines its datasets and flows."""

from typing import Self

from millpond.errors.base import MillpondError, SourceLocation


class DefinitionOutsideRunError(MillpondError, RuntimeError):
    """A dataset or flow is defined while no pipeline is being loaded."""

    error_class = "DEFINITION_OUTSIDE_RUN"

    @classmethod
    def from_call(cls, api: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{api} defines a part of a pipeline, but no pipeline is being loaded.",
            where=where,
            hint="run the file as part of its pipeline: millpond run, or millpond dry-run to only "
            "check it",
        )

    @classmethod
    def from_read(cls, api: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{api} reads a dataset of a pipeline, but no pipeline is being loaded.",
            where=where,
            hint="call it in a query function of a pipeline, and run that with millpond run",
        )


class DefinitionInsideQueryError(MillpondError, RuntimeError):
    """A query function defines a dataset or flow while it is evaluated."""

    error_class = "DEFINITION_INSIDE_QUERY"

    @classmethod
    def from_call(cls, api: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{api} is called by a query function, when the pipeline is already defined.",
            where=where,
            hint="define datasets and flows at the top level of the file; a query function only "
            "returns a DataFrame",
        )


class ArgumentTypeError(MillpondError, TypeError):
    """An argument of the Python API is of a type that it can't be."""

    error_class = "ARGUMENT_TYPE"
    sqlstate = "42804"

    @classmethod
    def from_value(
        cls,
        api: str,
        argument: str,
        value: object,
        *,
        expected: str,
        where: SourceLocation | None,
        hint: str | None = None,
    ) -> Self:
        return cls(
            f"{argument} of {api} must be {expected}, not {_shown(value)} "
            f"({type(value).__name__}).",
            where=where,
            hint=hint,
        )

    @classmethod
    def from_function(cls, api: str, value: object, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{api} must decorate a function, not {_shown(value)} ({type(value).__name__}).",
            where=where,
            hint="arguments are given by keyword, as in @dp.table(name='sales'); a decorator of "
            "millpond gives no function back, so it stands above all others",
        )

    @classmethod
    def from_parameters(cls, api: str, function: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The query function {function} of {api} takes arguments, but it is called with none.",
            where=where,
            hint="give each parameter a default, as in def query(region=region)",
        )


class ArgumentValueError(MillpondError, ValueError):
    """An argument of the Python API has a value that it can't have."""

    error_class = "ARGUMENT_VALUE"
    sqlstate = "22023"

    @classmethod
    def from_value(
        cls,
        api: str,
        argument: str,
        value: object,
        *,
        expected: str,
        where: SourceLocation | None,
    ) -> Self:
        return cls(f"{argument} of {api} must be {expected}, not {_shown(value)}.", where=where)

    @classmethod
    def from_pair(cls, api: str, first: str, second: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{api} is given both {first} and {second}, which exclude each other.",
            where=where,
            hint=f"leave one of them out: {first} or {second}",
        )

    @classmethod
    def from_nameless_function(
        cls, api: str, function: str, *, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"{api} has no name for what it defines: {function} is no name of a function.",
            where=where,
            hint="give the name as an argument: name='...'",
        )

    @classmethod
    def from_view_name(cls, name: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The temporary view {name} is named with a catalog or schema, but belongs to neither.",
            where=where,
            hint="use a name of one part",
        )


class ExpectationPlacementError(MillpondError, ValueError):
    """An expectation decorator stands where it would have no effect."""

    error_class = "EXPECTATION_PLACEMENT"
    sqlstate = "42601"

    @classmethod
    def from_flow(
        cls, api: str, function: str, *, target: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"The function {function} of {api} carries expectations, but they belong to the table "
            f"that the flow writes to, {target}.",
            where=where,
            hint="move them to the target: dp.create_streaming_table(..., expect_all_or_drop={...})"
            ", or the decorators below its @dp.table",
        )

    @classmethod
    def from_decorated(
        cls, api: str, name: str, *, value: object, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"{api} ({name}) must decorate a query function, not {_shown(value)} "
            f"({type(value).__name__}).",
            where=where,
            hint="put it below @dp.table, @dp.materialized_view or @dp.temporary_view and above "
            "the function",
        )


class DuplicateExpectationError(MillpondError, ValueError):
    """Two expectations of one dataset have the same name."""

    error_class = "DUPLICATE_EXPECTATION"
    sqlstate = "42710"

    @classmethod
    def from_name(
        cls,
        name: str,
        *,
        dataset: str,
        first: SourceLocation | None,
        where: SourceLocation | None,
    ) -> Self:
        place = f", first at {first}" if first is not None and first != where else ""
        return cls(
            f"{dataset} has two expectations named {name!r}{place}.",
            where=where,
            hint="give each expectation of a dataset a name of its own; they are counted by name",
        )


class FeatureNotSupportedError(MillpondError, NotImplementedError):
    """A function or argument that other runtimes know and millpond does not."""

    error_class = "FEATURE_NOT_SUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_function(
        cls, name: str, *, missing: str, hint: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"dp.{name} is not supported: millpond has no {missing}.", where=where, hint=hint
        )

    @classmethod
    def from_argument(
        cls, api: str, argument: str, *, reason: str, hint: str, where: SourceLocation | None
    ) -> Self:
        return cls(f"{argument} of {api} is not supported: {reason}.", where=where, hint=hint)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
