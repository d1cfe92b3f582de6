"""A Hypothesis state machine that drives one target with everything that may happen to it.

After each step the table is read with delta-rs and compared, as a multiset, with the oracle.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from millpond.definitions import ExpectationAction
from millpond.engine.protocol import SEQUENCE_COLUMN
from millpond.flows import POSITION_COLUMN
from tests.flows.target import Row, Rule, Target, write_parquet
from tests.flows.values import ORDERABLE, PLAIN, values
from tests.oracle import expected, following, multiset

HIDDEN_TYPE = StructType([StructField("seq", LongType()), StructField("odd", IntegerType())])
VALID = Rule("valid", lambda row: row["valid"], ExpectationAction.DROP)


def hidden_sequence(row: Row) -> dict[str, Any]:
    """The expression of a flow whose sequence is no column; its second part may be null."""
    return {"seq": row["seq"], "odd": row["v"] % 2 if row["v"] % 3 else None}


class ReplaceUsingMachine(RuleBasedStateMachine):
    readers = ("delta-rs",)

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="millpond-machine-"))
        self.number = 0

    @initialize(
        key_types=st.lists(st.sampled_from(ORDERABLE), min_size=1, max_size=2),
        sequence_type=st.none() | st.sampled_from(ORDERABLE),
        vectors=st.booleans(),
        partitioned=st.booleans(),
    )
    def create(
        self,
        key_types: list[DataType],
        sequence_type: DataType | None,
        vectors: bool,
        partitioned: bool,
    ) -> None:
        self.keys = tuple(f"key_{i}" for i in range(len(key_types)))
        self.key_types = key_types
        self.is_hidden = sequence_type is None
        self.sequence_type = sequence_type or LongType()
        self.sequence = hidden_sequence if self.is_hidden else lambda row: row["seq"]
        fields = [StructField(k, t) for k, t in zip(self.keys, key_types, strict=True)]
        fields += [
            StructField("seq", self.sequence_type),
            StructField("v", LongType()),
            StructField("valid", BooleanType()),
        ]
        by_key = partitioned and key_types[0] in PLAIN and keeps_partition_values(key_types[0])
        self.target = Target(
            folder=self.folder,
            schema=StructType(fields),
            keys=tuple(key.upper() for key in self.keys),
            sequence=None if self.is_hidden else "SEQ",
            sequence_type=HIDDEN_TYPE if self.is_hidden else None,
            hidden_sequence=hidden_sequence if self.is_hidden else None,
            vectors=vectors,
            partition_columns=self.keys[:1] if by_key else (),
            rules=(VALID,),
            recompute=recompute if self.is_hidden else None,
        )
        self.start_anew()

    def start_anew(self) -> None:
        self.sent: list[list[Row]] = []
        self.model: list[Row] = []
        self.read: list[Row] = []
        self.has_rows_by_hand = False

    def draw_rows(self, data: st.DataObject, *, by_hand: bool = False) -> list[Row]:
        row = st.fixed_dictionaries(
            {
                **{k: values(t) for k, t in zip(self.keys, self.key_types, strict=True)},
                "seq": values(self.sequence_type, nulls=by_hand and not self.is_hidden)
                if not self.is_hidden
                else st.integers(0, 3),
                "valid": st.just(True) if by_hand else st.integers(0, 4).map(bool),
            }
        )
        rows = data.draw(st.lists(row, max_size=12))
        for found in rows:
            self.number += 1
            found["v"] = self.number
        # Some rows are the same in all columns, as multisets must tell.
        return rows + rows[: data.draw(st.integers(0, 1))]

    @rule(data=st.data(), files=st.integers(1, 2))
    def send(self, data: st.DataObject, files: int) -> None:
        rows = self.draw_rows(data)
        result = self.target.apply(rows, files=files)
        self.sent.append(rows)
        valid = [row for row in rows if row["valid"]]
        self.read += valid
        before = len(self.model)
        self.model = following(self.model, valid, keys=self.keys, sequence=self.sequence)
        assert result.rows_read == len(rows)
        assert result.rows_dropped == len(rows) - len(valid)
        assert result.rows_inserted - result.rows_deleted == len(self.model) - before
        assert result.rows_inserted + result.rows_late == len(valid)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        """A batch that was committed comes again, as after a crash."""
        batch_id = data.draw(st.integers(0, len(self.sent) - 1))
        result = self.target.apply(self.sent[batch_id], batch_id=batch_id)
        assert not result.committed

    @rule()
    def restart(self) -> None:
        self.target.restart()

    @rule()
    def optimize(self) -> None:
        self.target.optimize()

    @rule(data=st.data())
    def insert_by_hand(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data, by_hand=True)
        if rows:
            self.target.insert_by_hand(rows)
            self.model += rows
            self.has_rows_by_hand = True

    @precondition(lambda self: self.sent)
    @rule()
    def full_refresh(self) -> None:
        self.target.full_refresh()
        self.start_anew()

    @invariant()
    def equals_oracle(self) -> None:
        self.compare("delta-rs")

    def compare(self, reader: str) -> None:
        names = self.target.schema.names
        found = multiset(self.target.rows(reader=reader), columns=names)
        assert found == multiset(self.model, columns=names)
        if not self.has_rows_by_hand:
            closed = expected(self.read, keys=self.keys, sequence=self.sequence)
            assert found == multiset(closed, columns=names)

    @property
    def has_misleading_types(self) -> bool:
        """Long decimals, whose bounds are rounded, and fractions, whose bounds leave NaN out."""
        kinds = [field.dataType for field in self.target.schema.fields]
        return any(
            isinstance(kind, FloatType | DoubleType)
            or (isinstance(kind, DecimalType) and kind.precision > 15)
            for kind in kinds
        )

    def teardown(self) -> None:
        try:
            if hasattr(self, "target"):
                for reader in self.readers:
                    # Bounds that delta-rs writes lead Sail astray.
                    if reader != "sail" or not (
                        self.has_rows_by_hand and self.has_misleading_types
                    ):
                        self.compare(reader)
        finally:
            shutil.rmtree(self.folder)


def recompute(path: Path) -> Path:
    """Evaluate the hidden sequence over stored rows, as an engine would."""
    rows = pq.read_table(path).to_pylist()
    return write_parquet(
        path.with_name("sequences.parquet"),
        [
            {POSITION_COLUMN: row[POSITION_COLUMN], SEQUENCE_COLUMN: hidden_sequence(row)}
            for row in rows
        ],
        StructType(
            [StructField(POSITION_COLUMN, LongType()), StructField(SEQUENCE_COLUMN, HIDDEN_TYPE)]
        ),
    )


def keeps_partition_values(data_type: DataType) -> bool:
    """Whether its values survive as partition values, whoever writes them.

    An empty text or binary is null there, and delta-rs writes -0.01 as `0.-1`.
    """
    return not isinstance(data_type, StringType | BinaryType | DecimalType)
