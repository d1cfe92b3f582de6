"""JSON means what it means to Spark's reader; what does not fit is rescued, not lost."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.delta import connect
from millpond.errors.file_formats import (
    FileUnreadableError,
    InvalidFormatOptionError,
    MalformedRecordError,
    TooManyKeysError,
    UnsupportedFormatOptionError,
)
from millpond.files.formats.json import JsonFormat
from millpond.files.formats.json_found import MAX_LEVELS
from tests.files.format_reads import local, options_of, read, struct


class TestInference:
    def test_types_are_those_that_all_values_have_together(self, write):
        path = write(
            '{"i": 1, "d": 1, "b": true, "s": "x", "n": null, "m": 1}\n'
            '{"i": 2, "d": 2.5, "b": false, "s": "y", "n": null, "m": "x"}\n'
        )
        answer = read("json", path)
        assert answer.schema == "b:boolean,d:double,i:bigint,m:string,n:string,s:string"
        assert answer.rows == [
            {"b": True, "d": 1.0, "i": 1, "m": "1", "n": None, "s": "x"},
            {"b": False, "d": 2.5, "i": 2, "m": "x", "n": None, "s": "y"},
        ]
        assert answer.rescued == [None, None]

    def test_objects_and_arrays_are_structs_and_arrays(self, write):
        path = write(
            '{"o": {"x": 1}, "a": [1, 2.5], "e": []}\n{"o": {"y": [{"z": "q"}]}, "a": []}\n'
        )
        answer = read("json", path)
        assert answer.schema == (
            "a:array<double>,e:array<string>,o:struct<x:bigint,y:array<struct<z:string>>>"
        )
        assert answer.rows == [
            {"a": [1.0, 2.5], "e": [], "o": {"x": 1, "y": None}},
            {"a": [], "e": None, "o": {"x": None, "y": [{"z": "q"}]}},
        ]

    def test_without_types_every_column_is_the_text_of_its_value(self, write):
        path = write(
            '{"p": 19.90, "o": {"x": 1.10, "y": "a"}, "b": true, "s": "\\u0041", "n": null}\n'
        )
        answer = read("json", path, types=False)
        assert answer.schema == "b:string,n:string,o:string,p:string,s:string"
        assert answer.rows == [
            {"b": "true", "n": None, "o": '{"x":1.10,"y":"a"}', "p": "19.90", "s": "A"}
        ]

    def test_files_are_merged(self, write):
        paths = [write('{"a": 1}', "1.json"), write('{"a": 1.5, "b": "x"}', "2.json")]
        answer = read("json", paths)
        assert answer.schema == "a:double,b:string"
        assert sorted(answer.indexes) == [0, 1]

    def test_options_change_what_is_inferred(self, write):
        path = write('{"a": 1, "n": null, "d": 0.1}\n')
        assert read("json", path, primitivesAsString="true").schema == "a:string,d:string,n:string"
        assert read("json", path, dropFieldIfAllNull="true").schema == "a:bigint,d:double"
        assert read("json", path, prefersDecimal="true").schema == (
            "a:bigint,d:decimal(38,18),n:string"
        )

    @pytest.mark.parametrize(
        ("numbers", "schema"),
        [
            ("9223372036854775807", "bigint"),
            ("9223372036854775808", "decimal(19,0)"),
            ("-9223372036854775809", "decimal(19,0)"),
            ("9223372036854775808,1", "decimal(20,0)"),
            ("12345678901234567890", "decimal(20,0)"),
            ("1,1234567890123456789012345", "decimal(25,0)"),
            ("9" * 38, "decimal(38,0)"),
            ("1e3,9223372036854775808", "double"),
            ("9" * 39, "double"),
        ],
    )
    def test_whole_numbers_beyond_a_bigint_are_decimals(self, write, numbers, schema):
        values = numbers.split(",")
        path = write("".join(f'{{"o":{{"a":[{value}]}},"v":{value}}}\n' for value in values))
        answer = read("json", path, rescues=False)
        assert answer.schema == f"o:struct<a:array<{schema}>>,v:{schema}"
        kind = float if schema == "double" else Decimal
        assert [row["v"] for row in answer.rows] == list(map(kind, values))
        assert [row["o"]["a"] for row in answer.rows] == [[kind(value)] for value in values]

    @pytest.mark.parametrize(
        ("numbers", "schema"),
        [
            ("1.5,123456789012345678901234", "decimal(25,1)"),
            ("0.1234567890123456789012", "decimal(22,22)"),
            ("1,2.25", "decimal(38,18)"),
            ("0.1234567890123456789,1234567890123456789012", "double"),
        ],
    )
    def test_decimals_that_are_preferred_hold_all_numbers(self, write, numbers, schema):
        values = numbers.split(",")
        path = write("".join(f'{{"v":{value}}}\n' for value in values))
        answer = read("json", path, rescues=False, prefersDecimal="true")
        assert answer.schema == f"v:{schema}"
        kind = float if schema == "double" else Decimal
        assert [row["v"] for row in answer.rows] == list(map(kind, values))

    def test_objects_without_keys_take_nothing_from_those_with_keys(self, write):
        path = write(
            '{"a": {"k": 1}, "l": [{}, {"k": 2}], "t": "x{}y \\\\", "e": {}}\n'
            '{"a": {}, "l": [ ], "t": "\\"{}", "e": { }}\n{"a": {"k": {}}}\n{}\n'
        )
        answer = read("json", path)
        assert answer.schema == "a:struct<k:string>,e:string,l:array<struct<k:bigint>>,t:string"
        assert [row["a"] for row in answer.rows] == [{"k": "1"}, {"k": None}, {"k": "{}"}, None]
        assert [row["t"] for row in answer.rows] == ["x{}y \\", '"{}', None, None]
        assert answer.rescued == [None] * 4

    def test_texts_are_times_where_that_is_asked_for_and_all_of_them_are(self, write):
        path = write(
            '{"a": "2024-01-02T03:04:05Z", "b": "2024-01-02", "o": {"t": "2024-01-02"}}\n{"b": "x"}\n'
        )
        answer = read("json", path, inferTimestamp="true")
        assert answer.schema == "a:timestamp,b:string,o:struct<t:timestamp>"
        assert answer.rows[0]["a"] == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert answer.rescued == [None, None]

    def test_a_file_of_nothing_has_no_columns(self, write):
        for content in ("", "\n \n\t\n"):
            answer = read("json", write(content))
            assert (answer.schema, answer.rows) == ("", [])

    def test_a_column_for_broken_records_is_inferred_where_nothing_else_keeps_them(self, write):
        path = write('{"a": 1}\n{"a":\n')
        answer = read("json", path, rescues=False)
        assert answer.schema == "_corrupt_record:string,a:bigint"
        assert answer.rows == [
            {"_corrupt_record": None, "a": 1},
            {"_corrupt_record": '{"a":', "a": None},
        ]

    def test_that_column_keeps_broken_records_beside_those_that_do_not_fit(self, write):
        path = write('{"a": 1}\n{"a":\n{"a": "x"}\n')
        answer = read("json", path, columns="_corrupt_record VARCHAR, a INTEGER", rescues=False)
        assert answer.rows == [
            {"_corrupt_record": None, "a": 1},
            {"_corrupt_record": '{"a":', "a": None},
            {"_corrupt_record": '{"a": "x"}', "a": None},
        ]


class TestZeroWithSign:
    @pytest.mark.parametrize("other", ['{"v":"x"}', '{"v":1.5}', '{"v":12345678901234567890123}'])
    @pytest.mark.parametrize(
        ("kind", "zero"), [("BIGINT", 0), ("INTEGER", 0), ("VARCHAR", "0"), ("DOUBLE", 0.0)]
    )
    def test_it_is_a_zero_whatever_else_is_read_with_it(self, write, other, kind, zero):
        paths = [write('{"v":-0}', "a.json"), write(other, "b.json")]
        for files in (paths[:1], paths):
            answer = read("json", files, columns=f"v {kind}")
            place = answer.indexes.index(0)
            assert (answer.rows[place], answer.rescued[place]) == ({"v": zero}, None)


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "text", "value"),
        [
            ("TINYINT", "127", 127),
            ("INTEGER", "-5", -5),
            ("BIGINT", "9223372036854775807", 9223372036854775807),
            ("DOUBLE", "3", 3.0),
            ("DOUBLE", "1e3", 1000.0),
            ("DOUBLE", '"Infinity"', math.inf),
            ("FLOAT", "0.5", 0.5),
            ("DECIMAL(30,20)", "0.12345678901234567891", Decimal("0.12345678901234567891")),
            ("DECIMAL(20,2)", "123456789012345678.25", Decimal("123456789012345678.25")),
            ("DECIMAL(10,2)", '"7.5"', Decimal("7.50")),
            ("VARCHAR", "1234567890123456.780", "1234567890123456.780"),
            ("VARCHAR", '{"k":[1.50,"1.50"]}', '{"k":[1.50,"1.50"]}'),
            ("VARCHAR", "true", "true"),
            ("BOOLEAN", "false", False),
            ("DATE", '"2024-01-02"', date(2024, 1, 2)),
            ("TIMESTAMPTZ", '"2024-01-02T03:04:05+01:00"', datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC)),
            ("TIMESTAMPTZ", "1704164645", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
            ("TIMESTAMP", '"2024-01-02 03:04:05"', datetime(2024, 1, 2, 3, 4, 5)),  # noqa: DTZ001 - no zone
            ("BLOB", '"AAH/"', b"\x00\x01\xff"),
            ("MAP(VARCHAR, DOUBLE)", '{"x": 1, "y": null}', {"x": 1.0, "y": None}),
            ("INTEGER[]", "[1, null, 3]", [1, None, 3]),
            ("STRUCT(x INTEGER, y STRUCT(z DATE))", '{"y": {"z": "2024-01-02"}}',
             {"x": None, "y": {"z": date(2024, 1, 2)}}),
        ],
    )  # fmt: skip # a row a line
    def test_a_value_that_fits_is_kept_exactly(self, write, kind, text, value):
        answer = read("json", write(f'{{"v": {text}}}\n'), f"v {kind}")
        assert answer.rows == [{"v": value}]
        assert answer.rescued == [None]

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("TINYINT", "128"),
            ("BIGINT", "9223372036854775808"),
            ("BIGINT", "1.0"),
            ("BIGINT", '"1"'),
            ("BIGINT", "1e3"),
            ("BIGINT", "true"),
            ("BIGINT", "[1]"),
            ("DOUBLE", '"1.5"'),
            ("DOUBLE", "1e400"),
            ("BOOLEAN", "1"),
            ("BOOLEAN", '"true"'),
            ("DECIMAL(4,2)", "123.45"),
            ("DATE", '"02.01.2024"'),
            ("DATE", "5"),
            ("TIMESTAMPTZ", '"soon"'),
            ("TIMESTAMPTZ", "1577836800.9"),
            ("TIMESTAMPTZ", "-0.6"),
            ("TIMESTAMPTZ", "1.7e9"),
            ("BLOB", '"no base64!"'),
            ("INTEGER[]", "5"),
            ("STRUCT(x INTEGER)", '"x"'),
            ("MAP(VARCHAR, INTEGER)", "[1]"),
            ("MAP(INTEGER, INTEGER)", '{"1": 2}'),
        ],
    )
    def test_a_value_that_does_not_fit_is_null_and_rescued(self, write, kind, text):
        answer = read("json", write(f'{{"v": {text}, "w": 1}}\n'), f"v {kind}, w BIGINT")
        assert answer.rows == [{"v": None, "w": 1}]
        assert answer.rescued == [{"v": json.loads(text)}]

    def test_of_a_nested_value_the_part_that_fits_stays_and_the_whole_is_rescued(self, write):
        path = write('{"o": {"x": 1, "y": "no"}, "a": [1, "no", 3]}\n{"o": {"x": 2, "z": 5}}\n')
        answer = read("json", path, "o STRUCT(x INTEGER, y INTEGER), a INTEGER[]")
        assert answer.rows == [
            {"o": {"x": 1, "y": None}, "a": [1, None, 3]},
            {"o": {"x": 2, "y": None}, "a": None},
        ]
        assert answer.rescued == [
            {"o": {"x": 1, "y": "no"}, "a": [1, "no", 3]},
            {"o": {"x": 2, "z": 5}},
        ]

    def test_dates_follow_the_pattern_of_the_option(self, write):
        path = write('{"d": "02.01.2024"}\n{"d": "2024-01-02"}\n')
        answer = read("json", path, "d DATE", dateFormat="dd.MM.yyyy")
        assert answer.rows == [{"d": date(2024, 1, 2)}, {"d": None}]
        assert answer.rescued == [None, {"d": "2024-01-02"}]

    def test_a_text_may_hold_any_character(self, write):
        texts = ["", "\x00", '"\\', "\U0001f600", "\ufdd0", "{", "[1]", "null", "1.10"]
        path = write("".join(json.dumps({"t": text, "n": 1.10}) + "\n" for text in texts))
        answer = read("json", path, types=False)
        assert [row["t"] for row in answer.rows if row["t"] != ""] == [
            text if text != "\ufdd0" else "" for text in texts if text not in {"", "\ufdd0"}
        ]


class TestKeys:
    def test_keys_without_a_column_are_rescued_and_told(self, write):
        path = write('{"a": 1, "b": {"x": 1.50}, "c/~": null}\n{"a": 2}\n')
        answer = read("json", path, "a BIGINT")
        assert answer.rescued == [{"b": {"x": 1.5}, "c/~": None}, None]
        assert answer.new_columns == "b:struct<x:double>,c/~:string"

    def test_what_is_rescued_is_written_as_in_the_file(self, write):
        digits = "1234567890123456.7890"
        text = f'{{"a":{digits},"b":[{digits}],"c":{digits}}}'
        path = write(text + "\n")
        with connect() as connection:
            columns = struct("a BIGINT, c DOUBLE")
            selection = JsonFormat().select(
                [local(path)],
                options_of("json"),
                columns,
                connection=connection,
                folder=path.parent,
            )
            rows = connection.execute(selection.sql).fetchall()
        assert rows == [(None, 1234567890123456.8, f'{{"a":{digits},"b":[{digits}]}}')]

    def test_a_new_field_of_a_struct_is_told_with_its_column(self, write):
        answer = read("json", write('{"o": {"x": 1, "y": "q"}}'), "o STRUCT(x BIGINT)")
        assert answer.new_columns == "o:struct<x:bigint,y:string>"
        assert answer.rows == [{"o": {"x": 1}}]

    def test_a_key_of_another_case_is_rescued(self, write):
        path = write('{"Id": 1}\n{"id": 2}\n{"ID": 3, "id": 4}\n')
        answer = read("json", path, "id BIGINT")
        assert answer.rows == [{"id": None}, {"id": 2}, {"id": 4}]
        assert answer.rescued == [{"Id": 1}, None, {"ID": 3}]
        assert answer.new_columns == ""

    def test_with_readerCaseSensitive_off_it_is_the_columns_value(self, write):  # noqa: N802 - its name
        path = write('{"Id": 1}\n{"id": 2}\n{"ID": 3, "id": 4}\n')
        answer = read("json", path, "id BIGINT", readerCaseSensitive="false")
        assert answer.rows == [{"id": 1}, {"id": 2}, {"id": 4}]
        assert answer.rescued == [None, None, {"ID": 3}]

    def test_without_a_rescued_column_it_is_the_columns_value_too(self, write):
        answer = read("json", write('{"Id": 1}\n'), "id BIGINT", rescues=False)
        assert answer.rows == [{"id": 1}]

    def test_of_a_repeated_key_the_last_value_counts_and_the_others_are_rescued(self, write):
        answer = read("json", write('{"a": 1, "a": 2}\n{"a": 3}\n'), "a BIGINT")
        assert answer.rows == [{"a": 2}, {"a": 3}]
        assert answer.rescued == [{"a": 1}, None]

    @pytest.mark.parametrize("key", ["", "a b", 'q"q', "s'lash/~", "*", "0", "ä", "a.b", "$"])
    def test_keys_may_have_any_name(self, write, key):
        path = write(json.dumps({key: 5, "x": "no"}) + "\n")
        quoted = key.replace('"', '""')
        if key:
            answer = read("json", path, f'"{quoted}" BIGINT, x BIGINT')
            assert answer.rows == [{key: 5, "x": None}]
            assert answer.rescued == [{"x": "no"}]
        assert read("json", path, "x BIGINT").rescued == [{key: 5, "x": "no"}]


class TestLines:
    def test_a_broken_line_costs_no_other_and_is_kept_whole(self, write):
        path = write('{"a": 1}\n{"a": 2\nno json\n[{"a": 3}, {"a": 4}]\n5\n{"a": 6} x\n{"a": 7}')
        answer = read("json", path, "a BIGINT")
        assert [row["a"] for row in answer.rows] == [1, None, None, 3, 4, None, None, 7]
        assert [r and r["_corrupt_record"] for r in answer.rescued] == [
            None, '{"a": 2', "no json", None, None, "5", '{"a": 6} x', None,
        ]  # fmt: skip # a row a line

    def test_modes_drop_or_stop_at_a_broken_line(self, write):
        path = write('{"a": 1}\n{"a": 2\n')
        assert read("json", path, "a BIGINT", mode="DROPMALFORMED").rows == [{"a": 1}]
        with pytest.raises(MalformedRecordError, match=r"Record 2 of file:.*a\.json"):
            read("json", path, "a BIGINT", mode="FAILFAST")

    def test_modes_mean_values_as_well_where_nothing_is_rescued(self, write):
        path = write('{"a": 1}\n{"a": "x"}\n')
        assert read("json", path, "a BIGINT", mode="DROPMALFORMED").rows == [{"a": 1}, {"a": None}]
        dropped = read("json", path, "a BIGINT", mode="DROPMALFORMED", rescues=False)
        assert dropped.rows == [{"a": 1}]
        with pytest.raises(duckdb.Error, match=r"a\.json: \[MALFORMED_RECORD_IN_PARSING\]"):
            read("json", path, "a BIGINT", mode="FAILFAST", rescues=False)

    @pytest.mark.parametrize("rescues", [True, False])
    def test_the_text_of_a_record_that_is_read_in_millponds_way_is_its_own(self, write, rescues):
        lines = [
            '{"a": 1, "b": 1e5, "b": "null"}',  # a key twice
            "{'a': 2, \"b\": 'no'}",
            '{"a": 3, "b": "\\ud83d"}',
            '{"a": 4, "b": NaN}',
            '{"a": 5, "b": true, "b": true}',
        ]
        path = write("\ufeff" + "\r\n".join(lines) + "\r\n")
        columns = "a INTEGER, b BOOLEAN, _corrupt_record VARCHAR"
        answer = read("json", path, columns=columns, rescues=rescues)
        assert [row["_corrupt_record"] for row in answer.rows] == [*lines[:4], None]
        assert answer.new_columns == ""
        if rescues:
            assert answer.rescued[0] == {"b": "null"}

    def test_so_is_that_of_the_records_of_an_array_and_that_in_a_message(self, write):
        path = write('[{"a": 1, "a": "x"},\n {"b": 1}, {"a": {"b" : 1}}]')
        columns = "a INTEGER, _corrupt_record VARCHAR"
        answer = read("json", path, columns=columns, rescues=False, multiLine="true")
        texts = [row["_corrupt_record"] for row in answer.rows]
        assert texts == ['{"a":"x"}', None, '{"a":{"b":1}}']
        path = write('{"a": 1, "a": "x"}')
        with pytest.raises(duckdb.Error) as caught:
            read("json", path, "a BIGINT", mode="FAILFAST", rescues=False)
        assert str(caught.value).rstrip().endswith(' {"a": 1, "a": "x"}')

    @pytest.mark.parametrize("count", [1, 2])
    def test_an_array_of_one_record_is_as_one_of_several(self, write, count):
        path = write("[" + ",\n".join(['{"a" : 1, "a" : "x"}'] * count) + "]")
        columns = "a INTEGER, _corrupt_record VARCHAR"
        answer = read("json", path, columns=columns, rescues=False, multiLine="true")
        assert answer.rows == [{"a": None, "_corrupt_record": '{"a":"x"}'}] * count

    @pytest.mark.parametrize(
        "name", ["__millpond_text", "__millpond_rescued", "__millpond_corrupt"]
    )
    @pytest.mark.parametrize("end", ["}", ', "a": "x"}'])
    def test_keys_that_millpond_uses_itself_are_rescued_and_no_text(self, write, name, end):
        lines = [
            f'{{"a": 1, "{name}": null}}',
            f'{{"a": "x", "{name}": {{"_corrupt_record": "mine"}}{end}',
            f'{{"{name}": "mine"}}',
            f'{{"a": 3, "{name}": 4, "{name}": 5}}',
        ]
        path = write("\n".join(lines))
        columns = "a INTEGER, _corrupt_record VARCHAR"
        answer = read("json", path, columns=columns, rescues=False)
        assert [row["a"] for row in answer.rows] == [1, None, None, 3]
        assert [row["_corrupt_record"] for row in answer.rows] == [None, lines[1], None, None]
        answer = read("json", path, "a INTEGER")
        second = {"a": "x", name: {"_corrupt_record": "mine"}}
        assert answer.rescued == [None, second, {name: "mine"}, {name: 5}]
        assert answer.new_columns == ""
        assert read("json", path).schema == "a:string"

    def test_so_they_are_in_arrays_and_beside_records_without_them(self, write):
        record = '{"a": 1, "__millpond_text": "mine", "b": {"__millpond_text": 2}}'
        path = write(f'[{{"a": 2}}, {record}]')
        columns = "a INTEGER, b STRUCT(__millpond_text BIGINT)"
        answer = read("json", path, columns=columns, multiLine="true")
        inner = {"__millpond_text": 2}
        assert answer.rows == [{"a": 2, "b": None}, {"a": 1, "b": inner}]
        assert answer.rescued == [None, {"__millpond_text": "mine"}]

    @pytest.mark.parametrize("unit", ["x", '\\"'])
    def test_a_record_whose_text_is_wanted_may_be_as_long_as_another(self, write, unit):
        body = unit * (12 << 19)
        path = write(f'{{"a": "x", "a": 1, "b": "{body}"}}\n' * 2)
        columns = "a INTEGER, _corrupt_record VARCHAR"
        answer = read("json", path, columns, rescues=False)
        assert answer.rows == [{"a": 1, "_corrupt_record": None}] * 2

    @pytest.mark.parametrize(("length", "is_own"), [(1000, True), (2 << 20, False)])
    def test_of_a_long_one_that_does_not_fit_the_text_is_written_anew(self, write, length, is_own):
        record = f'{{"a" : 1, "a" : "x", "b" : "{"y" * length}"}}'
        columns = "a INTEGER, _corrupt_record VARCHAR"
        ((row),) = read("json", write(record), columns, rescues=False).rows
        text = row["_corrupt_record"]
        assert (text == record) is is_own
        assert json.loads(text)["a"] == "x"
        assert json.loads(text)["b"] == "y" * length

    def test_a_column_keeps_the_text_of_records_that_do_not_fit(self, write):
        path = write('{"a": 1.10}\n{"a": {"b": 1.10}}\n{"a"')
        answer = read(
            "json", path, "a DECIMAL(4,2), bad VARCHAR",
            rescues=False, columnNameOfCorruptRecord="bad",
        )  # fmt: skip # a row a line
        assert answer.rows == [
            {"a": Decimal("1.10"), "bad": None},
            {"a": None, "bad": '{"a": {"b": 1.10}}'},
            {"a": None, "bad": '{"a"'},
        ]

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_lines_end_as_on_any_system(self, write, end):
        answer = read("json", write(end.join(['{"a": 1}', "", '{"a": 2}'])), "a BIGINT")
        assert answer.rows == [{"a": 1}, {"a": 2}]

    def test_the_end_of_a_line_can_be_given(self, write):
        answer = read("json", write('{"a": 1};;{"a": 2}'), "a BIGINT", lineSep=";;")
        assert answer.rows == [{"a": 1}, {"a": 2}]


class TestMultiLine:
    @pytest.mark.parametrize(
        ("content", "values"),
        [
            ('[{"a":\n1},\n{"a": 2}\n]\n', [1, 2]),
            ('{\n"a": 1\n}', [1]),
            ('\ufeff [\n{"a": 1}]', [1]),
            ("[]", []),
            ("", []),
            ('{"a": 1}\n{"a": 2}', [1, 2]),
        ],
    )
    def test_a_file_is_a_value_or_an_array_of_records(self, write, content, values):
        answer = read("json", write(content), "a BIGINT", multiLine="true")
        assert [row["a"] for row in answer.rows] == values

    @pytest.mark.parametrize(
        "beside",
        ["", '{"a": 3, "b": NaN}', '{"a": 0, "a": 3}', "{'a': 3}", '{"a": 3, "b": "\\udc00"}'],
    )
    @pytest.mark.parametrize(
        "content",
        [
            '{"a": 1}\n{"a": 2}\n%s',
            '{"a": 1}{"a": 2}%s',
            '[{"a": 1}]\n[{"a": 2}, %s]',
            '[{"a": 1}] {"a": 2} %s',
            '{"a": 1} [] [{"a": 2}, %s] []',
        ],
    )
    def test_all_values_of_a_file_are_records_whatever_they_are(self, write, content, beside):
        path = write((content % beside).replace(", ]", "]"))
        for rescues in (True, False):
            answer = read("json", path, "a BIGINT", multiLine="true", rescues=rescues)
            assert [row["a"] for row in answer.rows] == [1, 2, 3][: 3 if beside else 2]
            shown = read(
                "json",
                path,
                "a BIGINT, _corrupt_record VARCHAR",
                multiLine="true",
                rescues=rescues,
            )
            told = [row["_corrupt_record"] for row in shown.rows]
            assert told[:2] == [None, None]

    @pytest.mark.parametrize("behind", ["5", "x", "[5]", "[[]]", '{"a"', "[", "]", ",", "null"])
    def test_where_one_of_them_is_none_the_file_is_one(self, write, behind):
        content = f'{{"a": 1}}\n{{"a": 2}}\n{behind}'
        answer = read("json", write(content), "a BIGINT", multiLine="true")
        assert answer.rescued == [{"_corrupt_record": content}]

    def test_of_a_line_only_one_value_is_a_record(self, write):
        content = '{"a": 1} {"a": 2}'
        answer = read("json", write(f'{content}\n{{"a": 3}}'), "a BIGINT")
        assert [row["a"] for row in answer.rows] == [None, 3]
        assert answer.rescued[0] == {"_corrupt_record": content}

    def test_a_damaged_record_behind_a_byte_order_mark_is_shown(self, write):
        content = b'\xef\xbb\xbf[{"a": 1}, {"b": "\xff"}]'
        answer = read("json", write(content), "a BIGINT, b VARCHAR", multiLine="true")
        assert answer.rows == [{"a": 1, "b": None}, {"a": None, "b": "\ufffd"}]
        assert answer.rescued == [None, {"_corrupt_record": '{"b":"\\\\xff"}'}]

    def test_a_file_that_is_broken_is_one_record(self, write):
        answer = read("json", write('[{"a": 1},\n{"a":'), "a BIGINT", multiLine="true")
        assert answer.rescued == [{"_corrupt_record": '[{"a": 1},\n{"a":'}]

    WHOLE = '[\n{"a": 1},\n{"b": [2, {"c": "]"}]} ,\n{"a": 3}\n]'

    @pytest.mark.parametrize("length", range(1, len(WHOLE)))
    def test_so_is_one_that_is_torn_anywhere(self, write, length):
        torn = self.WHOLE[:length]
        path = write(torn)
        assert read("json", path, "a BIGINT", multiLine="true").rescued == [
            {"_corrupt_record": torn}
        ]
        with pytest.raises(MalformedRecordError):
            read("json", path, "a BIGINT", multiLine="true", mode="FAILFAST")
        dropped = read("json", path, "a BIGINT", multiLine="true", mode="DROPMALFORMED")
        assert dropped.rows == []

    @pytest.mark.parametrize("end", ["", "\n", " \n" * 5_000, "\x0c"])
    def test_so_is_a_long_one_whatever_blanks_are_behind_the_comma(self, write, end):
        torn = "[" + '{"a": 1},' * 20_000 + end
        paths = [write(torn, "1.json"), write('[{"a": 1}]' + end, "2.json")]
        answer = read("json", paths, "a BIGINT", multiLine="true")
        assert sorted(zip(answer.indexes, answer.rows, strict=True)) == [
            (0, {"a": None}),
            (1, {"a": 1}),
        ]


class TestLeniency:
    @pytest.mark.parametrize(
        ("option", "text", "value"),
        [
            ("allowSingleQuotes", "{'v': 'it\\'s \"x\"'}", 'it\'s "x"'),
            ("allowUnquotedFieldNames", '{v: "x"}', "x"),
            ("allowComments", '{"v": /* c */ "x"} // d', "x"),
            ("allowNumericLeadingZeros", '{"v": 007}', "7"),
            ("allowBackslashEscapingAnyCharacter", '{"v": "a\\$b"}', "a$b"),
            ("allowUnquotedControlChars", '{"v": "a\tb"}', "a\tb"),
            ("allowNonNumericNumbers", '{"v": NaN}', "NaN"),
            ("allowNonNumericNumbers", '{"v": -INF}', "-Infinity"),
        ],
    )
    def test_what_an_option_allows_is_read_and_else_kept_aside(self, write, option, text, value):
        path = write(text)
        assert read("json", path, "v VARCHAR", **{option: "true"}).rows == [{"v": value}]
        refused = read("json", path, "v VARCHAR", **{option: "false"})
        assert refused.rescued == [{"_corrupt_record": text}]

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ('{"x": 1.5}\n{"x": NaN}', "x:double"),
            ('{"x": [1, -Infinity]}', "x:array<double>"),
            ('{"x": {"y": +INF}}\n{"x": {"y": 7}}', "x:struct<y:double>"),
            ('{"x": NaN}\n{"x": 12345678901234567890}', "x:double"),
            ('{"x": NaN}\n{"x": "word"}', "x:string"),
            ('{"x": NaN, "y": "NaN"}', "x:double,y:string"),
        ],
    )
    def test_numbers_that_are_none_are_doubles(self, write, text, found):
        assert read("json", write(text)).schema == found

    def test_of_a_damaged_array_only_the_records_that_are_damaged_are_shown(self, write):
        good = b'{"a": 1, "b": "x"}'
        content = b"[" + b",".join([good] * 2_000 + [b'{"a": 2, "b": "y\xff"}', good]) + b"]"
        answer = read("json", write(content), "a BIGINT", multiLine="true", encoding="UTF-8")
        assert [row["a"] for row in answer.rows] == [1] * 2_000 + [2, 1]
        told = [rescued.get("_corrupt_record") for rescued in answer.rescued]
        assert told == [None] * 2_000 + [r'{"a":2,"b":"y\\xff"}', None]

    def test_options_must_be_true_or_false(self, write):
        with pytest.raises(InvalidFormatOptionError, match="multiLine"):
            read("json", write("{}"), "a BIGINT", multiLine="yes")

    def test_a_single_variant_column_is_refused(self, write):
        with pytest.raises(UnsupportedFormatOptionError, match="singleVariantColumn"):
            read("json", write("{}"), "a BIGINT", singleVariantColumn="v")


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.sampled_from(["1", "1.0", "true", "null", "{", "2024-01-02", "NaN"]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "y", "X", "a/b~"]), inner, max_size=3),
    ),
    max_leaves=6,
)
_RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "B", "c d", ""]), _VALUES, max_size=4), max_size=6
)


class TestNothingIsLost:
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(records=_RECORDS, types=st.booleans())
    def test_each_value_is_in_its_column_or_rescued(self, write, records, types):
        path = write("".join(json.dumps(record) + "\n" for record in records))
        answer = read("json", path, types=types)
        assert len(answer.rows) == len(records)
        for record, row, rescued in zip(records, answer.rows, answer.rescued, strict=True):
            for key, value in record.items():
                if value is not None and not (rescued and rescued.get(key) == value):
                    assert _same(row[key], value), (key, value, row)


def _same(found, value):
    """Whether a column's value is that of the record, perhaps as text."""
    if isinstance(found, str):
        return found == value or (not isinstance(value, str) and json.loads(found) == value)
    if isinstance(value, dict):
        return all(_same(found.get(key), inner) for key, inner in value.items())
    if isinstance(value, list):
        return len(found) == len(value) and all(map(_same, found, value))
    return found == value or (isinstance(found, float) and found == float(value))


