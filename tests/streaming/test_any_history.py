"""After any history of appends, compactions, updates and crashes, each row came exactly once."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from deltalake import DeltaTable
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.streaming.test_micro_batches import InterruptedStore, InterruptionError
from tests.streaming.toy_flow import Stream, append, expected

LIMITS = st.fixed_dictionaries(
    {},
    optional={"maxFilesPerTrigger": st.sampled_from("123"), "maxBytesPerTrigger": st.just("1500")},
)


class AnyHistory(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="any-history-"))
        self.table = self.folder / "source"
        self.added = 0
        self.deleted = False

    def teardown(self):
        try:
            self.stream().run(**self.options())
            assert self.stream().target.rows() == expected(range(self.added))
        finally:
            shutil.rmtree(self.folder)

    def stream(self, store=None):
        return Stream(self.folder / "flow", {"s": self.table}, store)

    def options(self):
        # Rows are deleted only after they were read, so skipping those commits loses none.
        return {"skipChangeCommits": "true"} if self.deleted else {}

    @initialize(rows=st.integers(0, 3))
    def create(self, rows):
        self.append_rows(rows)

    @rule(rows=st.integers(0, 3))
    def append_rows(self, rows):
        append(self.table, range(self.added, self.added + rows))
        self.added += rows

    @rule()
    def compact(self):
        DeltaTable(self.table).optimize.compact()

    @precondition(lambda self: self.added > 0)
    @rule()
    def delete_what_was_read(self):
        self.stream().run(**self.options())
        DeltaTable(self.table).delete(f"id = {self.added - 1}")
        self.deleted = True

    @rule(limits=LIMITS)
    def update(self, limits):
        self.stream().run(**limits, **self.options())
        assert self.stream().target.rows() == expected(range(self.added))

    @rule(limits=LIMITS, calls=st.integers(1, 40), after=st.booleans())
    def interrupted_update(self, limits, calls, after):
        with contextlib.suppress(InterruptionError):
            self.stream(InterruptedStore(calls, after=after)).run(**limits, **self.options())

    @rule(limits=LIMITS, batches=st.integers(1, 2))
    def update_given_up(self, limits, batches):
        steps = self.stream().steps(**limits, **self.options())
        for _ in range(batches):
            next(steps, None)
        steps.close()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=100,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
