"""The file of Spark's answers: by case and cut (or `whole`), the columns and rows of the result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import oracle
from tests.shapes.case import Case
from tests.shapes.rows import as_json, in_order

FILE = Path(__file__).with_name("spark_answers.json")

# Columns and rows of a result.
Answer = dict[str, Any]
Answers = dict[str, dict[str, Answer]]


def read_answers() -> Answers:
    return json.loads(FILE.read_text("utf-8"))["answers"] if FILE.exists() else {}


def write_answers(version: str, answers: Mapping[str, Mapping[str, Answer]]) -> None:
    """Write the file with one row a line, so that a change of an answer can be read."""
    cases = (_nested(name, (_answer(*each) for each in answers[name].items())) for name in answers)
    text = ",\n".join(cases)
    head = f'{{"spark": {as_json(version)}, "answers": {{'
    FILE.write_text(f"{head}\n{text}\n}}}}\n", encoding="utf-8")


def _nested(name: str, parts: Iterator[str]) -> str:
    return f"{as_json(name)}: {{\n" + ",\n".join(parts) + "\n}"


def _answer(cut: str, answer: Answer) -> str:
    head = f' {as_json(cut)}: {{"columns": {as_json(answer["columns"])}, "rows": ['
    rows = ",\n".join(f"  {as_json(row)}" for row in answer["rows"])
    return f"{head}\n{rows}\n ]}}"


def replaced(answer: Answer, case: Case) -> list[list[Any]]:
    """What a REPLACE USING flow makes of the rows of an append flow."""
    rows = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
    kept = oracle.expected(rows, keys=case.keys, sequence=lambda row: row[case.sequence])
    return in_order(list(row.values()) for row in kept)
