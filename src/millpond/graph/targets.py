"""Checks that every flow has a table to write to and every table a flow. Looks at no query."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Pipeline
from millpond.errors import MillpondError
from millpond.errors.graph import DatasetWithoutFlowError, FlowTargetNotFoundError
from millpond.errors.replace_using import (
    ReplaceUsingMissingByNameError,
    ReplaceUsingSecondFlowError,
    ReplaceUsingTargetNotCreatedError,
    ReplaceUsingWithOnceError,
)
from millpond.graph.resolved import Key


@dataclass(frozen=True)
class TargetCheck:
    """The problems found, and the keys of the datasets that can't be resolved for them."""

    problems: tuple[MillpondError, ...]
    failed: frozenset[Key]


def check_targets(pipeline: Pipeline) -> TargetCheck:
    """Check the pairing of flows and tables over the whole pipeline."""
    datasets = {dataset.name.key: dataset for dataset in pipeline.datasets}
    flows: dict[Key, list[Flow]] = defaultdict(list)
    problems: list[MillpondError] = []
    failed: set[Key] = set()
    for flow in pipeline.flows:
        flows[flow.target.key].append(flow)
        problem = _check_flow(flow, datasets)
        if problem is not None:
            problems.append(problem)
            failed.add(flow.target.key)
    for key, dataset in datasets.items():
        found = _check_dataset(dataset, flows[key])
        if found:
            problems.extend(found)
            failed.add(key)
    return TargetCheck(tuple(problems), frozenset(failed))


def _check_flow(flow: Flow, datasets: dict[Key, Dataset]) -> MillpondError | None:
    target = datasets.get(flow.target.key)
    if flow.kind is FlowKind.REPLACE_USING:
        return _check_replace_using(flow, target, datasets)
    if target is None:
        return FlowTargetNotFoundError.from_flow(
            flow.name,
            str(flow.target),
            known=(str(dataset.name) for dataset in datasets.values()),
            where=flow.location,
        )
    if flow.kind is FlowKind.APPEND and target.kind is not DatasetKind.STREAMING_TABLE:
        return FlowTargetNotFoundError.from_kind(
            flow.name, str(flow.target), kind=target.kind, where=flow.location
        )
    return None


def _check_replace_using(
    flow: Flow, target: Dataset | None, datasets: dict[Key, Dataset]
) -> MillpondError | None:
    if target is None or target.kind is not DatasetKind.STREAMING_TABLE:
        created = [
            str(dataset.name)
            for dataset in datasets.values()
            if dataset.kind is DatasetKind.STREAMING_TABLE
        ]
        return ReplaceUsingTargetNotCreatedError.from_flow(
            flow.name, target=str(flow.target), created=created, where=flow.location
        )
    if flow.once:
        return ReplaceUsingWithOnceError.from_flow(flow.name, where=flow.location)
    if not flow.by_name:
        return ReplaceUsingMissingByNameError.from_flow(flow.name, where=flow.location)
    return None


def _check_dataset(dataset: Dataset, flows: list[Flow]) -> list[MillpondError]:
    if not flows:
        return [DatasetWithoutFlowError.from_dataset(str(dataset.name), where=dataset.location)]
    replacing = next((flow for flow in flows if flow.kind is FlowKind.REPLACE_USING), None)
    if replacing is None:
        return []
    return [
        ReplaceUsingSecondFlowError.from_flow(
            replacing.name,
            target=str(dataset.name),
            other=other.name,
            other_where=other.location,
            where=replacing.location,
        )
        for other in flows
        if other is not replacing
    ]
