"""What is in force at a statement of a file: catalog, schema, and what `SET` has set."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

# Settings of these kinds reach the flows that follow; others are there for `${name}` only.
FLOW_SETTINGS = ("spark.", "pipelines.")


@dataclass
class Session:
    """The state of one file.

    Attributes:
        configuration: The pipeline's own, which `${name}` and `:name` see.
        settings: Values that this file has set so far, as written, quotes included.
        replaced_chars: How many characters of values stand in the statements so far.
    """

    catalog: str
    schema: str
    configuration: Mapping[str, str]
    settings: dict[str, str] = field(default_factory=dict)
    replaced_chars: int = 0

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """What `${name}` stands for: the file's own settings before the pipeline's."""
        return ChainMap(self.settings, dict(self.configuration))

    def flow_settings(self) -> dict[str, str]:
        """What a flow defined here runs with."""
        return {
            key: _unquoted(value)
            for key, value in self.settings.items()
            if key.startswith(FLOW_SETTINGS)
        }


def _unquoted(value: str) -> str:
    """The value without one pair of quotes: `SET` keeps them, for use as literals in a text."""
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
