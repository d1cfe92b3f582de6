"""The embedded engine: Sail, a Spark-compatible engine in Rust, started inside this process."""

from millpond.engine.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
