"""A batch starts from the state after the one before; what changed so that it can't is refused."""

from __future__ import annotations

import json

import pytest

from millpond.errors.state import StateIncompatibleError, StateMissingError, StateUnreadableError
from millpond.state import FlowState
from millpond.storage import LocalStore


@pytest.fixture
def state(tmp_path) -> FlowState:
    return FlowState(tmp_path / "state", LocalStore())


def test_a_batch_whose_version_before_is_gone_is_refused(state):
    with pytest.raises(StateMissingError, match="after batch 3 is missing"):
        state.begin(4)


@pytest.mark.parametrize("content", ["", '{"format":1,"batch":0', "[]", '{"format":1,"batch":7}'])
def test_a_version_that_is_torn_or_another_batchs_is_refused(state, tmp_path, content):
    path = tmp_path / "state" / "versions" / "0"
    LocalStore().put(path, content.encode())
    with pytest.raises(StateUnreadableError, match="can't be read"):
        state.begin(1)


def test_a_version_of_a_newer_millpond_is_refused(state, tmp_path):
    path = tmp_path / "state" / "versions" / "0"
    LocalStore().put(path, json.dumps({"format": 99, "batch": 0}).encode())
    with pytest.raises(StateUnreadableError, match="of format 99"):
        state.begin(1)


def test_a_description_that_differs_is_refused_by_operator(state):
    state.begin(0).commit({"distinct-1": {"keys": ["a"], "kind": "deduplicate"}})
    state.check(0, {"distinct-1": {"keys": ("a",), "kind": "deduplicate"}})
    with pytest.raises(StateIncompatibleError, match=r"keys of distinct-1 .* \['a'\] to \['b'\]"):
        state.check(0, {"distinct-1": {"keys": ["b"], "kind": "deduplicate"}})
    with pytest.raises(StateIncompatibleError, match="no longer has distinct-1"):
        state.check(0, {})
    with pytest.raises(StateIncompatibleError, match="join-2 came in"):
        state.check(0, {"distinct-1": {"keys": ["a"], "kind": "deduplicate"}, "join-2": {}})
