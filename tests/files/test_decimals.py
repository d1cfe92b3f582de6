"""A DECIMAL that no table can hold is refused before anything is read, and makes no table."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DecimalType, StructField, StructType

from millpond.delta.schema import check_schema
from millpond.errors.delta import UnsupportedDeltaTypeError

CSV = "STREAM read_files('SENT', format => 'csv', header => true"
DATASETS = {
    "hint": f"AS SELECT * FROM {CSV}, schemaHints => 'a DECIMAL(?)')",
    "given": f"AS SELECT * FROM {CSV}, schema => 'a DECIMAL(?)')",
    "nested": "AS SELECT * FROM STREAM read_files('SENT/json', format => 'json', "
    "schemaHints => 's.d DECIMAL(?)')",
    "unseen": f"AS SELECT CAST(a AS STRING) AS a FROM {CSV}, schema => 'a DECIMAL(?)')",
    "cast_in_query": f"AS SELECT array(CAST(a AS DECIMAL(?))) AS a FROM {CSV})",
    "declared": f"(a DECIMAL(?)) AS SELECT a FROM {CSV}, schema => 'a INT')",
}


@pytest.mark.parametrize("digits", ["39", "50,2", "5,7", "0"])
def test_a_decimal_with_too_many_digits_is_refused_with_its_place(suppliers, digits):
    suppliers.send("a.csv", "a\n1\n")
    suppliers.send("json/a.json", '{"s": {"d": 1}}\n')
    text = "\n".join(
        f"CREATE OR REFRESH STREAMING TABLE {name} {rest.replace('?', digits)};"
        for name, rest in DATASETS.items()
    )
    suppliers.write(text)
    problems = suppliers.dry_run()
    assert sorted(problem.where.line for problem in problems) == [*range(1, 1 + len(DATASETS))]
    assert all("a DECIMAL has 1 to 38 digits" in str(problem) for problem in problems)
    suppliers.update()
    assert not suppliers.pipeline.layout.root.joinpath("tables").exists()


@pytest.mark.parametrize("decimal", [DecimalType(39, 0), DecimalType(5, 7), DecimalType(5, -1)])
def test_no_table_is_made_with_such_a_column(decimal):
    for kind in (decimal, ArrayType(decimal), StructType([StructField("d", decimal)])):
        with pytest.raises(UnsupportedDeltaTypeError, match="a DECIMAL has 1 to 38 digits") as told:
            check_schema(StructType([StructField("a", kind)]), [])
        assert "'a" in str(told.value)
