"""Errors of the Spark engine: reaching a server, and what is not the same there."""

from __future__ import annotations

from typing import Self

from millpond.errors.base import MillpondError, SourceLocation


class SparkServerUnreachableError(MillpondError, ConnectionError):
    """No Spark Connect server answers at an address."""

    error_class = "SPARK_SERVER_UNREACHABLE"
    sqlstate = "08001"

    @classmethod
    def from_url(cls, url: str, reason: str) -> Self:
        return cls(
            f"The Spark Connect server at {url} does not answer: {reason}.",
            hint="check that the server runs and that the address is right; nothing was changed",
        )


class SparkAccessDeniedError(MillpondError, PermissionError):
    """The Spark Connect server does not let this client in."""

    error_class = "SPARK_ACCESS_DENIED"
    sqlstate = "28000"

    @classmethod
    def from_url(cls, url: str, reason: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The Spark Connect server at {url} does not let this client in: {reason}.",
            where=where,
            hint="check the token in the address, as in SPARK_REMOTE=sc://host:443/;token=..., "
            "and what its owner may do",
        )


class SparkVersionNotSupportedError(MillpondError, RuntimeError):
    """The server runs a version of Apache Spark that millpond can't work with."""

    error_class = "SPARK_VERSION_NOT_SUPPORTED"

    @classmethod
    def from_version(cls, url: str, version: str, *, oldest: str) -> Self:
        return cls(
            f"The server at {url} runs Apache Spark {version}, which is too old.",
            hint=f"use a server with Apache Spark {oldest} or newer; nothing was changed",
        )


class DeltaNotOnServerError(MillpondError, RuntimeError):
    """The Spark server has no Delta Lake."""

    error_class = "DELTA_NOT_ON_SERVER"

    @classmethod
    def from_url(cls, url: str, reason: str) -> Self:
        return cls(
            f"The Spark server at {url} has no Delta Lake, or it is not set up: {reason}.",
            hint="start the server with the package io.delta:delta-spark of its version, "
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog; "
            "nothing was changed",
        )


class SparkConnectionLostError(MillpondError, ConnectionError):
    """The connection to the Spark server broke while an update ran."""

    error_class = "SPARK_CONNECTION_LOST"
    sqlstate = "08006"

    @classmethod
    def from_error(cls, url: str, reason: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The connection to the Spark server at {url} was lost: {reason}.",
            where=where,
            hint="run the update again once the server answers: it goes on after the last batch "
            "that was committed, and no row is lost or doubled",
        )


class SparkServerRestartedError(MillpondError, ConnectionError):
    """The Spark server was started anew while an update ran on it."""

    error_class = "SPARK_SERVER_RESTARTED"
    sqlstate = "08006"

    @classmethod
    def from_url(cls, url: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The Spark server at {url} no longer knows the session of this update: it was "
            "started anew, or gave the session up.",
            where=where,
            hint="run the update again: it goes on after the last batch that was committed, and "
            "no row is lost or doubled",
        )


class NotOnSparkError(MillpondError, NotImplementedError):
    """A definition asks for something that only the embedded engine has."""

    error_class = "NOT_ON_SPARK"
    sqlstate = "0A000"

    @classmethod
    def of(cls, what: str, *, instead: str, where: SourceLocation | None = None) -> Self:
        return cls(f"{what} can't be had on a Spark server.", where=where, hint=instead)


class CatalogNotOnServerError(MillpondError, LookupError):
    """A pipeline names a catalog that the Spark server does not have."""

    error_class = "CATALOG_NOT_ON_SERVER"
    sqlstate = "42704"

    @classmethod
    def from_name(
        cls, catalog: str, *, known: str, is_of_spec: bool, where: SourceLocation | None = None
    ) -> Self:
        """Make one; all that are about one catalog say the same.

        Args:
            known: The catalogs that the server has.
            is_of_spec: Whether the name comes from the spec, for names that have no catalog.
        """
        what = f"The pipeline names the catalog {catalog}, which the Spark server does not have."
        to_start = f"start the server with spark.sql.catalog.{catalog} set"
        if not is_of_spec:
            hint = f"the server has {known}; {to_start}, or name another catalog"
            return cls(what, where=where, hint=hint)
        return cls(
            what,
            where=where,
            hint=f"the server has {known}: set `catalog: spark_catalog` in the spec, or "
            "`millpond.spark.tables: storage` in its configuration, which needs no catalog; or "
            f"{to_start}",
        )


