"""CSV files mean what they mean to Apache Spark's reader, and nothing in them is lost silently."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.delta import connect
from millpond.errors import MillpondError
from millpond.errors.file_formats import (
    CsvQuoteError,
    HeaderMismatchError,
    InvalidFormatOptionError,
    MalformedRowError,
    RowTooLongError,
    TooManyColumnsError,
    UnsupportedColumnTypeError,
    UnsupportedFormatOptionError,
    ValueTooLongError,
)
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection
from millpond.files.formats.csv import CsvFormat
from millpond.files.formats.csv_options import csv_options
from millpond.files.formats.csv_survey import survey
from millpond.files.formats.csv_tables import tables
from millpond.files.formats.csv_tokens import Tokenizer
from millpond.files.options import Dialect, EvolutionMode, FileOptions, ParseMode

# What Spark 4.2.1 answers: for whole files, and for lines read as strings. Lines have `N` for NULL,
# so that an empty text differs from it.
ANSWERS = json.loads(Path(__file__).with_name("spark_csv_answers.json").read_text())
TYPES: dict[str, DataType] = {"int": IntegerType(), "string": StringType()}


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


INT, STRING = IntegerType(), StringType()


@dataclass
class Reader:
    """Reads texts as files."""

    connection: duckdb.DuckDBPyConnection
    folder: Path
    sql: str = ""
    new_columns: StructType | None = None

    def files(self, *texts: str | bytes) -> list[LocalFile]:
        found = []
        for number, text in enumerate(texts):
            path = self.folder / f"{number}.csv"
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            found.append(LocalFile(path, f"file:///data/{number}.csv"))
        return found

    def infer(self, *texts: str | bytes, **options: Any) -> StructType:
        return CsvFormat().infer(
            self.files(*texts),
            file_options(**options),
            connection=self.connection,
            folder=self.folder,
        )

    def read(
        self, *texts: str | bytes, columns: StructType | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """The rows, each with its columns by name, those of a file together and in order."""
        files = self.files(*texts)
        chosen = file_options(**options)
        if columns is None:
            columns = CsvFormat().infer(
                files, chosen, connection=self.connection, folder=self.folder
            )
        selection = CsvFormat().select(
            files, chosen, columns, connection=self.connection, folder=self.folder
        )
        return selection.taken(self._rows)

    def _rows(self, selection: Selection) -> list[dict[str, Any]]:
        self.sql = selection.sql
        self.new_columns = selection.new_columns
        found = self.connection.execute(selection.sql)
        assert found.description is not None
        names = [name for name, *_ in found.description]
        assert names[-1] == RESCUED
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def values(self, *texts: str | bytes, **options: Any) -> list[tuple[Any, ...]]:
        """The same without the columns beside."""
        beside = (FILE_INDEX, RESCUED)
        return [
            tuple(value for name, value in row.items() if name not in beside)
            for row in self.read(*texts, **options)
        ]

    def rescued(self, *texts: str | bytes, **options: Any) -> list[Any]:
        rows = self.read(*texts, rescued_column="_rescued_data", **options)
        return [None if row[RESCUED] is None else json.loads(row[RESCUED]) for row in rows]

    @property
    def is_by_duckdb(self) -> bool:
        """Whether DuckDB read all of the files of the last read itself."""
        return "read_parquet" not in self.sql


def file_options(
    *,
    options: Mapping[str, str] | None = None,
    header: bool = True,
    mode: str = "PERMISSIVE",
    dialect: Dialect = Dialect.CLOUD_FILES,
    **others: Any,
) -> FileOptions:
    given = {"header": str(header).lower(), **(options or {})}
    return FileOptions(
        format="csv",
        paths=("/data",),
        mode=ParseMode(mode),
        dialect=dialect,
        format_options={key.lower(): value for key, value in given.items()},
        **others,
    )


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        # Rows of a file stay in order, for the tests to compare.
        connection.execute("SET preserve_insertion_order = true")
        yield connection


@pytest.fixture
def reader(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Reader:
    return Reader(connection, tmp_path)


@pytest.mark.parametrize(
    "case", ANSWERS["files"], ids=lambda case: case["text"][:30].encode("unicode_escape").decode()
)
def test_a_file_is_what_spark_says(reader: Reader, case: dict[str, Any]) -> None:
    given = {"header": "false", **case["options"]}
    columns = None
    if "schema" in case:
        pairs = [pair.split() for pair in case["schema"].split(",")]
        columns = schema(**{name: TYPES[kind] for name, kind in pairs})
    options = {
        "options": given,
        "mode": given.get("mode", "PERMISSIVE"),
        "dialect": Dialect.SPARK,
        "schema": columns,
        "infer_types": given.get("inferSchema") == "true",
    }
    if case.get("fails"):
        with pytest.raises(MillpondError):
            reader.read(case["text"], columns=columns, **options)
        return
    columns = columns or reader.infer(case["text"], **options)
    assert columns.simpleString() == case["type"]
    rows = reader.values(case["text"], columns=columns, **options)
    assert [
        [None if v is None else str(v).removesuffix("+00:00") for v in row] for row in rows
    ] == case["rows"]


@pytest.mark.parametrize("answers", ANSWERS["lines"], ids=lambda answers: str(answers["options"]))
def test_a_line_is_what_spark_says(answers: dict[str, Any]) -> None:
    tokenizer = Tokenizer(csv_options(file_options(options=answers["options"])))
    found = []
    for line, _ in answers["lines"]:
        values = tokenizer.split(line)
        while values and values[-1] is None:
            values.pop()
        found.append([line, values])
    assert found == answers["lines"]


def test_columns_are_found_by_the_names_of_the_header(reader: Reader) -> None:
    rows = reader.values("a,b\n1,x\n", "B,a\ny,2\n", "a\n3\n", columns=schema(a=INT, b=STRING))
    assert sorted(rows) == [(1, "x"), (2, "y"), (3, None)]


def test_rows_say_which_file_they_are_of(reader: Reader) -> None:
    rows = reader.read("", "a,b\n1,2\n", "b,a\n3,4\n", "a,b\n5\n", "a,b\n6,7\n")
    assert sorted((row[FILE_INDEX], row["a"]) for row in rows) == [
        (1, "1"),
        (2, "4"),
        (3, "5"),
        (4, "6"),
    ]
    # All but the file with a row that is too short are read by DuckDB.
    assert reader.sql.count("read_csv(") == 2
    assert reader.sql.count("read_parquet(") == 1


def test_a_schema_of_plain_spark_is_that_of_the_positions(reader: Reader) -> None:
    columns = schema(a=INT, b=INT)
    rows = reader.values("b,a\n1,2\n", columns=columns, schema=columns, dialect=Dialect.SPARK)
    assert rows == [(1, 2)]


@pytest.mark.parametrize("text", ["a,b\n1,2,3\n4,5,6\n", "a,b\n1,2,3\n", "a\n1,2,3\n4,5,6,7\n"])
def test_a_header_of_plain_spark_that_lacks_names_hides_no_values(reader: Reader, text) -> None:
    columns = schema(a=INT, b=INT, c=INT)
    spark = {"columns": columns, "schema": columns, "dialect": Dialect.SPARK}
    rows = [(1, 2, 3), (4, 5, 6)][: text.count("\n") - 1]
    assert reader.values(text, **spark) == rows
    complete = [row for row in rows if "7" not in text or row != (4, 5, 6)]
    assert reader.values(text, mode="DROPMALFORMED", **spark) == complete
    assert reader.values(f"{text}8,9\n", mode="DROPMALFORMED", **spark) == complete


def test_rows_are_dropped_for_their_own_width_and_not_for_that_of_the_first(reader: Reader) -> None:
    spark = {"dialect": Dialect.SPARK, "mode": "DROPMALFORMED", "header": False}
    columns = schema(a=INT, b=INT, c=INT)
    text = "1,2\n3,4,5\n"
    assert reader.values(text, columns=columns, schema=columns, **spark) == [(3, 4, 5)]


def test_a_path_may_have_any_characters(reader: Reader) -> None:
    folder = reader.folder / "it's [a]=*\n{1}" / "key=1"
    folder.mkdir(parents=True)
    for number, text in enumerate(["key,b\n2,x\n", "key,b\n3\n"]):
        (folder / f"{number}.csv.gz").write_text(text)
    files = [LocalFile(path, path.as_uri()) for path in sorted(folder.iterdir())]
    selection = CsvFormat().select(
        files,
        file_options(),
        schema(key=INT, b=STRING),
        connection=reader.connection,
        folder=folder,
    )
    rows = selection.taken(lambda taken: reader.connection.execute(taken.sql).fetchall())
    assert sorted(rows) == [(2, "x", 0, None), (3, None, 1, None)]


def test_inference_unites_the_columns_of_all_files(reader: Reader) -> None:
    inferred = reader.infer("a,b\n1,x\n", "B,c\n1,2020-01-01\n", "a\n1.5\n", infer_types=True)
    assert inferred == schema(a=DoubleType(), b=STRING, c=DateType())


def test_inference_looks_at_some_rows_of_each_large_file(reader: Reader) -> None:
    rows = "12345678,abcdefghijklmnopqrstuvwxyz\n" * 500_000
    inferred = reader.infer(f"a,b\n{rows}", f"a,b\n{rows}", "a,b\nx,1\n", infer_types=True)
    assert inferred == schema(a=STRING, b=STRING)
    reader.read(f"a,b\n{rows}x,y\n", columns=schema(a=INT), rescued_column="_rescued_data")
    rescued = reader.connection.execute(
        f"SELECT {RESCUED} FROM ({reader.sql}) WHERE a IS NULL"
    ).fetchall()
    assert rescued == [('{"a":"x","b":"y"}',)]


def test_without_inference_of_types_all_columns_are_strings(reader: Reader) -> None:
    assert reader.infer("1,2\n", "3\n", header=False) == schema(_c0=STRING, _c1=STRING)


def test_inference_knows_the_types_of_spark(reader: Reader) -> None:
    text = (
        "i,l,d,f,t,b,s,n\n"
        "1,9999999999,99999999999999999999,1e3,2020-01-01 10:00:00,true,x,\n"
        ",1,2,Inf,2020-01-01,FALSE,1,\n"
    )
    assert reader.infer(text, infer_types=True) == schema(
        i=INT,
        l=LongType(),
        d=DecimalType(20, 0),
        f=DoubleType(),
        t=TimestampType(),
        b=BooleanType(),
        s=STRING,
        n=STRING,
    )


def test_values_that_do_not_fit_are_rescued(reader: Reader) -> None:
    columns = schema(a=INT, b=DateType(), c=STRING)
    text = 'a,b,c\n1,2020-01-01,x\n9999999999,2020-13-01,"""q"\n,,\n'
    assert reader.rescued(text, columns=columns, options={"escape": '"'}) == [
        None,
        {"a": "9999999999", "b": "2020-13-01"},
        None,
    ]
    assert reader.is_by_duckdb


