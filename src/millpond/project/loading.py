"""Loads all source files of a project and puts what they define together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millpond.definitions import Dataset, Flow, Pipeline
from millpond.errors import MillpondError
from millpond.errors.project import DuplicateDatasetError, DuplicateFlowError
from millpond.project.modules import ProjectModules
from millpond.project.source_files import SourceFile, find_source_files
from millpond.project.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load_pipeline(spec: Spec, session: SparkSession) -> tuple[Pipeline, list[MillpondError]]:
    """Run or parse every source file, in the order of their names.

    A file that fails stops only itself; what it had defined before counts.

    Args:
        spec: The project's spec.
        session: What Python files see as `spark`.

    Returns:
        The definitions of all files, and every problem that was found.
    """
    files, problems = find_source_files(spec)
    modules = ProjectModules(
        files, root=spec.root, catalog=spec.catalog, schema=spec.schema, session=session
    )
    parts: list[Pipeline] = []
    for file in files:
        part, found = modules.load(file) if file.is_python else _load_sql(file, spec)
        parts.append(part)
        problems.extend(found)
    pipeline, duplicates = merge(parts)
    return pipeline, [*_distinct(problems), *duplicates]


def merge(parts: Iterable[Pipeline]) -> tuple[Pipeline, list[MillpondError]]:
    """Put the definitions of several files together; of two with one name, the first stays."""
    datasets: dict[tuple[str, ...], Dataset] = {}
    flows: dict[str, Flow] = {}
    problems: list[MillpondError] = []
    for part in parts:
        own, refused = set(), set()
        for dataset in part.datasets:
            first = datasets.setdefault(dataset.name.key, dataset)
            if first is dataset:
                own.add(_own_flow(dataset))
            else:
                refused.add(_own_flow(dataset))
                problems.append(
                    DuplicateDatasetError.from_name(
                        str(dataset.name), first=first.location, where=dataset.location
                    )
                )
        for flow in part.flows:
            name = flow.name.lower()
            if name in refused - own:
                continue  # its table is refused, which is reported
            first_flow = flows.setdefault(name, flow)
            if first_flow is not flow and name not in refused:
                problems.append(
                    DuplicateFlowError.from_name(
                        flow.name, first=first_flow.location, where=flow.location
                    )
                )
    return Pipeline(tuple(datasets.values()), tuple(flows.values())), problems


def _own_flow(dataset: Dataset) -> str:
    """The name of the flow of a dataset's own query, without letter case."""
    return str(dataset.name).lower()


def _load_sql(file: SourceFile, spec: Spec) -> tuple[Pipeline, list[MillpondError]]:
    from millpond.sql import parse_file

    try:
        text = file.read()
    except MillpondError as error:
        return Pipeline(), [error]
    return parse_file(
        text,
        file=file.name,
        catalog=spec.catalog,
        schema=spec.schema,
        configuration=spec.configuration,
    )


def _distinct(problems: Iterable[MillpondError]) -> list[MillpondError]:
    """Leave out what is said already, as where two files import one broken module."""
    seen: dict[tuple[object, ...], MillpondError] = {}
    for problem in problems:
        seen.setdefault((type(problem), problem.what, problem.where), problem)
    return list(seen.values())
