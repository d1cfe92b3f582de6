"""Files that are broken, huge or odd give an error that names them, or rescued rows; others load.

Each format's files lie in one folder with two good ones, and one update in a process of its own
reads them all, so that the peak of its memory can be measured.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAM = Path(__file__).parent / "hostile_update.py"
HUGE_BYTES = 200_000_000
# The engine, Python, and DuckDB's limit come to some 900 MB, whatever the files are.
PEAK_BYTES = 1_500_000_000
MANY = 1_000_000

# What becomes of a file: its rows, each with what was rescued of it, or the reason in the error.
Outcome = list[tuple[Any, Any, Any]] | str
GOOD: Outcome = [(1, "x", None)]
TRUNCATED = "ended before the end-of-stream marker"


@dataclass(frozen=True)
class Huge:
    """A content that is made when it is written, so that this process stays small."""

    begin: bytes
    filler: bytes
    end: bytes = b""
    count: int = 0

    def made(self) -> bytes:
        return self.begin + self.filler * (self.count or HUGE_BYTES // len(self.filler)) + self.end


Content = bytes | Huge


def corrupt(text: str, a: Any = None, b: Any = None) -> tuple[Any, Any, Any]:
    return a, b, {"_corrupt_record": text}


CSV: dict[str, tuple[Content, Outcome]] = {
    "good.csv": (b"a,b\n1,x\n", GOOD),
    "zz.csv": (b"a,b\n1,x\n", GOOD),
    "latin1.csv": ("a,b\n1,café\n".encode("latin-1"), [(1, "caf�", None)]),
    "utf16.csv": (
        "a,b\n1,x\n".encode("utf-16-be"),
        [(None, None, {"\0a\0": "\x001\0", "\0b\0": "\0x\0"})],
    ),
    "nul.csv": (b"a,b\n1,x\0y\n\0,z\n", [(1, "x\0y", None), (None, "z", {"a": "\0"})]),
    "truncated.csv.gz": (gzip.compress(b"a,b\n" + b"1,x\n" * 100_000)[:-100], TRUNCATED),
    "no.csv.gz": (b"a,b\n1,x\n", "Not a gzipped file"),
    "quote.csv": (b'a,b\n1,"never closed\n2,y\n', [(1, "never closed", None), (2, "y", None)]),
    "overflow.csv": (
        b"a,b\n99999999999999999999,x\n1e400,y\n",
        [(None, "x", {"a": "99999999999999999999"}), (None, "y", {"a": "1e400"})],
    ),
    "twice.csv": (b"a,a,b\n1,2,x\n", [(None, "x", {"a0": "1", "a1": "2"})]),
    "case.csv": (b"A,a,b\n1,2,x\n", [(None, "x", {"A0": "1", "a1": "2"})]),
    "ragged.csv": (b"a,b\n1\n1,x,y\n", [(1, None, None), (1, "x", {"_c2": "y"})]),
    "empty.csv": (b"", []),
    "mark.csv": (b"\xef\xbb\xbfa,b\n1,x\n", GOOD),
    "line.csv": (Huge(b"a,b\n1,", b"x"), "more than 16777216 characters"),
    "columns.csv": (Huge(b"a", b",c", count=MANY), "more than 20480 values"),
    "values.csv": (Huge(b"a,b\n1,x", b",1", count=MANY), "more than 20480 values"),
    "bomb.csv.gz": (Huge(b"a,b\n1,x\n", b"\0"), "more than 16777216 characters"),
}
JSON: dict[str, tuple[Content, Outcome]] = {
    "good.json": (b'{"a": 1, "b": "x"}\n', GOOD),
    "zz.json": (b'{"a": 1, "b": "x"}\n', GOOD),
    "latin1.json": (
        '{"a":1,"b":"café"}\n'.encode("latin-1"),
        [corrupt(r'{"a":1,"b":"caf\xe9"}', 1, "caf�")],
    ),
    "nul.json": (
        b'{"a":1,"b":"x\0y"}\n{"a":1,"b":"x\\u0000y"}\n',
        [(1, "x\0y", None), corrupt('{"a":1,"b":"x\0y"}')],
    ),
    "truncated.json.gz": (gzip.compress(b'{"a": 1}\n' * 100_000)[:-100], TRUNCATED),
    "cut.json": (b'{"a":1,"b":"x"}\n{"a":1,"b"', [*GOOD, corrupt('{"a":1,"b"')]),
    "quote.json": (b'{"a":1,"b":"x\n{"a":1,"b":"x"}', [*GOOD, corrupt('{"a":1,"b":"x')]),
    "overflow.json": (
        b'{"a":99999999999999999999,"b":"x"}\n{"a":1e999}\n',
        [(None, "x", {"a": 99999999999999999999}), (None, None, {"a": float("inf")})],
    ),
    "twice.json": (b'{"a":2,"a":1,"b":"x"}\n', [(1, "x", {"a": 2})]),
    "case.json": (b'{"A":2,"a":1,"b":"x"}\n', [(1, "x", {"A": 2})]),
    "deep.json": (
        b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        [corrupt('{"a":' + "[" * 50_000 + "]" * 50_000 + "}")],
    ),
    "half.json": (b'{"a":1,"b":"\\ud800"}', [corrupt(r'{"a":1,"b":"\ud800"}', 1, "�")]),
    "line.json": (Huge(b'{"a":1,"b":"', b"x", b'"}'), "longer than 16 MiB"),
    "bomb.json.gz": (Huge(b'{"a":1,"b":"x"}\n', b" "), GOOD),
}
XML: dict[str, tuple[Content, Outcome]] = {
    "good.xml": (b"<q><r><a>1</a><b>x</b></r></q>", GOOD),
    "zz.xml": (b"<q><r><a>1</a><b>x</b></r></q>", GOOD),
    "latin1.xml": (
        '<?xml version="1.0" encoding="ISO-8859-1"?><q><r><b>é</b></r></q>'.encode("latin-1"),
        [(None, "é", None)],
    ),
    "nul.xml": (b"<q><r><a>1\0</a></r></q>", [corrupt("<r><a>1\0</a></r>")]),
    "open.xml": (
        b"<q><r><a>1</a><b>x</b></r><r><a>1</a>",
        [*GOOD, corrupt("<r><a>1</a>")],
    ),
    "entities.xml": (
        b'<!DOCTYPE q [<!ENTITY a SYSTEM "file:///etc/passwd">]><q><r><a>1</a><b>&a;</b></r></q>',
        [corrupt("<r><a>1</a><b>&a;</b></r>")],
    ),
    "overflow.xml": (
        b"<q><r><a>99999999999999999999</a></r></q>",
        [(None, None, {"a": "99999999999999999999"})],
    ),
    "twice.xml": (b"<q><r><a>1</a><a>2</a></r></q>", [(None, None, {"a": ["1", "2"]})]),
    "case.xml": (b"<q><r><A>2</A><a>1</a><b>x</b></r></q>", [(1, "x", {"A": "2"})]),
    "line.xml": (Huge(b"<q><r><b>", b"x", b"</b></r></q>"), "longer than 16 MiB"),
    "tag.xml": (Huge(b"<", b"x"), "longer than 16 MiB"),
}


def parquet(**columns: Any) -> bytes:
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data)
    return data.getvalue()


INTEGERS = pa.array([1], pa.int32())
PARQUET: dict[str, tuple[Content, Outcome]] = {
    "good.parquet": (parquet(a=INTEGERS, b=["x"]), GOOD),
    "zz.parquet": (parquet(a=INTEGERS, b=["x"]), GOOD),
    "upper.parquet": (parquet(A=INTEGERS, B=["x"]), GOOD),
    "truncated.parquet": (parquet(a=INTEGERS, b=["x"])[:-30], "No magic bytes"),
    "footer.parquet": (parquet(a=INTEGERS)[:-8] + b"\xff\xff\xff\x7fPAR1", "Footer length"),
    "empty.parquet": (b"", "too small to be a Parquet file"),
    "no.parquet": (b"a,b\n1,x\n2,y\n", "No magic bytes"),
    "overflow.parquet": (parquet(a=[2**40], b=["x"]), [(None, "x", {"a": 2**40})]),
    "kinds.parquet": (parquet(a=[[1]], b=["x"]), [(None, "x", {"a": [1]})]),
    "bytes.parquet": (parquet(a=INTEGERS, b=[b"\xff"]), [(1, None, {"b": "\\xFF"})]),
    "case.parquet": (
        parquet(a=INTEGERS, A=pa.array([2], pa.int32()), b=["x"]),
        [(1, "x", {"A_1": 2})],
    ),
    "nul.parquet": (parquet(a=INTEGERS, b=["x"], **{"n\0": ["y"]}), [(1, "x", {"n\0": "y"})]),
    "value.parquet": (Huge(b"", b"x"), "more memory than there is"),
}


def avro(*rows: dict[str, Any], **types: Any) -> bytes:
    data = io.BytesIO()
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    fastavro.writer(data, {"type": "record", "name": "r", "fields": fields}, rows)
    return data.getvalue()


AVRO: dict[str, tuple[Content, Outcome]] = {
    "good.avro": (avro({"a": 1, "b": "x"}, a="int", b="string"), GOOD),
    "zz.avro": (avro({"a": 1, "b": "x"}, a="int", b="string"), GOOD),
    "truncated.avro": (avro({"a": 1, "b": "x" * 99}, a="int", b="string")[:-20], "ends within"),
    "empty.avro": (b"", "is it an avro file?"),
    "no.avro": (b"a,b\n1,x\n", "is it an avro file?"),
    "overflow.avro": (
        avro({"a": 2**40, "b": "x"}, a="long", b="string"),
        [(None, "x", {"a": 2**40})],
    ),
    "kinds.avro": (
        avro({"a": ["y"], "b": "x"}, a={"type": "array", "items": "string"}, b="string"),
        [(None, "x", {"a": ["y"]})],
    ),
    "case.avro": (
        avro({"a": 1, "A": 2, "b": "x"}, a="int", A="int", b="string"),
        [(1, "x", {"A_1": 2})],
    ),
}
FORMATS = {"csv": CSV, "json": JSON, "xml": XML, "parquet": PARQUET, "avro": AVRO}
OPTIONS = {"csv": ", header => true", "xml": ", rowTag => 'r'"}


def made(name: str, content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    if name.endswith(".gz"):
        return gzip.compress(content.made(), compresslevel=1)
    if name.endswith(".parquet"):
        return parquet(a=INTEGERS, b=[content.made().decode()])
    return content.made()


def measured(suppliers) -> tuple[list[str], int]:
    """The errors of an update in a process of its own, and the peak of its memory."""
    command = [sys.executable, PROGRAM, suppliers.pipeline.root / "spark-pipeline.yml"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(process.stdout)
    return found["errors"], found["peak_bytes"]


def rows_by_file(suppliers) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for a, b, rescued, name in suppliers.rows():
        kept = rescued and json.loads(rescued)
        if kept is not None:
            assert kept.pop("_file_path") == suppliers.uri(name)
        found.setdefault(name, []).append((a, b, kept))
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", FORMATS)
def test_each_file_gives_rows_or_a_reason_in_bounded_memory(suppliers, form):
    suppliers.query(
        f"SELECT *, _metadata.file_name AS f FROM STREAM read_files('SENT', format => '{form}', "
        f"schema => 'a INT, b STRING, _rescued_data STRING'{OPTIONS.get(form, '')})"
    )
    for name, (content, _) in FORMATS[form].items():
        suppliers.send(name, made(name, content))
    (error,), peak_bytes = measured(suppliers)
    outcomes = {name: outcome for name, (_, outcome) in FORMATS[form].items()}
    reasons = {name: reason for name, reason in outcomes.items() if isinstance(reason, str)}
    assert f"could not read {len(reasons)} files" in error
    for name, reason in reasons.items():
        (line,) = [line for line in error.splitlines() if f"/{name}: " in line]
        assert reason in line
    expected = {name: sorted(rows, key=repr) for name, rows in outcomes.items() if rows}
    assert rows_by_file(suppliers) == {
        name: rows for name, rows in expected.items() if name not in reasons
    }
    assert peak_bytes < PEAK_BYTES


@pytest.mark.parametrize("form", FORMATS)
def test_columns_are_inferred_beside_files_that_cannot_be_read(suppliers, form):
    suppliers.query(
        f"SELECT a, b, _metadata.file_name AS f FROM STREAM read_files('SENT', "
        f"format => '{form}', schemaEvolutionMode => 'rescue'{OPTIONS.get(form, '')})"
    )
    (good, _), *_ = FORMATS[form].values()
    suppliers.send(f"good.{form}", good)
    broken = "broken.csv.gz" if form in {"csv", "json", "xml"} else f"broken.{form}"
    suppliers.send(broken, b"this is nothing")
    error = suppliers.error()
    assert f"{suppliers.uri(broken)}: " in str(error)
    assert suppliers.rows() == [(1, "x", f"good.{form}")]


ODD_NAMES = (
    'it\'s "quoted"\n',
    "100%25 a?b#c",
    "$(touch x);--",
    "käse 漢字",
    "{a,b}[c]*",
    "\\*backslash",
    "back\\slash",
    "\udcff\udcfe",
)


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_any_name_are_read_and_known_again(suppliers, form):
    suppliers.query(
        f"SELECT a, _metadata.file_path AS f FROM STREAM read_files('SENT', format => '{form}', "
        f"schema => 'a INT', allowOverwrites => true{OPTIONS.get(form, '')})"
    )
    (good, _), *_ = FORMATS[form].values()
    for name in ODD_NAMES:
        suppliers.send(f"{name}.{form}", good)
    suppliers.updated()
    suppliers.updated()
    found = [path.rpartition("/")[2] for _, path in suppliers.rows()]
    names = [unquote_to_bytes(name) for name in found]
    assert sorted(names) == sorted(os.fsencode(f"{name}.{form}") for name in ODD_NAMES)


def test_links_are_followed_and_what_is_no_file_is_passed_over(suppliers):
    suppliers.query(
        "SELECT v, _metadata.file_name AS f FROM STREAM read_files('SENT', format => 'csv', "
        "schema => 'v INT')"
    )
    outside = suppliers.sent.parent / "outside.csv"
    outside.write_text("1\n")
    (suppliers.sent / "link.csv").symlink_to(outside)
    (suppliers.sent / "nowhere.csv").symlink_to("/nonexistent")
    (suppliers.sent / "itself.csv").symlink_to(suppliers.sent / "itself.csv")
    (suppliers.sent / "above").symlink_to(suppliers.sent)
    os.mkfifo(suppliers.sent / "pipe.csv")
    suppliers.send("folder.csv/inside.csv", "2\n")
    suppliers.updated()
    assert suppliers.rows() == [(1, "link.csv"), (2, "inside.csv")]


@pytest.mark.parametrize("form", ["text", "binaryFile"])
def test_huge_content_of_formats_without_columns_stays_in_bounded_memory(suppliers, form):
    value = "value" if form == "text" else "length"
    suppliers.query(f"SELECT {value} FROM STREAM read_files('SENT', format => '{form}')")
    suppliers.send("good.txt", b"good\n")
    suppliers.send("huge.txt", Huge(b"", b"x").made())
    (error,), peak_bytes = measured(suppliers)
    assert f"{suppliers.uri('huge.txt')}: " in error
    assert suppliers.rows() == [("good",) if form == "text" else (5,)]
    assert peak_bytes < PEAK_BYTES
