"""Of a key that a JSON object has twice the last value counts, wherever the object stands."""

from __future__ import annotations

import json

import duckdb
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


@pytest.mark.parametrize("member", ["1", "[1]", '{"z": 1}', '[{"z": 1}]', '{"z": {"z": 1}}'])
@pytest.mark.parametrize(
    "around", ["%s", "[%s]", '{"m": %s}', '{"m": %s, "o": 1}', '{"m": [[%s]], "o": {"p": 1}}']
)
class TestWhateverElseStandsInTheObject:
    @pytest.mark.parametrize("written", ['"x": 1, "x": 2, "y": %s', '"y": %s, "x": 1, "x": 2'])
    def test_the_last_value_counts_and_the_other_is_rescued(self, write, around, member, written):
        path = write('{"n": %s}\n' % (around % f"{{{written % member}}}"))
        answer = read("json", path, "n VARCHAR")
        counting = around % f'{{"x": 2, "y": {member}}}'
        assert [json.loads(row["n"]) for row in answer.rows] == [json.loads(counting)]
        assert '{"x":1}' in answer.rescued_texts[0]

    def test_so_does_the_last_of_such_members(self, write, around, member):
        path = write('{"n": %s}\n' % (around % f'{{"x": 1, "y": {member}, "y": null}}'))
        answer = read("json", path, "n VARCHAR")
        counting = around % '{"x": 1, "y": null}'
        assert [json.loads(row["n"]) for row in answer.rows] == [json.loads(counting)]
        assert f'{{"y":{member.replace(" ", "")}}}' in answer.rescued_texts[0]


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
            '{"n": {"x": 1, "x": 2, "y": null, "z": 3}}': '{"n":{"x":2,"z":3}}',
            '{"m": 1, "m": 1, "n": {"x": "no"}, "l": 1}': '{"m":1,"n":{"x":"no"},"l":1}',
        }.items(),
    )
    def test_a_key_is_there_once_with_the_value_that_counts(self, write, columns, record, text):
        path = write(record + '\n{"n": {"x": "no", "y": null, "z": 0.10}}\n')
        columns += ", m BIGINT"
        beside = '{"n":{"x":"no","y":null,"z":0.10}}'
        assert read("json", path, columns).rescued_texts == [text, beside]

    def test_an_other_value_as_a_whole_goes_before_those_within_the_one_that_counts(self, write):
        path = write('{"n": {"x": 1}, "n": {"x": 2, "x": 3}}\n')
        answer = read("json", path, f"n {X}")
        assert (answer.rows, answer.rescued_texts) == ([{"n": {"x": 3}}], ['{"n":{"x":1}}'])

    def test_a_number_that_does_not_count_is_written_as_in_the_file(self, write):
        path = write('{"n": {"x": 1.50, "x": 1}}\n')
        assert read("json", path, f"n {X}").rescued_texts == ['{"n":{"x":1.50}}']

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


class TestFilesThatAreLookedThrough:
    """Of objects and other values at one place DuckDB's types don't tell the keys."""

    @pytest.fixture
    def repeating(self, write):
        def repeating(*contents, memory="1GB", without=()):
            paths = [write(content, f"{place}.json") for place, content in enumerate(contents)]
            found = Found()
            found.add({"l": ["UBIGINT", {"x": "UBIGINT"}]})
            for place in without:
                paths[place].unlink()
            with connect() as connection:
                connection.execute(f"SET memory_limit = '{memory}'")
                return repeating_files([Source(local(path)) for path in paths], found, connection)

        return repeating

    ONCE, TWICE = '{"l": [5, {"x": 1}]}\n', '{"l": [5, {"x": 1, "x": 2}]}\n'

    def test_those_with_such_objects_are_told(self, repeating):
        assert repeating(self.ONCE, self.TWICE, self.ONCE, self.TWICE) == {1, 3}

    def test_one_for_which_there_is_no_memory_is_taken_for_one_and_holds_up_no_other(
        self, repeating
    ):
        long = '{"l": [%s 5]}\n' % ('{"x": 1}, ' * 1_000_000)
        assert repeating(self.ONCE, long, self.TWICE, memory="300MB") == {1, 2}
        assert repeating(self.ONCE, long, self.TWICE, memory="4GB") == {2}

    def test_one_that_is_gone_is_not_taken_for_one(self, repeating):
        with pytest.raises(duckdb.IOException, match=r"0\.json"):
            repeating(self.ONCE, without=[0])


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


def member(key, value):
    # Nothing but nulls under an empty key is passed over, however often it is there.
    return f"{json.dumps(key)}: {'0' if (key, value) == ('', 'null') else value}"