def test_columns_that_were_not_asked_for_are_rescued_and_reported(reader: Reader) -> None:
    text = "a,x,B\n1,y,2\n3,,\n"
    options = {"columns": schema(a=INT), "infer_types": True}
    assert reader.rescued(text, evolution=EvolutionMode.RESCUE, **options) == [
        {"x": "y", "B": "2"},
        None,
    ]
    rows = reader.values(text, evolution=EvolutionMode.ADD_NEW_COLUMNS, **options)
    assert rows == [(1,), (3,)]
    assert reader.new_columns == schema(x=STRING, B=INT)


def test_names_that_differ_in_case_are_rescued_where_case_matters(reader: Reader) -> None:
    options = {"readerCaseSensitive": "true"}
    assert reader.rescued("A\n1\n", columns=schema(a=INT), options=options) == [{"A": "1"}]
    assert reader.values("A\n1\n", columns=schema(a=INT)) == [(1,)]


def test_columns_that_differ_in_case_only_have_their_places_in_their_names(reader: Reader) -> None:
    columns = schema(a0=INT, A1=INT)
    assert reader.values("a,A\n1,2\n", columns=columns) == [(1, 2)]
    assert reader.values("A,a\n3,4\n", columns=columns) == [(3, 4)]


def test_what_a_row_has_too_much_is_rescued_by_its_position(reader: Reader) -> None:
    text = "a,b\n1,2\n3,4,5,,7\n6\n"
    assert reader.rescued(text) == [None, {"_c2": "5", "_c4": "7"}, None]
    assert reader.values(text) == [("1", "2"), ("3", "4"), ("6", None)]


