"""Runs flows on a Spark server: Structured Streaming reads, one Delta commit a batch writes."""

from millpond.runner.spark.runtime import SparkRuntime

__all__ = ["SparkRuntime"]
