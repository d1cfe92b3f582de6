"""The pipeline's spec, `spark-pipeline.yml`: where it is found and what its fields may be.

It is Apache Spark's file, unchanged. Does not import pyspark: quick commands read the spec, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.names import InvalidNameError
from millpond.errors.project import (
    SeveralSpecsError,
    SpecFieldError,
    SpecNotFoundError,
    StorageNotSupportedError,
)
from millpond.errors.suggestion import cut_short
from millpond.names import DEFAULT_CATALOG, DEFAULT_SCHEMA, split_name
from millpond.options import check_option
from millpond.project.spec_document import SpecDocument
from millpond.redaction import is_secret

SPEC_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")
FIELDS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")

# One letter before the colon would be a drive of Windows, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Library:
    """One entry of `libraries`: a file, or a folder with `/**` for all files below it."""

    pattern: str
    location: SourceLocation


@dataclass(frozen=True)
class Spec:
    """What a pipeline's spec says.

    Attributes:
        path: The spec file, absolute, symbolic links resolved.
        storage: Folder for tables, checkpoints and events, absolute.
        catalog: Default catalog for names of fewer than three parts.
        schema: Default schema for names of one part.
        configuration: Spark settings, and those of `millpond.options`.
    """

    path: Path
    name: str
    storage: Path
    catalog: str = DEFAULT_CATALOG
    schema: str = DEFAULT_SCHEMA
    configuration: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[Library, ...] = ()

    @property
    def root(self) -> Path:
        """The project folder, which paths in the spec are relative to."""
        return self.path.parent


def find_spec(start: Path) -> Path:
    """Find the spec in a folder, or in the nearest folder above it that has one.

    Raises:
        SpecNotFoundError: There is none.
        SeveralSpecsError: A folder has two.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        found = [name for name in SPEC_FILES if _is_file(folder / name)]
        if len(found) > 1:
            raise SeveralSpecsError.from_folder(folder, found)
        if found:
            return folder / found[0]
    raise SpecNotFoundError.from_search(start, SPEC_FILES)


def load_spec(path: Path) -> Spec:
    """Read a spec and check all its fields.

    Raises:
        SpecNotFoundError: There is no such file.
        SpecUnreadableError: It is not YAML.
        SpecFieldError: A field is unknown, missing, repeated, or has a wrong value.
        StorageNotSupportedError: The storage is not a local folder.
        UnknownOptionError: A `millpond.*` setting does not exist.
        InvalidOptionError: A `millpond.*` setting has a wrong value.
        InvalidNameError: The catalog or schema can't be a name.
    """
    path = _real(path)
    document = SpecDocument.read(path, file=path.name)
    fields = document.fields(document.root, place="The spec", known=FIELDS)
    return Spec(
        path=path,
        name=_required(document, fields, "name", example="my_pipeline"),
        storage=_storage(document, fields, root=path.parent),
        catalog=_identifier(document, fields, ("catalog",)) or DEFAULT_CATALOG,
        schema=_identifier(document, fields, ("database", "schema")) or DEFAULT_SCHEMA,
        configuration=_configuration(document, fields.get("configuration")),
        libraries=tuple(
            _library(document, entry)
            for entry in document.items(fields.get("libraries"), place="libraries")
        ),
    )


def load_configuration(path: Path) -> dict[str, str]:
    """Read settings from a file of their own, written as below `configuration` in a spec.

    Raises:
        SpecNotFoundError: There is no such file.
        SpecUnreadableError: It is not YAML.
        SpecFieldError: A value is no string, or a key is there twice.
        UnknownOptionError: A `millpond.*` setting does not exist.
        InvalidOptionError: A `millpond.*` setting has a wrong value.
    """
    document = SpecDocument.read(path, file=str(path))
    return _configuration(document, document.root)


def _real(path: Path) -> Path:
    """The path without symbolic links. Unlike `Path.resolve` it survives a circle of them."""
    return Path(os.path.realpath(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that the user may not look into
        return False


def _required(
    document: SpecDocument,
    fields: Mapping[str, yaml.Node],
    name: str,
    *,
    example: str,
    block: yaml.Node | None = None,
) -> str:
    """The text of a field that has to be there; `block` is where it is missing otherwise."""
    node = fields.get(name)
    if node is None or document.is_empty(node):
        raise SpecFieldError.from_missing(
            name, example=example, where=document.where(node or block or document.root)
        )
    text = document.text(node, place=name)
    for is_wrong, reason in (
        (not text.strip(), "must not be empty"),
        ("\0" in text, "must not hold a NUL character"),
    ):
        if is_wrong:
            raise SpecFieldError.from_value(name, reason=reason, where=document.where(node))
    return text


def _storage(document: SpecDocument, fields: Mapping[str, yaml.Node], *, root: Path) -> Path:
    text = _required(document, fields, "storage", example="pipeline-storage")
    where = document.where(fields["storage"])
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _real(root / text)
    if scheme[1].lower() != "file":
        raise StorageNotSupportedError.from_uri(text, scheme=scheme[1], where=where)
    path = _FILE_URI.match(text)
    if path is None:
        raise SpecFieldError.from_value(
            "storage",
            reason=f"is {cut_short(text)!r}, a file URI without an absolute path",
            where=where,
            hint="write file:///an/absolute/path, or a path relative to the spec's folder",
        )
    # A URI's percent signs stay as they are: Spark takes the text for the path, too.
    return _real(Path(path[1]))


def _identifier(
    document: SpecDocument, fields: Mapping[str, yaml.Node], names: tuple[str, ...]
) -> str | None:
    given = [name for name in names if not document.is_empty(fields.get(name))]
    if not given:
        return None
    node = fields[given[-1]]
    where = document.where(node)
    if len(given) > 1:
        raise SpecFieldError.from_value(
            " and ".join(given),
            reason="are the same field and both given",
            where=where,
            hint="keep one of them",
        )
    text = document.text(node, place=given[0])
    parts = split_name(text, where=where)
    if len(parts) > 1:
        raise InvalidNameError.from_text(
            text, reason=f"{given[0]} is a name of one part", where=where
        )
    return parts[0]


def _configuration(document: SpecDocument, node: yaml.Node | None) -> dict[str, str]:
    fields = document.fields(node, place="configuration")
    configuration = {
        key: document.text(
            value, place=f"configuration value {cut_short(key)}", hidden=is_secret(key)
        )
        for key, value in fields.items()
    }
    for key in configuration:
        problem: MillpondError | None = check_option(
            key, configuration, where=document.where(fields[key])
        )
        if problem is not None:
            raise problem
    return configuration


def _library(document: SpecDocument, entry: yaml.Node) -> Library:
    """Read `glob: {include: PATTERN}` or `file: {path: PATH}`."""
    kinds = {"glob": "include", "file": "path"}
    found = document.fields(entry, place="An entry of libraries", known=kinds)
    where = document.where(entry)
    if len(found) != 1:
        raise SpecFieldError.from_value(
            "An entry of libraries",
            reason="must have one key, glob or file",
            where=where,
            hint="write glob: {include: transformations/**} or file: {path: one_file.sql}",
        )
    ((kind, node),) = found.items()
    inner = document.fields(node, place=kind, known=[kinds[kind]])
    pattern = _required(document, inner, kinds[kind], example="transformations/**", block=node)
    return Library(pattern, where)
