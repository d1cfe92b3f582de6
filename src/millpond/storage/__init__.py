"""Where a pipeline keeps its files, and the few ways in which millpond writes them."""

from millpond.storage.layout import Layout
from millpond.storage.store import LocalStore, Store

__all__ = ["Layout", "LocalStore", "Store"]
