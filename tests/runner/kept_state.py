"""Feeds flows with state, and looks at what they keep on disk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from millpond.events import FlowStatus, UpdateState

ONE_FILE_A_BATCH = {"millpond.maxFilesPerTrigger": "1"}
START = datetime(2024, 1, 1, tzinfo=UTC)
DISTINCT = "CREATE STREAMING TABLE seen AS SELECT DISTINCT k, v FROM STREAM(landing);"


def minute(number):
    return START + timedelta(minutes=number)


def timed(*minutes, **more):
    return [{"id": number, "ts": minute(number), **more} for number in minutes]


def pairs(*keys):
    return [{"k": key, "v": f"v{key}"} for key in keys]


def state_of(folder, flow):
    (found,) = folder.layout.checkpoint(f"main.sales.{flow}", "id").parent.iterdir()
    return found / "state"


def versions(folder, flow):
    return sorted(int(path.name) for path in (state_of(folder, flow) / "versions").iterdir())


def row_files(folder, flow):
    return sorted((state_of(folder, flow) / "rows").rglob("*.parquet"))


def written(folder):
    """Every file of the tables and checkpoints, with the time it was written at."""
    roots = (folder.root / "storage" / "tables", folder.layout.checkpoints)
    return {
        str(path): path.stat().st_mtime_ns
        for root in roots
        for path in root.rglob("*")
        if path.is_file()
    }


def completed(result):
    errors = [flow.error for flow in result.flows if flow.error] + [*result.problems]
    assert result.state is UpdateState.COMPLETED, errors
    return result


def error_of(result, flow):
    (found,) = [each for each in result.flows if each.name.endswith(f".{flow}")]
    assert found.status is FlowStatus.FAILED
    return found.error
