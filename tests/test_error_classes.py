"""Error classes as part of the interface: named, documented, and each reached by a test."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from millpond.errors import MillpondError, all_error_classes

ROOT = Path(__file__).parent.parent


def error_page():
    spec = importlib.util.spec_from_file_location(
        "error_reference", ROOT / "scripts" / "error_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_the_page_of_error_classes_is_current():
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == error_page()


def test_names_are_stable_words_and_unique():
    names = [cls.error_class for cls in all_error_classes()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in names)


@pytest.mark.parametrize("cls", all_error_classes(), ids=lambda cls: cls.error_class)
def test_every_class_is_reached_by_a_test_and_has_a_meaning(cls):
    assert cls.__doc__
    assert cls.__doc__ != MillpondError.__doc__
    words = re.compile(rf"\b({cls.error_class}|{cls.__name__})\b")
    tests = (ROOT / "tests").rglob("test_*.py")
    assert any(words.search(path.read_text(encoding="utf-8")) for path in tests)
