"""Looks after a table in a process that dies at a chosen moment, for the tests of kills."""

from millpond.delta import Table
from tests.deadly_store import DeadlyStore
from tests.maintenance.conftest import upkeep


def by_hand(path, moment):
    upkeep(Table(path, DeadlyStore(moment)), "k").by_hand()
