"""The formats of files that can be read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_READERS = {
    "avro": ("avro", "AvroFormat"),
    "binaryfile": ("binary_file", "BinaryFileFormat"),
    "csv": ("csv", "CsvFormat"),
    "json": ("json", "JsonFormat"),
    "parquet": ("parquet", "ParquetFormat"),
    "text": ("text", "TextFormat"),
    "xml": ("xml", "XmlFormat"),
}

if TYPE_CHECKING:
    from millpond.files.formats.base import Format


def format_of(name: str) -> Format:
    """The reader of a format, by the name that options give it."""
    module, reader = _READERS[name]
    found: Format = getattr(import_module(f"{__name__}.{module}"), reader)()
    return found