class TestHostileFiles:
    def test_a_line_of_200_megabytes_is_an_error_that_names_file_and_limit(self, tmp_path):
        path = tmp_path / "long.json"
        with path.open("wb") as output:
            output.write(b'{"a": "')
            for _ in range(200):
                output.write(b"x" * (1 << 20))
            output.write(b'"}\n{"a": "y"}\n')
        with pytest.raises(FileUnreadableError, match=r"long\.json.*longer than 16 MiB"):
            read("json", path, "a VARCHAR")

    @pytest.mark.parametrize("depth", [60, 150, 300, 490])
    def test_what_is_nested_deeper_than_types_go_is_a_text(self, write, depth):
        inner = '{"a":' * depth + "1" + "}" * depth
        path = write(f'{{"x":1,"y":{inner}}}\n{{\'x\':2,"y":{inner}}}\n')
        answer = read("json", path)
        assert [row["x"] for row in answer.rows] == [1, 2]
        assert answer.rescued == [None, None]
        for row in answer.rows:
            value = row["y"]
            while isinstance(value, dict):
                value = value["a"]
            levels = min(depth, MAX_LEVELS)
            assert json.loads(str(value)) == json.loads(inner[5 * levels : len(inner) - levels])

    @pytest.mark.parametrize("depth", [501, 5000, 100_000, 1_000_000])
    def test_deep_nesting_is_a_record_that_is_kept_aside(self, write, depth):
        text = '{"a": ' + "[" * depth + "]" * depth + "}"
        answer = read("json", write(text + '\n{"a": 1}\n'), "a VARCHAR")
        assert answer.rows == [{"a": None}, {"a": "1"}]
        assert answer.rescued == [{"_corrupt_record": text}, None]

    def test_bytes_that_are_no_utf_8_are_replaced_and_the_record_kept(self, write):
        answer = read("json", write(b'{"a": "x\xe9y"}\n{"a": "z"}\n'), "a VARCHAR")
        assert answer.rows == [{"a": "x\ufffdy"}, {"a": "z"}]
        assert answer.rescued == [{"_corrupt_record": '{"a": "x\\xe9y"}'}, None]

    def test_half_a_character_is_replaced_and_the_record_kept(self, write):
        answer = read("json", write('{"a": "x\\ud800y"}\n{"a": "\\ud83d\\ude00"}\n'), "a VARCHAR")
        assert answer.rows == [{"a": "x\ufffdy"}, {"a": "\U0001f600"}]
        assert answer.rescued == [{"_corrupt_record": '{"a": "x\\ud800y"}'}, None]

    def test_nul_bytes_are_broken_records(self, write):
        answer = read("json", write(b'\x00\x00\n{"a": "x\x00"}\n{"a": "y"}\n'), "a VARCHAR")
        assert [row["a"] for row in answer.rows] == [None, None, "y"]
        assert [r["_corrupt_record"] for r in answer.rescued[:2]] == ["\0\0", '{"a": "x\0"}']

    def test_numbers_of_any_length_are_kept(self, write):
        digits = "9" * 4000
        answer = read("json", write(f'{{"a": {digits}}}\n'), "a DOUBLE", types=False)
        assert answer.rows == [{"a": None}]
        assert read("json", write(f'{{"a": {digits}}}'), types=False).rows == [{"a": digits}]

    def test_a_million_keys_are_no_columns(self, write):
        path = write(json.dumps({f"k{n}": n for n in range(1_000_000)}) + "\n")
        with pytest.raises(TooManyKeysError, match="10000 different keys"):
            read("json", path)

    def test_an_object_of_many_keys_is_a_text_or_a_map(self, write):
        content = [{"m": {f"k{n}": n, "x~/": 1}} for n in range(10_001)]
        path = write("".join(json.dumps(record) + "\n" for record in content))
        answer = read("json", path)
        assert answer.schema == "m:string"
        assert json.loads(answer.rows[0]["m"]).keys() >= {"x~/"}
        answer = read("json", path, "m MAP(VARCHAR, BIGINT)")
        assert sorted(row["m"]["x~/"] for row in answer.rows) == [1] * 10_001
        assert (answer.new_columns, set(answer.rescued)) == ("", {None})

    def test_many_unasked_keys_are_rescued_at_once(self, write):
        record = {f"k{n}": n for n in range(5000)}
        answer = read("json", write(json.dumps(record) + "\n"), "k7 BIGINT, o VARCHAR")
        assert answer.rows == [{"k7": record.pop("k7"), "o": None}]
        assert answer.rescued == [record]

    def test_a_name_with_signs_of_globs_means_the_one_file(self, write):
        paths = [write('{"a": 1}', "a[1]*.json"), write('{"a": 2}', "a1x.json")]
        assert read("json", paths[0], "a BIGINT").rows == [{"a": 1}]

    def test_a_file_that_is_no_json_is_all_rescued(self, write):
        answer = read("json", write(b"PAR1\x00\x15\xff\xfe"), "a BIGINT")
        assert answer.rows == [{"a": None}]
        assert answer.rescued[0] is not None
