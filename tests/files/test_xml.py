"""Elements of one name are rows; a broken one costs no other, and no document type is read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from millpond.errors.file_formats import (
    FileUnreadableError,
    MalformedRecordError,
    MissingRowTagError,
    UnsupportedFormatOptionError,
)
from tests.files.format_reads import read as read_format


def read(path, columns=None, **options):
    return read_format("xml", path, columns, **({"rowTag": "r"} | options))


@pytest.fixture
def write(tmp_path):
    def write(content, name="a.xml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


class TestColumns:
    def test_elements_and_attributes_are_columns_with_types(self, write):
        path = write(
            '<?xml version="1.0"?>\n<all><r id="7"><name>A &amp; B</name><n>1</n><d>1</d>'
            "<on>2024-01-02</on><at>2024-01-02T03:04:05Z</at><ok>true</ok></r>"
            '<r id="8"><name><![CDATA[<r>]]></name><n>2</n><d>2.5</d><on/><ok>no</ok></r></all>'
        )
        answer = read(path)
        assert answer.schema == (
            "_id:bigint,at:timestamp,d:double,n:bigint,name:string,ok:string,on:date"
        )
        assert [tuple(row.values()) for row in answer.rows] == [
            (7, datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), 1.0, 1, "A & B", "true", date(2024, 1, 2)),
            (8, None, 2.5, 2, "<r>", "no", None),
        ]  # fmt: skip # a row a line
        assert answer.rescued == [None, None]

    def test_repeated_elements_are_arrays_and_nested_ones_structs(self, write):
        path = write(
            '<r><t>x</t><t>y</t><p cur="EUR">1.50</p><o><i>1</i></o></r>'
            "<r><t>z</t><p>2</p><o><i>2</i><i>3</i></o></r>"
        )
        answer = read(path)
        assert answer.schema == (
            "o:struct<i:array<bigint>>,p:struct<_VALUE:double,_cur:string>,t:array<string>"
        )
        assert answer.rows == [
            {"o": {"i": [1]}, "p": {"_VALUE": 1.5, "_cur": "EUR"}, "t": ["x", "y"]},
            {"o": {"i": [2, 3]}, "p": {"_VALUE": 2.0, "_cur": None}, "t": ["z"]},
        ]

    def test_without_types_values_are_texts(self, write):
        answer = read(write("<r><a>1.50</a><b> x </b></r>"), types=False)
        assert answer.rows == [{"a": "1.50", "b": "x"}]

    def test_options_name_and_leave_out(self, write):
        path = write('<r k="1"><a:b xmlns:a="u"> - </a:b>text<c> x </c></r>')
        answer = read(
            path, types=False, attributePrefix="@", valueTag="text", nullValue="-",
            ignoreNamespace="true",
        )  # fmt: skip # a row a line
        assert answer.rows == [{"@k": "1", "b": None, "c": "x", "text": "text"}]
        plain = read(path, types=False, excludeAttribute="true", ignoreSurroundingSpaces="false")
        assert plain.rows == [{"_VALUE": "text", "a:b": " - ", "c": " x "}]

    def test_the_row_tag_is_needed_and_an_xsd_is_refused(self, write):
        path = write("<r/>")
        with pytest.raises(MissingRowTagError, match="rowTag"):
            read(path, rowTag="")
        with pytest.raises(UnsupportedFormatOptionError, match="rowValidationXSDPath"):
            read(path, rowValidationXSDPath="a.xsd")


class TestValues:
    def test_values_that_fit_are_kept_and_others_rescued(self, write):
        path = write("<r><n>5</n><p>1.005</p></r><r><n>five</n><p/></r><r><n><x>1</x></n></r>")
        answer = read(path, "n INTEGER, p DECIMAL(9,3)")
        assert answer.rows == [
            {"n": 5, "p": Decimal("1.005")},
            {"n": None, "p": None},
            {"n": None, "p": None},
        ]
        assert answer.rescued == [None, {"n": "five"}, {"n": {"x": "1"}}]

    def test_unasked_elements_are_told_and_rescued(self, write):
        answer = read(write('<r k="1"><a>1</a><b><c>2</c></b></r>'), "a BIGINT")
        assert answer.new_columns == "_k:bigint,b:struct<c:bigint>"
        assert answer.rescued == [{"_k": "1", "b": {"c": "2"}}]

    @pytest.mark.parametrize(
        "name", ["__millpond_text", "__millpond_rescued", "__millpond_corrupt"]
    )
    def test_elements_with_names_that_millpond_uses_itself_are_rescued(self, write, name):
        path = write(f"<r><x>a</x><{name}>mine</{name}></r><r><x>b</x></r>".encode())
        answer = read(path, "x BIGINT, _corrupt_record VARCHAR", rescues=False)
        shown = [row["_corrupt_record"] for row in answer.rows]
        assert [text.startswith('{"x"') for text in shown] == [True, True]
        answer = read(path, "x VARCHAR")
        assert answer.rescued == [{name: "mine"}, None]
        assert (answer.new_columns, read(path).schema) == ("", "x:string")

    def test_several_files_are_read_together(self, write):
        paths = [write("<r><a>1</a></r>", "1.xml"), write("<r><a>2.5</a></r>", "2.xml")]
        answer = read(paths)
        assert answer.schema == "a:double"
        found = [row["a"] for row in answer.rows]
        assert dict(zip(answer.indexes, found, strict=True)) == {0: 1.0, 1: 2.5}


class TestRows:
    @pytest.mark.parametrize(
        ("content", "rows"),
        [
            ("<a><r>1</r></a>", 1),
            ("<a><r/><r /><r k='/>'/></a>", 3),
            ("<a><!-- <r>1</r> --><r>2</r></a>", 1),
            ("<a><![CDATA[<r>1</r>]]><r>2</r></a>", 1),
            ("<a><r>1<r>2</r></r></a>", 1),
            ("<a><rr>1</rr><row/></a>", 0),
            ("<a></r><r>1</r></a>", 1),
            ("<a><!-- <r>1</r>", 0),
            ("", 0),
            ("no xml", 0),
        ],
    )
    def test_rows_are_the_elements_of_the_tag(self, write, content, rows):
        answer = read(write(content), "x VARCHAR")
        assert len(answer.rows) == rows
        assert not any(rescued and "_corrupt_record" in rescued for rescued in answer.rescued)

    def test_rows_are_found_wherever_the_text_is_cut_for_reading(self, write):
        pad = "<!-- " + "p" * 100_003 + " -->"
        rows = "".join(f'<r n="{n}"><t>{"x" * 50_001}</t></r>{pad}' for n in range(40))
        answer = read(write(f"<a>{rows}</a>"), "_n BIGINT, t VARCHAR")
        assert sorted(row["_n"] for row in answer.rows) == list(range(40))
        assert {len(row["t"]) for row in answer.rows} == {50_001}

    def test_a_broken_row_costs_no_other_and_is_kept_whole(self, write):
        path = write("<a><r><x>1</x></r><r><x>2</r><r><x>&none;</x></r><r><x>4</x></r><r><x>5")
        answer = read(path, "x BIGINT")
        assert [row["x"] for row in answer.rows] == [1, None, None, 4, None]
        assert [r and r["_corrupt_record"] for r in answer.rescued] == [
            None, "<r><x>2</r>", "<r><x>&none;</x></r>", None, "<r><x>5",
        ]  # fmt: skip # a row a line

    def test_modes_drop_or_stop_at_a_broken_row(self, write):
        path = write("<r><x>1</x></r><r><x>2</r>")
        assert read(path, "x BIGINT", mode="DROPMALFORMED").rows == [{"x": 1}]
        with pytest.raises(MalformedRecordError, match=r"Record 2 of file:.*a\.xml"):
            read(path, "x BIGINT", mode="FAILFAST")

    @pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16"])
    def test_the_encoding_is_the_one_that_the_document_names(self, write, encoding):
        text = f'<?xml version="1.0" encoding="{encoding}"?><r><x>café</x></r>'
        assert read(write(text.encode(encoding)), "x VARCHAR").rows == [{"x": "café"}]


class TestHostileFiles:
    def test_entities_do_not_grow(self, write):
        entities = "".join(
            f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom" * 10}">' for n in range(12)
        )
        path = write(f"<!DOCTYPE a [{entities}]><a><r><x>&e11;</x></r><r><x>1</x></r></a>")
        answer = read(path, "x VARCHAR")
        assert answer.rows == [{"x": None}, {"x": "1"}]
        assert answer.rescued[0] == {"_corrupt_record": "<r><x>&e11;</x></r>"}

    def test_files_are_not_read_through_entities(self, write):
        secret = write("secret", "secret.txt")
        path = write(
            f'<!DOCTYPE a [<!ENTITY e SYSTEM "{secret.as_uri()}">]><a><r><x>&e;</x></r></a>'
        )
        assert read(path, "x VARCHAR").rows == [{"x": None}]

    def test_deep_nesting_is_a_row_that_is_kept_aside(self, write):
        text = "<r>" + "<x>" * 100_000 + "</x>" * 100_000 + "</r>"
        answer = read(write(text + "<r><x>1</x></r>"), "x VARCHAR")
        assert answer.rows == [{"x": None}, {"x": "1"}]
        assert answer.rescued[0] == {"_corrupt_record": text}

    def test_a_row_without_end_is_an_error_that_names_file_and_limit(self, write):
        path = write(b"<a><r>" + b"x" * (60 << 20))
        with pytest.raises(FileUnreadableError, match=r"a\.xml.*longer than 16 MiB"):
            read(path, "x VARCHAR")

    def test_bytes_that_are_no_characters_are_replaced_and_the_row_kept(self, write):
        answer = read(write(b"<r><x>a\xffb</x></r><r><x>\x00</x></r>"), "x VARCHAR")
        assert [row["x"] for row in answer.rows] == ["a\ufffdb", None]
        assert answer.rescued == [
            {"_corrupt_record": "<r><x>a\\xffb</x></r>"},
            {"_corrupt_record": "<r><x>\x00</x></r>"},
        ]
