"""Lakeflow-style declarative pipelines over open Delta tables, on one machine, with no JVM."""

__version__ = "0.1.0"
