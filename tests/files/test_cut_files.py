"""Files that were cut off before their first row are not taken for files that were emptied."""

from __future__ import annotations

import gzip

import pytest

SETTING = "millpond.replaceUsing.emptyFiles"
GIVEN = "header => true, schema => 'v INT, k STRING, s TIMESTAMP'"
WHOLE = "v,k,s\n1,x,2020-01-01\n"


def table(suppliers, more, *, file_format="csv", setting="replace", columns="v"):
    suppliers.write(
        f"""
        CREATE OR REFRESH STREAMING TABLE t TBLPROPERTIES ('{SETTING}' = '{setting}')
        FLOW REPLACE USING (f) SEQUENCE BY at BY NAME
        SELECT {columns}, _metadata.file_name AS f, _metadata.file_modification_time AS at
        FROM STREAM read_files('SENT', format => '{file_format}', allowOverwrites => true, {more});
        """
    )


def send_twice(suppliers, text, *, whole=WHOLE, name="a.csv"):
    """Load a version of a file that has one row, and send another one."""
    suppliers.send(name, whole)
    suppliers.updated()
    assert len(suppliers.rows()) == 1
    suppliers.send(name, text, at_s=10)


def assert_refused(suppliers, *words):
    error = str(suppliers.error())
    for word in words:
        assert word in error
    assert len(suppliers.rows()) == 1


def assert_emptied(suppliers):
    suppliers.updated()
    assert suppliers.rows() == []


@pytest.mark.parametrize("cut", range(1, 6))
@pytest.mark.parametrize("more", ["", ", mode => 'FAILFAST'"])
def test_a_csv_file_cut_off_within_its_header_empties_nothing(suppliers, cut, more):
    table(suppliers, GIVEN + more)
    send_twice(suppliers, WHOLE[:cut])
    assert_refused(suppliers, "cut off", "a.csv")


@pytest.mark.parametrize("text", ["", "\n", "\r\n \n", "v,k,s\n", "v,k\n  ", "v\r\n"])
def test_a_csv_file_without_rows_that_is_whole_empties_its_key(suppliers, text):
    table(suppliers, GIVEN)
    send_twice(suppliers, text)
    assert_emptied(suppliers)


@pytest.mark.parametrize("cut", ["art,pri", "art,price,no"])
def test_a_cut_header_gives_no_new_columns(suppliers, cut):
    table(suppliers, "header => true", columns="*")
    send_twice(suppliers, cut, whole="art,price\npen,1.20\n")
    assert_refused(suppliers, "cut off")
    suppliers.send("a.csv", "art,price\nink,3.10\n", at_s=20)
    suppliers.updated()
    ((*columns, _file, _time),) = suppliers.rows()
    assert columns == ["ink", 3.10, None], "two columns of the file, and _rescued_data"


def test_what_stands_before_a_header_is_no_file_without_rows(suppliers):
    table(suppliers, GIVEN + ", skipRows => 2")
    send_twice(suppliers, "sent by\nacme\n", whole=f"sent by\nacme\n{WHOLE}")
    assert_refused(suppliers, "no header")


def test_no_column_is_inferred_from_a_cut_header_where_others_are_whole(suppliers):
    table(suppliers, "header => true", columns="*")
    suppliers.send("a.csv", "art,pri")
    suppliers.send("b.csv", "art,price\npen,1.20\n")
    assert "a.csv" in str(suppliers.error())
    ((*columns, _file, _time),) = suppliers.rows()
    assert columns == ["pen", 1.20, None], "two columns of the file, and _rescued_data"


@pytest.mark.parametrize("text", ["sent by ac", "sent by acme\n", "# of acme\n", "\0\0\0\0"])
def test_lines_before_the_first_row_are_no_file_without_rows_either(suppliers, text):
    table(suppliers, "header => false, skipRows => 1, comment => '#', schema => 'v INT'")
    send_twice(suppliers, text, whole="sent by acme\n# of acme\n1\n")
    assert_refused(suppliers, "a.csv", "no rows")


