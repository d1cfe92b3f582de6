"""The engine on an Apache Spark server, spoken to through Spark Connect."""

from millpond.engine.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
