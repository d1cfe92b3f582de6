"""Files as a source: which there are, what columns they have, and their rows."""

from millpond.files.listed_file import ListedFile
from millpond.files.metadata import METADATA_COLUMN, METADATA_NAME, metadata_field
from millpond.files.options import FileOptions

__all__ = ["METADATA_COLUMN", "METADATA_NAME", "FileOptions", "ListedFile", "metadata_field"]
