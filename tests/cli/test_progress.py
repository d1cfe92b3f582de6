"""How an update's progress is shown: plain lines in pipes, a table on terminals."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from millpond.cli.live_progress import LiveProgress, flow_table, most_relevant
from millpond.cli.plain_progress import PlainProgress
from millpond.cli.update_view import FlowView, UpdateView
from millpond.events import FlowStatus, UpdateState

COMPLETED = (
    "orders: completed in 2.2 s: 1,234 rows in, 300 replaced, 1,034 inserted, 12 late, 2 dropped"
)


def test_plain_lines_say_where_something_begins_or_ends(failed_update):
    lines = []
    progress = PlainProgress(write=lines.append)
    for event in failed_update():
        progress.listen(event)
    assert lines == [
        "Update 3f2a9c1e of pipeline shop",
        "orders: running",
        "refunds: running",
        COMPLETED,
        "refunds: failed: [BROKEN_RULE] A rule was broken.",
        "summary: skipped: refunds, which it reads, failed.",
    ]


def test_batches_of_a_long_flow_are_told_every_few_seconds_only(story):
    lines = []
    progress = PlainProgress(write=lines.append)
    progress.listen(story.flow("orders", FlowStatus.STARTING))
    for number in range(120):
        progress.listen(
            story.flow("orders", FlowStatus.RUNNING, number / 10, rows_read=10, num_output_rows=10)
        )
    assert lines[1:] == [
        "orders: running",
        "orders: 51 batches, 510 rows in, 510 inserted",
        "orders: 101 batches, 1,010 rows in, 1,010 inserted",
    ]


def test_an_update_that_changes_nothing_says_so(story):
    lines = []
    progress = PlainProgress(write=lines.append)
    progress.listen(story.flow("orders", FlowStatus.STARTING))
    progress.listen(story.flow("orders", FlowStatus.COMPLETED, 0.1))
    progress.listen(story.update(UpdateState.COMPLETED, 0.2))
    assert lines[-1] == "orders: completed in 0.1 s: nothing new"
    assert progress.view.summary() == "Update completed in 0.2 s: 1 flow completed; nothing new."


def test_an_update_that_read_files_without_rows_says_how_many(story):
    lines = []
    progress = PlainProgress(write=lines.append)
    progress.listen(story.flow("orders", FlowStatus.STARTING))
    for number in (1, 2):
        progress.listen(story.flow("orders", FlowStatus.RUNNING, rows_read=0, files_read=number))
    progress.listen(story.flow("orders", FlowStatus.COMPLETED, 0.1))
    progress.listen(story.update(UpdateState.COMPLETED, 0.2))
    assert lines[-1] == "orders: completed in 0.1 s: 3 files read, no rows"
    assert progress.view.summary().endswith("1 flow completed; 3 files read, no rows.")


def test_a_reader_that_goes_away_does_not_stop_the_update(failed_update):
    def gone(line):
        raise BrokenPipeError

    progress = PlainProgress(write=gone)
    for event in failed_update():
        progress.listen(event)
    assert progress.view.state is UpdateState.FAILED


def test_the_summary_counts_flows_and_rows(failed_update):
    view = UpdateView()
    for event in failed_update():
        view.apply(event)
    assert view.summary() == (
        "Update failed in 4.1 s: 1 flow completed, 1 failed, 1 skipped; "
        "1,234 rows in, 300 replaced, 1,034 inserted, 12 late, 2 dropped."
    )


def test_the_flows_and_the_summary_say_alike_what_was_removed_and_what_replaced(story):
    """Of a flow that only removes rows nothing is replaced, whatever others do."""
    lines = []
    progress = PlainProgress(write=lines.append)
    for name, removed, inserted in (("a", 1, 0), ("b", 2, 3)):
        counts = {"num_deleted_rows": removed, "num_upserted_rows": inserted}
        progress.listen(story.flow(name, FlowStatus.STARTING))
        progress.listen(story.flow(name, FlowStatus.RUNNING, **counts))
        progress.listen(story.flow(name, FlowStatus.COMPLETED, 1))
    progress.listen(story.update(UpdateState.COMPLETED, 1))
    assert lines[2] == "a: completed in 1.0 s: 1 removed"
    assert lines[4] == "b: completed in 1.0 s: 2 replaced, 3 inserted"
    assert progress.view.summary() == (
        "Update completed in 1.0 s: 2 flows completed; 2 replaced, 1 removed, 3 inserted."
    )


def test_rows_that_are_kept_without_meeting_an_expectation_are_warned_of_by_its_name(story):
    view = UpdateView()
    view.apply(story.dataset("orders", {"has a status": "WARN", "paid": "DROP", "met": "WARN"}))
    for counts in ({"has a status": 2, "paid": 1, "met": 0}, {"has a status": 1}):
        view.apply(
            story.flow("orders", FlowStatus.RUNNING, rows_read=9, failed_records=counts),
        )
    assert view.warnings() == [
        "Flow orders read 3 rows that do not meet the expectation 'has a status'."
    ]


def shown(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [72, 80, 100, 120])
def test_the_live_table_fits_the_terminal(failed_update, width):
    progress = LiveProgress(console=Console(file=io.StringIO(), width=width))
    for event in failed_update():
        progress.listen(event)
    console = Console(file=io.StringIO(), width=width)
    console.print(progress)
    lines = shown(console)
    assert lines[0].startswith("shop: failed, ")
    assert lines[1].split() == [
        *("Flow", "Status", "Rows", "in", "Replaced", "Inserted", "Late", "Dropped", "Time")
    ]
    assert lines[2].split() == [
        *("orders", "completed", "1,234", "300", "1,034", "12", "2", "2.2", "s")
    ]
    assert all(cell_len(line) <= width for line in lines)


def test_counts_are_shortened_where_the_terminal_is_narrow(story):
    view = UpdateView()
    view.apply(story.flow("a_flow_with_a_long_name", FlowStatus.RUNNING, rows_read=12_345_678))
    console = Console(file=io.StringIO(), width=80)
    console.print(flow_table(tuple(view.flows.values()), 80))
    assert "12.3M" in shown(console)[-1]
    wide = Console(file=io.StringIO(), width=120)
    wide.print(flow_table(tuple(view.flows.values()), 120))
    assert "12,345,678" in shown(wide)[-1]


def test_the_table_is_left_on_the_screen_at_the_end(failed_update):
    console = Console(file=io.StringIO(), width=100)  # no terminal: only the end is written
    progress = LiveProgress(console=console)
    with progress:
        for event in failed_update():
            progress.listen(event)
    assert [line.split()[0] for line in shown(console)] == ["Flow", "orders", "refunds", "summary"]


def test_where_there_is_no_room_failed_and_running_flows_are_shown():
    flows = [FlowView(f"done_{number}", FlowStatus.COMPLETED) for number in range(30)]
    flows[5] = FlowView("broken", FlowStatus.FAILED)
    flows[20] = FlowView("busy", FlowStatus.RUNNING)
    names = [flow.name for flow in most_relevant(flows, 3)]
    assert names == ["done_0", "broken", "busy"]
