"""The options of Spark's XML reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.errors.file_formats import MissingRowTagError, UnsupportedFormatOptionError
from millpond.files.formats.json_options import boolean_option

_REFUSED = {
    "rowvalidationxsdpath": (
        "rowValidationXSDPath",
        "check the files before, or the columns by an expectation",
    ),
    "wildcardcolname": (
        "wildcardColName",
        "elements without a column are kept in the rescued data column",
    ),
    "singlevariantcolumn": (
        "singleVariantColumn",
        "there is no variant type; give a schema or let it be inferred",
    ),
}


@dataclass(frozen=True)
class XmlOptions:
    """How XML is read.

    Attributes:
        row_tag: The name of the elements that are rows.
        attribute_prefix: What stands before the names of columns of attributes.
        value_tag: The column of an element's text where it has attributes or elements as well.
        without_attributes: Whether attributes are left out.
        null_value: The text that means NULL, or `None` for none.
        trims: Whether spaces around texts are dropped.
        ignores_namespaces: Whether prefixes of names are left out.
    """

    row_tag: str
    attribute_prefix: str = "_"
    value_tag: str = "_VALUE"
    without_attributes: bool = False
    null_value: str | None = None
    trims: bool = True
    ignores_namespaces: bool = False


def xml_options(given: Mapping[str, str]) -> XmlOptions:
    """Read the options; their keys are in lower case.

    Raises:
        MissingRowTagError: It is not said which elements are rows.
        InvalidFormatOptionError: A value is none of its option.
        UnsupportedFormatOptionError: One asks for what there is not.
    """
    row_tag = given.get("rowtag", "").strip().strip("<>")
    if not row_tag:
        raise MissingRowTagError.in_read()
    for key, (name, instead) in _REFUSED.items():
        if given.get(key):
            raise UnsupportedFormatOptionError.from_value(name, given[key], instead=instead)
    return XmlOptions(
        row_tag=row_tag,
        attribute_prefix=given.get("attributeprefix", "_"),
        value_tag=given.get("valuetag", "_VALUE"),
        without_attributes=boolean_option(given, "excludeAttribute"),
        null_value=given.get("nullvalue"),
        trims=boolean_option(given, "ignoreSurroundingSpaces", default=True),
        ignores_namespaces=boolean_option(given, "ignoreNamespace"),
    )