class StorageNotSharedError(MillpondError, OSError):
    """A Spark server on another machine can't see the pipeline's storage folder."""

    error_class = "STORAGE_NOT_SHARED"

    @classmethod
    def from_url(cls, url: str, *, key: str) -> Self:
        return cls(
            f"The Spark server at {url} is on another machine, or behind a tunnel or in a "
            "container, and does not see the folder of this one in which checkpoints would be "
            "kept.",
            hint=f"set {key} in the spec's configuration to a location that all machines of the "
            "cluster can write, such as s3a://bucket/pipeline",
        )


class TableNotDeltaError(MillpondError, TypeError):
    """A table of the server has the name of a dataset, and is no Delta table."""

    error_class = "TABLE_NOT_DELTA"
    sqlstate = "42809"

    @classmethod
    def from_table(cls, name: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The server has a table or view {name} already, which is no Delta table.",
            where=where,
            hint="drop or rename it, or give the dataset another name",
        )


class SparkTableRefusedError(MillpondError, ValueError):
    """The server refuses to make or to change the table of a dataset."""

    error_class = "SPARK_TABLE_REFUSED"
    sqlstate = "42000"

    @classmethod
    def from_table(cls, name: str, reason: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The Spark server refuses to make or change {name} as it is defined: {reason}",
            where=where,
            hint="mend its name, columns, clauses or TBLPROPERTIES; in many catalogs names are of "
            "letters, digits and _ alone",
        )


class TableLeftEmptyError(MillpondError, RuntimeError):
    """A materialized view was made anew, and neither its new rows nor its old ones got there."""

    error_class = "SPARK_TABLE_LEFT_EMPTY"
    sqlstate = "XX000"

    @classmethod
    def from_view(
        cls,
        view: str,
        *,
        version: int,
        reason: str,
        restoring: str,
        where: SourceLocation | None,
    ) -> Self:
        return cls(
            f"{view} is empty: its table was made anew, its rows could not be written "
            f"({_first_line(reason)}), nor its old ones be restored ({_first_line(restoring)}).",
            where=where,
            hint=f"run again, or restore version {version} of the table on the server",
        )


class SparkWorkerLateError(MillpondError, TimeoutError):
    """A Python worker of the Spark server did not start in the time that Spark gives it."""

    error_class = "SPARK_WORKER_LATE"
    sqlstate = "57014"

    @classmethod
    def from_flow(cls, flow: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"Flow {flow} ended because a Python worker on the Spark server did not start in time.",
            where=where,
            hint="run the update again: it goes on after the last batch that was committed. Where "
            "it happens often, the server has too little processor time or memory",
        )


class SparkCheckpointMissingError(MillpondError, LookupError):
    """A table holds batches of a flow whose checkpoint is not where it should be."""

    error_class = "SPARK_CHECKPOINT_MISSING"
    sqlstate = "55019"

    @classmethod
    def from_flow(
        cls, flow: str, *, target: str, location: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"{target} holds batches of flow {flow}, but the checkpoint that says what they read "
            f"is gone: the server finds none at {location}.",
            where=where,
            hint="bring it back, or set millpond.spark.storage as it was; or let the flow read all "
            "of its sources anew with --full-refresh",
        )


class SparkQueryStoppedError(MillpondError, InterruptedError):
    """Somebody else stopped the streaming query of a flow before it had read all that there was."""

    error_class = "SPARK_QUERY_STOPPED"
    sqlstate = "57014"

    @classmethod
    def from_flow(cls, flow: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The streaming query of flow {flow} was stopped on the Spark server, by somebody "
            "else, before it had read all that its sources hold.",
            where=where,
            hint="run the update again: it goes on after the last batch that was committed, and "
            "no row is lost or doubled",
        )


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")
