"""Runs flows on this machine: the embedded engine, millpond's own micro-batches and commits."""

from millpond.runner.embedded.runtime import EmbeddedRuntime

__all__ = ["EmbeddedRuntime"]