def test_rows_without_header_may_be_longer_than_the_first(reader: Reader) -> None:
    columns = schema(_c0=INT, _c1=INT, _c2=INT)
    assert reader.values("1\n2,3,4\n", columns=columns, header=False) == [
        (1, None, None),
        (2, 3, 4),
    ]


def test_malformed_rows_are_left_out_where_that_is_asked_for(reader: Reader) -> None:
    columns = schema(a=INT, b=INT)
    text = "a,b\n1,2\nx,2\n3\n4,5,6\n7,8,\n9,\n"
    assert reader.values(text, columns=columns, mode="DROPMALFORMED") == [(1, 2), (9, None)]
    # A value that is kept beside does not make a row malformed.
    assert reader.values(
        text, columns=columns, mode="DROPMALFORMED", rescued_column="_rescued_data"
    ) == [(1, 2), (None, 2), (9, None)]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a,b\n1,2\n\n3,x\n", 4, 'column b is int, and not "x"'),
        ("a,b\n1,2\n3\n", 3, "it has 1 values, not 2"),
        ('a,b\n"1\n",2,3\n', 2, "it has 1 values, not 2"),
    ],
)
def test_a_malformed_row_fails_the_read_where_that_is_asked_for(
    reader: Reader, text: str, line: int, reason: str
) -> None:
    with pytest.raises(MalformedRowError, match=f"line {line} of file:///data/1.csv .*{reason}"):
        reader.read("a,b\n1,2\n", text, columns=schema(a=INT, b=INT), mode="FAILFAST")


