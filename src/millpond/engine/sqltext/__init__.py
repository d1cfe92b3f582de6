"""Spark SQL text: which tables a query names, and the text with other names in their places.

The user's own text is what runs. It is changed by position only, never printed from a syntax tree.
"""
