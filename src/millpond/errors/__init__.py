"""The error classes of millpond, all derived from `MillpondError`.

Each part of the house keeps its classes in the module of its name below this package.
"""

from millpond.errors.base import MillpondError, SourceLocation, all_error_classes

__all__ = ["MillpondError", "SourceLocation", "all_error_classes"]