def test_a_read_that_may_fail_gives_all_rows_if_all_are_well(reader: Reader) -> None:
    assert reader.values("a,b\n1,2\n", columns=schema(a=INT, b=INT), mode="FAILFAST") == [(1, 2)]
    assert reader.is_by_duckdb


def test_the_text_of_a_malformed_row_is_kept_in_the_column_for_it(reader: Reader) -> None:
    columns = schema(a=INT, b=INT, _corrupt_record=STRING)
    assert reader.values("a,b\n1,2\n3,x\n4\n", columns=columns) == [
        (1, 2, None),
        (3, None, "3,x"),
        (4, None, "4"),
    ]
    assert reader.values("a,b\n1,2\n", columns=columns) == [(1, 2, None)]


def test_lines_are_left_out_at_the_beginning(reader: Reader) -> None:
    assert reader.values('by "us",\n\na,b\n1,2\n', options={"skipRows": "2"}) == [("1", "2")]


def test_a_file_of_one_column_keeps_its_empty_values(reader: Reader) -> None:
    assert reader.values('a\nx\n\n""\n"  "\ny\n') == [("x",), (None,), ("  ",), ("y",)]


def test_names_may_have_quotes_and_ends_of_lines(reader: Reader) -> None:
    options = {"multiLine": "true", "escape": '"'}
    rows = reader.read('"a\n""b""","c\'d"\n1,2\n', options=options)
    assert rows == [{'a\n"b"': "1", "c'd": "2", RESCUED: None}]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4",
        "a,b\n1,2\r\n3,4\r",
        "\ufeffa,b\n1,2\n\n  \n3,4",
        "\n\na,b\n\n1,2\n3,4\n\n",
    ],
)
def test_lines_end_in_each_usual_way(reader: Reader, text: str) -> None:
    assert reader.read(text) == [
        {"a": "1", "b": "2", RESCUED: None},
        {"a": "3", "b": "4", RESCUED: None},
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('a,b\n1,"x\r\ny"\n2,"p\rq"\n3,"l\nm"\n', ["x\r\ny", "p\rq", "l\nm"]),
        ('a,b\r\n1,"x\r\ny"\r\n2,"p\rq"\n3,"l\nm"\r\n', ["x\ny", "p\rq", "l\nm"]),
        ('a,b\r1,"p\rq"\r2,"l\nm"\r', ["p\nq", "l\nm"]),
        ("a,b\n1,x\r\n2,y\n", ["x\r", "y"]),
    ],
)
def test_ends_of_lines_within_quotes_are_kept_but_the_files_own(
    reader: Reader, text: str, values: list[str]
) -> None:
    found = reader.values(text, options={"multiLine": "true"})
    assert [value for _, value in found] == values


