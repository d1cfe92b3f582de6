"""The rules of REPLACE USING that a definition alone can break, in both Python forms."""

import pytest

from millpond import pipelines as dp
from millpond.errors.replace_using import (
    ReplaceUsingDuplicateKeyError,
    ReplaceUsingMissingSequenceByError,
    ReplaceUsingNoKeyError,
    SequenceByWithoutReplaceUsingError,
)


def as_table(**arguments):
    return dp.table(name="t", **arguments)


def as_flow(**arguments):
    return dp.replace_flow(name="t", target="target", **arguments)


@pytest.mark.parametrize("form", [as_table, as_flow])
@pytest.mark.parametrize(
    ("error", "keys", "sequence"),
    [
        (ReplaceUsingNoKeyError, [], "v"),
        (ReplaceUsingDuplicateKeyError, ["a", "b", "a"], "v"),
        (ReplaceUsingDuplicateKeyError, ["Region", "region"], "v"),
        (ReplaceUsingMissingSequenceByError, ["a"], None),
    ],
)
def test_an_incomplete_flow_is_refused_where_it_is_defined(registry, form, error, keys, sequence):
    with pytest.raises(error) as caught:
        form(replace_using=keys, sequence_by=sequence)(lambda: None)
    assert "main.sales.t" in caught.value.what
    assert caught.value.where.file == "test_replace_using.py"
    assert registry.flows == []


def test_a_sequence_alone_makes_no_replace_flow(registry):
    with pytest.raises(SequenceByWithoutReplaceUsingError):
        as_table(sequence_by="v")(lambda: None)


def test_a_replace_flow_without_keys_is_refused(registry):
    with pytest.raises(ReplaceUsingNoKeyError):
        as_flow(replace_using=None, sequence_by="v")(lambda: None)


def test_a_sequence_that_is_zero_is_a_wrong_type_and_not_a_missing_one(registry):
    with pytest.raises(TypeError, match="sequence_by of dp"):
        as_table(replace_using=["a"], sequence_by=0)(lambda: None)
