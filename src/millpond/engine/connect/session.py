"""The session that source files see as `spark`: PySpark's own, kept from running anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect.client import ChannelBuilder, SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.functions import builtin
from pyspark.sql.connect.plan import SQL, SubqueryAlias
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.sql_formatter import SQLStringFormatter

from millpond.engine.connect.clients import close_client
from millpond.engine.connect.functions import RegisteredFunctions, Registration
from millpond.engine.connect.guard import DefinitionGuard, refused
from millpond.engine.sqltext.parsing import is_query_text

# Questions about a plan, or about nothing, that read no data.
_ALLOWED = frozenset(
    {
        "schema",
        "explain",
        "tree_string",
        "is_local",
        "is_streaming",
        "same_semantics",
        "semantic_hash",
        "spark_version",
        "ddl_parse",
        "json_to_ddl",
    }
)


class PipelineSession(SparkSession):
    """A Spark session in which plans can be built and analysed, and functions registered."""

    def __init__(
        self,
        connection: str | ChannelBuilder,
        *,
        guard: DefinitionGuard,
        functions: RegisteredFunctions,
        retries: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(connection)
        close_client(self._client)
        self._client: PipelineClient = PipelineClient(connection, guard=guard, functions=functions)
        if retries is not None:
            self._client.set_retry_policies(list(retries))
        self._session_id = self._client._session_id  # noqa: SLF001 - as SparkSession does
        self.release_session_on_close = False

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - PySpark's
        """Build a query. PySpark's own method would send the text, and run it if it is DDL."""
        if not is_query_text(sqlQuery):
            words = " ".join(sqlQuery.split()[:2])
            raise refused(f"spark.sql({words!r} ...)")
        positional = [builtin.lit(value) for value in args] if isinstance(args, list) else []
        named = (
            {key: builtin.lit(value) for key, value in args.items()}
            if isinstance(args, dict)
            else {}
        )
        references: list[SubqueryAlias] = []
        if kwargs:
            formatter = SQLStringFormatter(self)
            sqlQuery = formatter.format(sqlQuery, **kwargs)  # noqa: N806 - PySpark's name
            for number, (frame, name) in enumerate(formatter._temp_views):  # noqa: SLF001 - as PySpark does
                # Short enough to be read in a message.
                short = f"_dataframe{number}"
                sqlQuery = sqlQuery.replace(name, short)  # noqa: N806 - PySpark's name
                references.append(SubqueryAlias(frame._plan, short))  # noqa: SLF001 - as above
        return DataFrame(SQL(sqlQuery, positional, named, references), self)

    def stop(self) -> None:
        """The session is millpond's to end."""
        raise refused("spark.stop()")


class PipelineClient(SparkConnectClient):
    """A client that answers questions about plans, and runs none."""

    def __init__(
        self,
        connection: str | ChannelBuilder,
        *,
        guard: DefinitionGuard,
        functions: RegisteredFunctions,
    ) -> None:
        super().__init__(connection)
        self._guard = guard
        self._functions = functions
        self._registering = False

    def set_all(self, settings: dict[str, str]) -> None:
        """Give the session its configuration. User code can't change it."""
        from pyspark.sql.connect import proto

        pairs = [proto.KeyValue(key=key, value=value) for key, value in settings.items()]
        operation = proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs))
        super().config(operation)

    def _analyze(self, method: str, **kwargs: Any) -> Any:
        if method not in _ALLOWED:
            raise refused()
        if method == "is_streaming":
            return _Answer(is_streaming=self._guard.is_streaming(kwargs["plan"]))
        for key in ("plan", "other"):
            if key in kwargs:
                kwargs[key] = self._guard.bound(kwargs[key])
        return super()._analyze(method, **kwargs)

    def _execute(self, req: Any) -> None:
        if not self._registering:
            raise refused()
        super()._execute(req)

    def _execute_and_fetch_as_iterator(self, *_args: Any, **_kwargs: Any) -> Any:
        raise refused()

    def config(self, operation: Any) -> Any:
        changes = operation.WhichOneof("op_type") in {"set", "unset"}
        if not changes:
            return super().config(operation)
        if operation.HasField("set") and operation.set.silent:
            # SparkSession.builder.config(..).getOrCreate(), the usual first line of a script.
            return _Answer(pairs=[], warnings=[])
        raise refused("spark.conf." + operation.WhichOneof("op_type") + "()")

    def add_artifacts(self, *_args: Any, **_kwargs: Any) -> None:
        raise refused()

    def copy_from_local_to_fs(self, *_args: Any, **_kwargs: Any) -> None:
        raise refused()

    def register_udf(self, function: Any, return_type: Any, name: Any = None, *args: Any) -> Any:
        def register(client: Any) -> Any:
            return client.register_udf(function, return_type, name, *args)

        return self._register(name, register, kind=args[0] if args else None)

    def register_udtf(self, function: Any, return_type: Any, name: Any, *args: Any) -> Any:
        def register(client: Any) -> Any:
            return client.register_udtf(function, return_type, name, *args)

        return self._register(name, register)

    def register_data_source(self, *_args: Any, **_kwargs: Any) -> None:
        raise refused()

    def release_session(self) -> None:
        raise refused()

    def clone(self, *_args: Any, **_kwargs: Any) -> Any:
        """A clone would be a session without a guard."""
        raise refused("spark.cloneSession()")

    def interrupt_all(self) -> Any:
        raise refused()

    def interrupt_tag(self, tag: str) -> Any:  # noqa: ARG002 - PySpark's signature
        raise refused()

    def interrupt_operation(self, op_id: str) -> Any:  # noqa: ARG002 - PySpark's signature
        raise refused()

    def register_java(self, *_args: Any, **_kwargs: Any) -> None:
        raise refused()

    def _register(self, name: Any, register: Registration, *, kind: int | None = None) -> Any:
        """Register a function in this session now, and in the engine's before they run."""
        self._registering = True
        try:
            registered = register(super())
        finally:
            self._registering = False
        self._functions.add(str(name), register, kind=kind)
        return registered

    def close(self) -> None:
        if not self.is_closed:
            super().close()


class _Answer:
    """What PySpark expects of an answer from the server, as far as it is asked."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)