def test_bytes_that_are_no_utf_8_become_replacement_characters(reader: Reader) -> None:
    assert reader.values(b"a,b\n\xff\xfe,1\n") == [("\ufffd\ufffd", "1")]


def test_nul_characters_are_kept(reader: Reader) -> None:
    assert reader.values("a,b\n1\x00,\x00\n") == [("1\x00", "\x00")]


def test_a_quote_that_never_closes_ends_with_its_line(reader: Reader) -> None:
    text = 'a,b\n1,"x\n' + "2,y\n" * 3
    assert reader.values(text) == [("1", "x"), *[("2", "y")] * 3]
    assert reader.values(text, options={"multiLine": "true"})[0][0] == "1"


def test_a_row_over_lines_is_read_up_to_a_limit(reader: Reader) -> None:
    line = "2," + "y" * 1000 + "\n"
    text = 'a,b\n1,"x\n' + line * 20_000
    with pytest.raises(RowTooLongError, match=r"line 2 of file:///data/0.csv has more than"):
        reader.read(text, columns=schema(a=STRING), options={"multiLine": "true"})


def test_a_long_line_is_read_up_to_a_limit(reader: Reader) -> None:
    long = "x" * 5_000_000
    assert reader.values(f"a,b\n1,{long}\n2,y\n") == [("1", long), ("2", "y")]
    with pytest.raises(RowTooLongError, match=r"line 2 of file:///data/0.csv has more than"):
        reader.read(f"a,b\n1,{long * 4}\n2,y\n")


def test_a_row_of_very_many_values_is_refused(reader: Reader) -> None:
    names = ",".join(f"c{number}" for number in range(30_000))
    with pytest.raises(TooManyColumnsError, match=r"line 1 of file:///data/0.csv .* 20480 values"):
        reader.infer(f"{names}\n1,2\n")
    with pytest.raises(TooManyColumnsError, match=r"line 2 of file:///data/0.csv .* 20480 values"):
        reader.read(f"a,b\n{names}\n")


def test_a_file_without_rows_has_none(reader: Reader) -> None:
    columns = schema(a=INT, b=STRING)
    assert reader.infer("", "\n\n") == StructType([])
    assert reader.values("", "a,b\n", "\n", columns=columns) == []
    assert reader.values("", columns=columns) == []


def test_rows_of_many_files_with_one_header_are_read_at_once(reader: Reader) -> None:
    texts = [f"a,b\n{number},x\n" for number in range(300)]
    assert sorted(reader.values(*texts, columns=schema(a=INT, b=STRING))) == [
        (number, "x") for number in range(300)
    ]
    assert reader.sql.count("read_csv(") == 1


