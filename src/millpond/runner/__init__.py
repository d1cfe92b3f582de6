"""Updates of a pipeline, and what can be asked of it between them."""

from millpond.runner.inspection import TableInfo, list_tables, read_events, run_query
from millpond.runner.maintenance import MaintainedTable, maintain
from millpond.runner.project import Project
from millpond.runner.update import FlowResult, UpdateResult, dry_run, run_update

__all__ = [
    "FlowResult",
    "MaintainedTable",
    "Project",
    "TableInfo",
    "UpdateResult",
    "dry_run",
    "list_tables",
    "maintain",
    "read_events",
    "run_query",
    "run_update",
]