@pytest.mark.parametrize("text", [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_a_mark_of_the_order_of_bytes_is_no_blank_line(suppliers, text):
    table(suppliers, GIVEN)
    send_twice(suppliers, text, whole="\ufeff" + WHOLE)
    assert_refused(suppliers, "cut off")
    suppliers.send("a.csv", "\ufeff\r\n", at_s=20)
    assert_emptied(suppliers)


@pytest.mark.parametrize(
    ("text", "more"), [(b"\xff\xfe", ", encoding => 'UTF-16'"), (b"\xff\xfe", "")]
)
def test_the_mark_of_another_encoding_is_none_either(suppliers, text, more):
    table(suppliers, GIVEN + more)
    suppliers.send("a.csv", WHOLE if not more else WHOLE.encode("utf-16"))
    suppliers.updated()
    suppliers.send("a.csv", text, at_s=10)
    assert_refused(suppliers, "byte order mark")


def test_half_an_end_of_a_line_gives_no_new_column(suppliers):
    table(suppliers, "header => true, multiLine => true", columns="*")
    send_twice(suppliers, "v,w\r", whole="v,w\r\n1,2\r\n")
    assert_refused(suppliers, "cut off")
    suppliers.send("a.csv", "v,w\r\n", at_s=20)
    assert_emptied(suppliers)


def test_a_header_cut_off_within_quotes_empties_nothing(suppliers):
    table(suppliers, "header => true, multiLine => true, schema => 'v INT, `a\nb` STRING'")
    send_twice(suppliers, 'v,"a\n', whole='v,"a\nb"\n1,x\n')
    assert_refused(suppliers, "cut off")


def test_a_quoted_header_that_ends_its_line_is_whole(suppliers):
    table(suppliers, "header => true, multiLine => true, schema => 'v INT, k STRING'")
    send_twice(suppliers, '"v","k"\n', whole='"v","k"\n1,x\n')
    assert_emptied(suppliers)


def test_a_compressed_file_counts_by_its_content(suppliers):
    table(suppliers, GIVEN)
    whole = gzip.compress(WHOLE.encode())
    send_twice(suppliers, gzip.compress(b"v,k"), whole=whole, name="a.csv.gz")
    assert_refused(suppliers, "cut off")
    suppliers.send("a.csv.gz", gzip.compress(b""), at_s=20)
    suppliers.updated()
    assert suppliers.rows() == []


def test_the_other_files_of_the_update_are_read(suppliers):
    table(suppliers, GIVEN)
    suppliers.send("a.csv", WHOLE)
    suppliers.updated()
    suppliers.send("a.csv", "v,", at_s=10)
    suppliers.send("b.csv", WHOLE.replace("1,x", "2,x"), at_s=10)
    assert "a.csv" in str(suppliers.error())
    assert sorted(row[:2] for row in suppliers.rows()) == [(1, "a.csv"), (2, "b.csv")]


XML = (
    '<?xml version="1.0"?>\n<!-- <of> --><lists day="1>0">\n <none/><row><v>1</v></row>\n</lists>\n'
)
CUT_XML = {
    "in the declaration": "<?xm",
    "in the tag of the root": "<lists",
    "in an attribute": '<lists day="1>0',
    "before the rows": "<lists>\n <none/>",
    "behind an element of the name of the root": "<lists><lists/>",
    "in a comment": "<lists><!-- </lists>",
    "in a character": "<lists><".encode("utf-16")[:-1],
    "in the tag of a row": "<lists><row",
}
WHOLE_XML = {
    "without bytes": "",
    "blank": "\n",
    "without the row": XML.replace("<row><v>1</v></row>", ""),
    "an empty root": '<lists day="1>0"/>',
    "a comment at the end": "<l></l >\n<!-- end -->\n",
    "a document type": '<!DOCTYPE l [<!ENTITY e "x">]>\n<l></l>',
    "in UTF-16": "<lists></lists>".encode("utf-16"),
    "with an encoding that is none": '<?xml version="1.0" encoding="hex"?><l/>',
}


@pytest.mark.parametrize("cut", CUT_XML.values(), ids=CUT_XML)
def test_an_xml_file_cut_off_before_its_first_row_empties_nothing(suppliers, cut):
    table(suppliers, "rowTag => 'row', schema => 'v INT', mode => 'FAILFAST'", file_format="xml")
    send_twice(suppliers, cut, whole=XML, name="a.xml")
    assert_refused(suppliers, "a.xml")


@pytest.mark.parametrize("text", WHOLE_XML.values(), ids=WHOLE_XML)
def test_an_xml_file_without_rows_that_is_whole_empties_its_key(suppliers, text):
    table(suppliers, "rowTag => 'row', schema => 'v INT'", file_format="xml")
    send_twice(suppliers, text, whole=XML, name="a.xml")
    assert_emptied(suppliers)
