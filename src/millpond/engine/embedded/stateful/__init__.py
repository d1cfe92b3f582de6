"""Operators that keep state from batch to batch, computed with Sail."""