KEYS = st.sampled_from(["x", "y", "X", "", "é"])
VALUES = st.recursive(
    st.sampled_from(["1", '"s"', "null", "2.5"]),
    lambda inner: (
        st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda pairs: f"{{{', '.join(member(key, of) for key, of in pairs)}}}"
        )
        | st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    ),
    max_leaves=12,
)


class Pairs(list):
    """The members of an object, as they stand in the text."""


def counting(value):
    if isinstance(value, Pairs):
        return {key: counting(inner) for key, inner in value}
    return [*map(counting, value)] if isinstance(value, list) else value


def others(value):
    """What does not count: of each key that is there several times, the last but one."""
    if isinstance(value, Pairs):
        by_key = {key: [inner for name, inner in value if name == key] for key, _ in value}
        found = {
            key: counting(inner[-2]) if inner[1:] else others(inner[0])
            for key, inner in by_key.items()
            if inner[1:] or others(inner[0]) is not None
        }
        return found or None
    found = [*map(others, value)] if isinstance(value, list) else []
    return None if all(item is None for item in found) else found


def merged(other, value):
    """The value, with what only the other one has."""
    if not isinstance(value, dict):
        return value
    members = {**other} if isinstance(other, dict) else {}
    for key, inner in value.items():
        members[key] = merged(members.get(key), inner)
        if inner is None:
            del members[key]
    return members


def is_text_of(text, value):
    return text == value or json.loads(text) == value


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(VALUES, min_size=1, max_size=3))
def test_any_value_is_as_the_standard_library_reads_it(write, values):
    path = write("".join(f'{{"id": {id_}, "v": {of}}}\n' for id_, of in enumerate(values)))
    pairs = [json.loads(value, object_pairs_hook=Pairs) for value in values]

    def columns(type_of_v):
        """For each record its value, the column and what was rescued of it."""
        answer = read("json", path, f"id BIGINT, v {type_of_v}")
        found = {
            row["id"]: (row["v"], rescued and rescued.pop("v"), rescued)
            for row, rescued in zip(answer.rows, answer.rescued, strict=True)
        }
        assert len(answer.rows) == len(values)
        assert not any(rest for *_, rest in found.values())
        return [(of, *found[id_][:2]) for id_, of in enumerate(pairs)]

    for of, text, rescued in columns("VARCHAR"):
        assert is_text_of(text, counting(of))
        assert rescued == others(of)
    for of, entries, rescued in columns("MAP(VARCHAR, VARCHAR)"):
        value = counting(of)
        if isinstance(value, dict):
            assert entries.keys() == value.keys()
            assert all(is_text_of(entries[key], value[key]) for key in value)
            assert rescued == others(of)
        else:
            assert (entries, rescued) == (None, value)
    for of, fields, rescued in columns("STRUCT(x VARCHAR, y VARCHAR)"):
        value, other = counting(of), others(of)
        if isinstance(value, dict):
            assert all(is_text_of(fields[key], value.get(key)) for key in ("x", "y"))
        else:
            assert fields is None
        fits = isinstance(value, dict) and all(value[key] is None for key in {*value} - {"x", "y"})
        if fits or value is None:
            assert rescued == other
        else:
            assert rescued == (value if other is None else merged(other, value))


# Values that one type has room for.
REGULAR = st.recursive(
    st.just(1),
    lambda inner: (
        st.dictionaries(st.sampled_from("xyz"), inner, min_size=1)
        | inner.map(lambda item: [item, item])
    ),
    max_leaves=12,
)


def objects_within(value):
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for item in inner if isinstance(value, dict | list) else ():
        yield from objects_within(item)


def text_of(value, *, twice, key):
    """A value as JSON, in which an object has a key twice; what counts stands last."""
    if isinstance(value, list):
        return f"[{', '.join(text_of(item, twice=twice, key=key) for item in value)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    members = [(of, text_of(inner, twice=twice, key=key)) for of, inner in value.items()]
    if value is twice:
        members.insert(0, (key, "2" if value[key] == 1 else "null"))
    return f"{{{', '.join(f'{json.dumps(of)}: {text}' for of, text in members)}}}"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from("xyz"), REGULAR, min_size=1), st.data())
def test_no_type_keeps_a_key_from_being_told_that_one_object_has_twice(write, value, data):
    twice = data.draw(st.sampled_from([*objects_within(value)]))
    key = data.draw(st.sampled_from(sorted(twice)))
    path = write(f'{{"v": {text_of(value, twice=twice, key=key)}}}\n')
    assert read("json", path).rows == [{"v": value}]
