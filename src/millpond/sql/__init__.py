"""SQL source files: their statements become definitions.

Only the heads of statements are understood here. Queries stay the user's own text, with its place
in the file, and are read by the engine.
"""

from millpond.sql.file import parse_file
from millpond.sql.positions import query_caret, query_location
from millpond.sql.variables import expand_variables

__all__ = ["expand_variables", "parse_file", "query_caret", "query_location"]
