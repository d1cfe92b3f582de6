"""Looks after Delta tables: few large files, no old ones, a short log. Leaves rows as they are."""

from millpond.maintenance.report import Report
from millpond.maintenance.settings import Settings
from millpond.maintenance.upkeep import RowOrder, Upkeep

__all__ = ["Report", "RowOrder", "Settings", "Upkeep"]
