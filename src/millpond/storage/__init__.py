"""Where a pipeline keeps its files, and the few ways in which millpond writes them."""

from millpond.storage.disk import Disk
from millpond.storage.layout import Layout
from millpond.storage.local_store import LocalStore
from millpond.storage.store import Store

__all__ = ["Disk", "Layout", "LocalStore", "Store"]
