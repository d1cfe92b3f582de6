"""Of a key that a JSON object has twice the last value counts, wherever the object stands."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.delta import connect
from millpond.files.formats.json_found import Found
from millpond.files.formats.json_repeated_keys import repeating_files
from millpond.files.formats.json_sources import Source
from tests.files.format_reads import local, read

# What makes the lines of a file no plain JSON, each in its way.
BESIDE = {
    "nothing else": b"",
    "another object": b'{"id": 9, "n": {"x": 5}}\n',
    "NaN": b'{"id": 9, "v": NaN}\n',
    "a broken record": b'{"id": 9\n',
    "a byte that is no character": b'{"id": 9, "s": "\xff"}\n',
    "a key twice in the record": b'{"id": 8, "id": 9}\n',
    "keys that differ by case": b'{"id": 9, "n": {"x": 5, "X": 6}}\n',
    "an object without keys": b'{"id": 9, "n": {}, "l": [{}]}\n',
    "an empty key": b'{"id": 9, "n": {"": 5}}\n',
    "other kinds of values": b'{"id": 9, "n": 5, "l": [5, {"x": 5}]}\n',
    "more keys than a type has": b'{"id": 9, "n": {%s}}\n'
    % b", ".join(b'"k%d": 1' % number for number in range(600)),
}
RECORD = (
    b'{"id": 1, "n": {"x": 1, "x": 2}, "l": [{"x": 0}, {"x": 3, "x": 4}], '
    b'"m": {"a": {"b": {"x": 5, "x": 6}}}}\n'
)
OTHERS = {"n": {"x": 1}, "l": [None, {"x": 3}], "m": {"a": {"b": {"x": 5}}}}
X = "STRUCT(x BIGINT)"


@pytest.fixture
def write(tmp_path):
    def write(content, name="a.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def first(answer):
    """The record with the id 1 and what was rescued of it."""
    rows = zip(answer.rows, answer.rescued, strict=True)
    return next((row, rescued) for row, rescued in rows if row["id"] in (1, "1"))


@pytest.mark.parametrize("beside", BESIDE)
class TestWhateverElseStandsInTheFile:
    def test_the_last_value_counts_and_the_others_are_rescued_at_their_places(self, write, beside):
        path = write(RECORD + BESIDE[beside])
        row, rescued = first(
            read("json", path, f"id BIGINT, n {X}, l {X}[], m STRUCT(a STRUCT(b {X}))")
        )
        assert row == {
            "id": 1, "n": {"x": 2}, "l": [{"x": 0}, {"x": 4}], "m": {"a": {"b": {"x": 6}}}
        }  # fmt: skip # as the record
        assert rescued == OTHERS

    def test_so_it_does_in_a_map_and_in_the_text_of_an_object(self, write, beside):
        path = write(RECORD + BESIDE[beside])
        columns = "id BIGINT, n MAP(VARCHAR, BIGINT), l VARCHAR, m MAP(VARCHAR, VARCHAR)"
        row, rescued = first(read("json", path, columns))
        assert row == {
            "id": 1, "n": {"x": 2}, "l": '[{"x":0},{"x":4}]', "m": {"a": '{"b":{"x":6}}'}
        }  # fmt: skip # as the record
        assert rescued == OTHERS

    def test_so_it_does_where_types_are_inferred_or_all_are_texts(self, write, beside):
        path = write(RECORD.replace(b'"x": 3,', b'"x": "no number",') + BESIDE[beside])
        row, rescued = first(read("json", path))
        assert row["m"]["a"]["b"]["x"] == 6
        assert rescued == {**OTHERS, "l": [None, {"x": "no number"}]}
        row, _ = first(read("json", path, types=False))
        assert (row["n"], row["m"]) == ('{"x":2}', '{"a":{"b":{"x":6}}}')


class TestRescuedText:
    @pytest.mark.parametrize("columns", ["id BIGINT", f"id BIGINT, n {X}"])
    @pytest.mark.parametrize(
        ("record", "text"),
        {
            '{"n": {"x": 1, "x": "no"}}': '{"n":{"x":"no"}}',
            '{"n": {"x": "no"}, "n": {"x": "none"}}': '{"n":{"x":"none"}}',
            '{"n": 1, "n": "no"}': '{"n":"no"}',
            '{"n": 1, "n": {"x": "no"}}': '{"n":{"x":"no"}}',
            '{"n": {"x": 1, "x": 2, "y": 3}}': '{"n":{"x":2,"y":3}}',
            # The other members are kept.
            '{"n": {"x": 1, "y": 1.50}, "n": {"x": "no"}}': '{"n":{"y":1.50,"x":"no"}}',
            '{"m": 1, "m": 1, "n": {"x": "no"}, "l": 1}': '{"m":1,"n":{"x":"no"},"l":1}',
        }.items(),
    )
    def test_a_key_is_there_once_with_the_value_that_counts(self, write, columns, record, text):
        path = write(record + '\n{"n": {"x": "no", "y": null, "z": 0.10}}\n')
        columns += ", m BIGINT"
        beside = '{"n":{"x":"no","y":null,"z":0.10}}'
        assert read("json", path, columns).rescued_texts == [text, beside]

    def test_the_value_that_counts_is_there_whole_where_it_is_in_an_array(self, write):
        path = write('{"l": [{"x": 1, "x": 2}, {"x": "no"}]}\n')
        texts = read("json", path, f"l {X}[]").rescued_texts
        assert texts == ['{"l":[{"x":2},{"x":"no"}]}']

    def test_the_text_of_a_record_is_no_value_of_its_keys(self, write):
        # Both are rescued as `_corrupt_record`; the text has the other one in it.
        record = b'{"_corrupt_record": "a", "_corrupt_record": "b", "s": "\xff"}\n'
        path = write(record + b'{"_corrupt_record": "a", "_corrupt_record": "b"}\n{"a\n')
        assert read("json", path, "s VARCHAR").rescued == [
            {"_corrupt_record": record.decode(errors="backslashreplace").strip()},
            {"_corrupt_record": "b"},
            {"_corrupt_record": '{"a'},
        ]


class TestInferredTypes:
    def test_a_value_that_does_not_count_is_none_of_the_types(self, write):
        path = write('{"n": {"x": "a", "x": 1}, "l": [{"y": {}, "y": 2}]}\n')
        answer = read("json", path, rescues=False)
        assert answer.schema == "l:array<struct<y:bigint>>,n:struct<x:bigint>"
        assert answer.rows == [{"n": {"x": 1}, "l": [{"y": 2}]}]

    def test_a_key_that_is_there_twice_makes_no_record_a_corrupt_one(self, write):
        path = write('{"a": 1, "a": 2, "n": {"x": 1, "x": 2}}\n')
        assert read("json", path, rescues=False).schema == "a:bigint,n:struct<x:bigint>"
        path = write('{"a": 1, "a": 2}\n{"a"\n')
        assert read("json", path, rescues=False).schema == "_corrupt_record:string,a:bigint"

    def test_not_even_if_it_is_called_so(self, write):
        path = write('{"_corrupt_record": 1, "_corrupt_record": 2}\n')
        answer = read("json", path, rescues=False, columnNameOfCorruptRecord="bad")
        assert answer.schema == "_corrupt_record:bigint"
        assert answer.rows == [{"_corrupt_record": 2}]
        path = write('{"_corrupt_record": "a", "_corrupt_record": "b", "a": 1}\n')
        columns = "a BIGINT, _corrupt_record VARCHAR"
        answer = read("json", path, columns, rescues=False)
        assert answer.rows == [{"a": 1, "_corrupt_record": None}]


class TestLayouts:
    @pytest.mark.parametrize("end", ["]", ',\n {"id": 9, "v": NaN}]'])
    def test_each_record_of_an_array_over_several_lines_has_its_own_values(self, write, end):
        path = write(
            '[{"id": 1,\n  "x": 7, "n": {"x": 1,\n "x": 2}},\n {"id": 2, "x": 8, "n": {"x": 3}}'
            + end
        )
        answer = read("json", path, f"id BIGINT, x BIGINT, n {X}", multiLine="true")
        rows = [*zip(answer.rows, answer.rescued, strict=True)][:2]
        assert rows == [
            ({"id": 1, "x": 7, "n": {"x": 2}}, {"n": {"x": 1}}),
            ({"id": 2, "x": 8, "n": {"x": 3}}, None),
        ]

    def test_a_record_over_several_lines_is_read_so_too(self, write):
        path = write('{"id": 1,\n "n": [[{"x": 1,\n "x": 2}]]}')
        answer = read("json", path, f"id BIGINT, n {X}[][]", multiLine="true")
        assert answer.rows == [{"id": 1, "n": [[{"x": 2}]]}]
        assert answer.rescued == [{"n": [[{"x": 1}]]}]

    def test_files_that_are_read_together_are_each_read_so(self, write):
        names = ["1.json", "2.json", "3.json"]
        xs = ['"x": 1', '"x": 2', '"x": 1, "x": 3']
        paths = [
            write(f'{{"id": {place}, "n": {{{xs[place]}}}}}\n', name)
            for place, name in enumerate(names)
        ]
        answer = read("json", paths, f"id BIGINT, n {X}")
        assert {row["id"]: row["n"]["x"] for row in answer.rows} == {0: 1, 1: 2, 2: 3}
        assert sorted(answer.indexes) == [0, 1, 2]


def test_a_file_that_cannot_be_looked_through_is_read_without_duckdb(write):
    # As if there were no memory for it: the others are not held up.
    contents = ['{"n": {"": 1}}\n', "", '{"n": {"": 1, "": 2}}\n']
    paths = [write(content, f"{place}.json") for place, content in enumerate(contents)]
    sources = [Source(local(path)) for path in paths]
    paths[1].unlink()
    found = Found()
    found.add({"n": {"": "UBIGINT"}})
    with connect() as connection:
        assert repeating_files(sources, found, connection) == {1, 2}
        assert repeating_files(sources[:1], found, connection) == set()


@pytest.mark.parametrize("key", ["b", "a"])
def test_a_record_may_be_nested_as_deeply_as_one_that_has_no_key_twice(write, key):
    start, end = "[" * 490, "]" * 490
    path = write(f'{{"a": 1, "{key}": 2, "l": {start}{end}}}\n')
    answer = read("json", path, "l VARCHAR")
    assert answer.rows == [{"l": start + end}]
    assert answer.rescued == [{"a": 1, "b": 2} if key == "b" else {"a": 2}]


def test_so_may_be_the_object_that_has_the_key_twice(write):
    start, end = "[" * 490, "]" * 490
    path = write(f'{{"l": {start}{{"x": 1, "x": 2}}{end}}}\n')
    answer = read("json", path, "l VARCHAR")
    assert answer.rows == [{"l": f'{start}{{"x":2}}{end}'}]
    assert answer.rescued == [{"l": json.loads(f'{start}{{"x": 1}}{end}')}]


class TestKeys:
    @pytest.mark.parametrize("key", ["a b", 'q"q', "s'l/~", "*", "0", "ä", "a.b", "$", "\0n", "A"])
    def test_a_key_may_have_any_name(self, write, key):
        name = json.dumps(key)
        path = write(f'{{"n": {{{name}: 1, {name}: 2}}}}\n')
        assert read("json", path, "n MAP(VARCHAR, BIGINT)").rows == [{"n": {key: 2}}]

    def test_a_key_may_be_written_in_two_ways(self, write):
        path = write('{"n": {"x": 1, "\\u0078": 2}}\n')
        assert read("json", path, f"n {X}").rows == [{"n": {"x": 2}}]

    def test_keys_of_several_objects_and_those_in_texts_are_not_there_twice(self, write):
        path = write('{"x": 1, "n": {"x": 2, "t": "{\\"x\\":1,\\"x\\":2}"}, "l": [{"x": 3}]}\n')
        answer = read("json", path, f"x BIGINT, n STRUCT(x BIGINT, t VARCHAR), l {X}[]")
        assert answer.rows == [{"x": 1, "n": {"x": 2, "t": '{"x":1,"x":2}'}, "l": [{"x": 3}]}]
        assert answer.rescued == [None]

    def test_a_value_that_does_not_count_is_no_value_of_a_key_outside(self, write):
        path = write('{"x": 7, "n": {"x": 1, "x": 2}}\n')
        assert read("json", path, f"x BIGINT, n {X}").rescued == [{"n": {"x": 1}}]


KEYS = st.sampled_from(["x", "y", "X", "", "é"])
VALUES = st.recursive(
    st.sampled_from(["1", '"s"', "null", "2.5"]),
    lambda inner: (
        st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda pairs: f"{{{', '.join(f'{json.dumps(key)}: {of}' for key, of in pairs)}}}"
        )
        | st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    ),
    max_leaves=12,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(VALUES, min_size=1, max_size=3))
def test_any_value_is_as_the_standard_library_reads_it(write, values):
    lines = "".join(f'{{"id": {place}, "v": {of}}}\n' for place, of in enumerate(values))
    answer = read("json", write(lines), "id BIGINT, v VARCHAR")
    for row in answer.rows:
        wanted = json.loads(values[row["id"]])
        assert row["v"] == wanted or json.loads(row["v"]) == wanted
