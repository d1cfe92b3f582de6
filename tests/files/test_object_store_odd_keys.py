"""Keys that S3 may hold and that make no paths."""

from __future__ import annotations

import pytest

from tests.files.s3_stub import Objects, s3_stub

ODD = ("in//b.json", "in/../c.json", "in/./d.json", "in/e\n.json", "in/f\x01\t.json", "/in/g.json")


@pytest.fixture
def objects(monkeypatch):
    found = Objects({"in/a.json": b'{"a": 1}\n', "in/z.json": b'{"a": 3}\n'})
    with s3_stub(found) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield found


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("path", ["", "*/*.json", "**.json"])
def test_odd_keys_are_read_and_leave_the_others(suppliers, objects, path, page):
    objects.page = page
    objects.contents |= {key: b'{"a": %d}\n' % number for number, key in enumerate(ODD, start=10)}
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://b/{path}', format => 'json', schema => 'a INT', "
        "useStrictGlobber => false)"
    )
    suppliers.updated()
    # Parts that begin with a dot are hidden.
    hidden = {11, 12}
    odd = {10 + number for number in range(len(ODD))} - hidden
    assert {row[0] for row in suppliers.rows()} == {1, 3, *odd}
    assert len(suppliers.rows()) == 2 + len(odd)


@pytest.mark.parametrize("path", ["in/*", "*/*", "in/*/b.json"])
def test_a_key_with_an_empty_part_is_below_no_folder_of_a_strict_pattern(suppliers, objects, path):
    objects.contents["in//b.json"] = b'{"a": 2}\n'
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://b/{path}', format => 'json', schema => 'a INT')"
    )
    suppliers.updated()
    assert sorted(suppliers.rows()) == ([] if path == "in/*/b.json" else [(1,), (3,)])


def test_what_stands_for_a_folder_is_no_file(suppliers, objects):
    objects.contents |= {"in/": b"", "in/sub/": b"", "in/sub/b.json": b'{"a": 2}\n'}
    suppliers.query(
        "SELECT a FROM STREAM read_files('s3://b/in', format => 'json', schema => 'a INT')"
    )
    suppliers.updated()
    assert sorted(suppliers.rows()) == [(1,), (2,), (3,)]
