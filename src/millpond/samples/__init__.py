"""The built-in catalog `samples`, generated on the user's disk when a query first names a table."""

from millpond.samples.locate import locate

__all__ = ["locate"]
