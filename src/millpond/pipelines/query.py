"""The functions that users decorate: their names, places and expectations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millpond.definitions import Expectation, PythonQuery
from millpond.errors.pipelines import (
    ArgumentTypeError,
    ArgumentValueError,
    DuplicateExpectationError,
)
from millpond.names import quote_identifier
from millpond.pipelines.arguments import Arguments, is_function
from millpond.pipelines.registry import Registry, file_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QueryFunction = Callable[[], "DataFrame"]


class CheckedFunction:
    """A query function with the expectations that stand above it, the topmost first.

    Expectations are kept beside the function, not on it: the same function may be decorated
    again for another dataset. Like any wrapper, it shows the function's name and attributes.
    """

    __wrapped__: QueryFunction

    def __init__(self, function: QueryFunction, expectations: tuple[Expectation, ...]) -> None:
        functools.update_wrapper(self, function)
        self.expectations = expectations

    def __call__(self) -> DataFrame:
        return self.__wrapped__()


def split_expectations(
    decorated: Any, *, call: Arguments
) -> tuple[QueryFunction, tuple[Expectation, ...]]:
    """Return the query function, and the expectations that were put on it.

    A decorator of the user's own may stand between two expectations; they count all the same.

    Raises:
        ArgumentTypeError: It is no function, or one that can't be called without arguments.
    """
    expectations: tuple[Expectation, ...] = ()
    layer = decorated
    while layer is not None:
        if isinstance(layer, CheckedFunction):
            expectations += layer.expectations
        layer = getattr(layer, "__wrapped__", None)
    while isinstance(decorated, CheckedFunction):
        decorated = decorated.__wrapped__
    if not is_function(decorated):
        raise ArgumentTypeError.from_function(call.api, decorated, where=call.where)
    if not _takes_no_arguments(decorated):
        raise ArgumentTypeError.from_parameters(
            call.api, _function_name(decorated), where=call.where
        )
    return decorated, expectations


def query_of(function: QueryFunction, *, registry: Registry, call: Arguments) -> PythonQuery:
    code = getattr(_innermost(function), "__code__", None)
    where = file_location(code.co_filename, code.co_firstlineno) if code else call.where
    return PythonQuery(function, where, catalog=registry.catalog, schema=registry.schema)


def given_name(name: Any, *, function: QueryFunction, call: Arguments) -> str:
    """The name as a user gave it, or else the function's, quoted where it needs that.

    Raises:
        ArgumentValueError: Neither is there, as with a lambda.
    """
    if name is not None:
        return call.text("name", name)
    own = _function_name(function)
    if not own.isidentifier():
        raise ArgumentValueError.from_nameless_function(call.api, own, where=call.where)
    return quote_identifier(own)


def check_unique(expectations: tuple[Expectation, ...], *, dataset: str) -> None:
    """Refuse two expectations of one name.

    Raises:
        DuplicateExpectationError: There are two.
    """
    first: dict[str, Expectation] = {}
    for expectation in expectations:
        other = first.setdefault(expectation.name, expectation)
        if other is not expectation:
            raise DuplicateExpectationError.from_name(
                expectation.name,
                dataset=dataset,
                first=other.location,
                where=expectation.location,
            )


def _takes_no_arguments(function: QueryFunction) -> bool:
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except ValueError:  # a function written in C that does not tell
        return True
    try:
        signature.bind()
    except TypeError:
        return False
    return True


def _function_name(function: Any) -> str:
    return getattr(_innermost(function), "__name__", None) or type(function).__name__ + " object"


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)
