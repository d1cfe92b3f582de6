"""Where a pipeline keeps its files, and the few ways in which millpond writes them."""

from millpond.storage.disk import Disk
from millpond.storage.layout import ROOT_MODE, Layout
from millpond.storage.local_store import LocalStore
from millpond.storage.scratch import new_scratch_folder, scratch_folder, without_scratch
from millpond.storage.store import Store

__all__ = [
    "ROOT_MODE",
    "Disk",
    "Layout",
    "LocalStore",
    "Store",
    "new_scratch_folder",
    "scratch_folder",
    "without_scratch",
]
