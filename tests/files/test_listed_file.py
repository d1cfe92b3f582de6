"""When two looks at a file showed one version of it."""

import pytest

from millpond.files.listed_file import ListedFile

S = 10**9


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 7 * S, "x"), True),
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 7 * S, "y"), False),
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 8 * S, "x"), False),
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 6, 7 * S, "x"), False),
        # It was counted as later than another of its second.
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 7 * S + 1000, "x"), True),
        # It was remembered before etags were.
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 7 * S), True),
        (("s3://b/k", 5, 7 * S, "x"), ("s3://b/k", 5, 8 * S), False),
        (("file:/k", 5, 7 * S), ("file:/k", 5, 7 * S), True),
        (("file:/k", 5, 7 * S), ("file:/k", 5, 7 * S + 1), False),
        (("file:/k", 5, 7 * S), ("file:/k", 6, 7 * S), False),
    ],
)
def test_same_versions(first, second, is_same):
    one, other = ListedFile(*first), ListedFile(*second)
    assert one.is_same_version(other) is is_same
    assert other.is_same_version(one) is is_same
