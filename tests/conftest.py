"""Lets pyspark be imported in the workers of pytest-xdist.

A worker has no main file, and pyspark's client takes such a process for a run of its own doctests,
looks for an installation of Spark, and exits.
"""

import sys

_main = sys.modules["__main__"]
if not hasattr(_main, "__file__"):
    _main.__file__ = __file__
