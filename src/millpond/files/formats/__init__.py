"""The formats of files that can be read."""