def test_one_irregular_file_does_not_slow_the_others_down(reader: Reader) -> None:
    texts = [f"a,b\n{number},x\n" for number in range(20)]
    texts[7] = "a,b\n7\n"
    rows = reader.values(*texts, columns=schema(a=INT))
    assert sorted(rows) == [(number,) for number in range(20)]
    assert reader.sql.count("read_csv(") == 1
    assert reader.sql.count("read_parquet(") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"sep": ""},
        {"sep": "\n"},
        {"quote": "''"},
        {"header": "yes"},
        {"maxColumns": "0"},
        {"skipRows": "some"},
        {"lineSep": ""},
        {"unescapedQuoteHandling": "GUESS"},
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused(
    reader: Reader, options: dict[str, str]
) -> None:
    with pytest.raises(InvalidFormatOptionError, match=next(iter(options))):
        reader.infer("a,b\n", options=options)


def test_a_way_with_quotes_that_is_not_offered_is_refused(reader: Reader) -> None:
    with pytest.raises(UnsupportedFormatOptionError, match="unescapedQuoteHandling"):
        reader.infer("a\n", options={"unescapedQuoteHandling": "BACK_TO_DELIMITER"})


def test_limits_on_quotes_and_values_are_kept(reader: Reader) -> None:
    with pytest.raises(CsvQuoteError, match="quote"):
        reader.infer('a,"b"c"\n', options={"unescapedQuoteHandling": "RAISE_ERROR"})
    with pytest.raises(ValueTooLongError, match=r"line 2 of file:///data/0.csv"):
        reader.read("a,b\n1,2345\n", columns=schema(a=INT), options={"maxCharsPerColumn": "3"})


def test_a_header_must_be_that_of_the_schema_where_that_is_asked_for(reader: Reader) -> None:
    columns = schema(a=INT, b=INT)
    options = {"options": {"enforceSchema": "false"}, "dialect": Dialect.SPARK, "schema": columns}
    assert reader.values("A,b\n1,2\n", columns=columns, **options) == [(1, 2)]
    with pytest.raises(HeaderMismatchError, match="in their order; it names b, a, and"):
        reader.read("b,a\n1,2\n", columns=columns, **options)


def test_a_column_of_arrays_is_refused(reader: Reader) -> None:
    with pytest.raises(UnsupportedColumnTypeError, match="array<string>"):
        reader.read("a\n1\n", columns=schema(a=ArrayType(STRING)))


PIECES = ["a", "b", "12", ",", ",", '"', '""', "\n", "\n", "\r\n", " ", "\\", "é", "\t", "#"]
OPTIONS: list[dict[str, str]] = [
    {},
    {"escape": '"'},
    {"multiLine": "true"},
    {"multiLine": "true", "escape": '"'},
    {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    {"quote": ""},
    {"nullValue": "a", "emptyValue": "b"},
]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(text=',,""', options={}, header=False, counts=True)
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    options=st.sampled_from(OPTIONS),
    header=st.booleans(),
    counts=st.booleans(),
)
def test_both_ways_of_reading_give_the_same_rows(
    reader: Reader, text: str, options: dict[str, str], *, header: bool, counts: bool
) -> None:
    chosen = csv_options(file_options(options=options, header=header))
    files = survey(reader.files(f"x,y\n{text}"), chosen, counts_values=counts)
    rows = []
    for is_detailed in (False, True):
        found = tables(
            files,
            chosen,
            connection=reader.connection,
            folder=reader.folder,
            is_detailed=is_detailed,
        )
        (table,) = found
        columns = ", ".join(f"c{position}" for position in range(table.width))
        width = "width" if table.is_detailed else str(table.width)
        rows.append(
            reader.connection.execute(
                f"SELECT {columns}{f', {width}' if counts else ''} FROM ({table.sql})"
            ).fetchall()
        )
    assert rows[0] == rows[1]
