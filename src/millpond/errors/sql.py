"""What a SQL source file can be refused for, apart from the causes that Python shares."""

from collections.abc import Iterable, Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short, did_you_mean


class SqlError(MillpondError, ValueError):
    """Base of the causes for which a statement of a SQL source file is refused."""


class SqlSyntaxError(SqlError):
    """A statement goes on with something that can't stand there."""

    error_class = "SQL_SYNTAX_ERROR"
    sqlstate = "42601"

    @classmethod
    def from_found(
        cls,
        found: str,
        *,
        expected: Sequence[str],
        hint: str | None = None,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        first = found.split(maxsplit=1)[0]
        near = did_you_mean(first, [word for word in expected if word.isupper()])
        if hint is None and near is not None and near != first.upper():
            hint = f"did you mean {near}?"
        return cls(
            f"Found {found}, expected {listed(expected)}.", where=where, detail=detail, hint=hint
        )

    @classmethod
    def from_missing_semicolon(
        cls, found: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"Found {found} inside a statement that has not ended.",
            where=where,
            detail=detail,
            hint="put a ; at the end of the statement before it",
        )

    @classmethod
    def from_unterminated(
        cls, kind: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"The {kind} that begins here never ends.",
            where=where,
            detail=detail,
            hint="everything up to the end of the file was taken as a part of it; close it",
        )

    @classmethod
    def from_growth(
        cls, limit: int, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"The values of variables make the file longer by more than {limit:,} characters.",
            where=where,
            detail=detail,
            hint="check the values that SET and the configuration give, and how often they are "
            "used",
        )


class SqlStatementNotSupportedError(SqlError):
    """The statement is no definition; it does something at once, or is of another product."""

    error_class = "SQL_STATEMENT_NOT_SUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_statement(
        cls,
        statement: str,
        *,
        hint: str = "a source file defines tables, views and flows: CREATE ..., SET and USE",
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"{statement} can't stand in a pipeline's source file.",
            where=where,
            detail=detail,
            hint=hint,
        )


class SqlFlowNotSupportedError(SqlError, NotImplementedError):
    """The flow is of a kind that Lakeflow has and millpond has not yet."""

    error_class = "SQL_FLOW_NOT_SUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_kind(
        cls, kind: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"{kind} flows are not supported yet.",
            where=where,
            detail=detail,
            hint="supported are INSERT flows and REPLACE USING flows",
        )


class SqlClauseNotSupportedError(SqlError):
    """The clause asks for something that only a managed service can do, or that is not there."""

    error_class = "SQL_CLAUSE_NOT_SUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_clause(
        cls,
        clause: str,
        *,
        hint: str,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(f"{cut_short(clause)} is not supported.", where=where, detail=detail, hint=hint)


class FlowAndAsQueryError(SqlError):
    """A table has both `FLOW` and `AS query`."""

    error_class = "FLOW_AND_AS_QUERY"
    sqlstate = "42601"

    @classmethod
    def from_table(
        cls, table: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"Table {table} has both FLOW and AS; one of them gives its query.",
            where=where,
            detail=detail,
            hint="write AS <query>, or FLOW INSERT BY NAME <query>, "
            "or FLOW REPLACE USING (..) SEQUENCE BY .. BY NAME <query>",
        )


class DuplicateClauseError(SqlError):
    """A clause, a column, an expectation or a property stands twice where one may stand."""

    error_class = "DUPLICATE_CLAUSE"
    sqlstate = "42614"

    @classmethod
    def from_clause(
        cls, clause: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"{cut_short(clause)} stands twice in one statement.",
            where=where,
            detail=detail,
            hint="leave one of them out",
        )


class ConflictingClausesError(SqlError):
    """Two clauses exclude each other."""

    error_class = "CONFLICTING_CLAUSES"
    sqlstate = "42613"

    @classmethod
    def from_clauses(
        cls,
        first: str,
        second: str,
        *,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        return cls(
            f"{first} and {second} exclude each other.",
            where=where,
            detail=detail,
            hint="leave one of them out",
        )


class ViewWithExpectationError(SqlError):
    """A published view has an expectation."""

    error_class = "VIEW_WITH_EXPECTATION"
    sqlstate = "0A000"

    @classmethod
    def from_view(
        cls, view: str, *, where: SourceLocation | None = None, detail: str | None = None
    ) -> Self:
        return cls(
            f"The view {view} can't have expectations.",
            where=where,
            detail=detail,
            hint="make it a temporary view (CREATE TEMPORARY VIEW) or a materialized view",
        )


class UnknownVariableError(SqlError, LookupError):
    """`${name}` or `:name` stands for nothing that the file or the pipeline sets."""

    error_class = "UNKNOWN_VARIABLE"
    sqlstate = "42883"

    @classmethod
    def from_variable(
        cls,
        written: str,
        *,
        name: str,
        known: Iterable[str],
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> Self:
        near = did_you_mean(name, known)
        written, name = cut_short(written), cut_short(name)
        meant = f"did you mean {near}? Otherwise set" if near else "set"
        in_file = "" if written.startswith(":") else f" SET {name}=... before it in this file, or"
        return cls(
            f"Nothing gives {written} a value.",
            where=where,
            detail=detail,
            hint=f"{meant} it:{in_file} {name} below configuration in spark-pipeline.yml",
        )


def listed(expected: Sequence[str]) -> str:
    """The expected words as a sentence's end.

    >>> listed(["AS", "FLOW", ";"])
    'AS, FLOW or ;'
    """
    *others, last = expected
    return f"{', '.join(others)} or {last}" if others else last
