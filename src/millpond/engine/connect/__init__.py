"""Spark Connect: the session that source files see, and plans that are read before they run.

Nothing here is particular to one engine behind the protocol. Importing it imports PySpark.
"""
