"""Keeps secrets out of what is recorded: values of configuration keys that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SECRET_KEY = re.compile(r"password|passwd|secret|token|credential|key", re.IGNORECASE)
REDACTED = "[REDACTED]"

# A shorter value, or one of these, would blot out unrelated words of every message.
MIN_SECRET_CHARS = 4
NOT_SECRET = frozenset({"true", "false", "null", "none"})


class Redactor:
    """Hides the secret values of one configuration, by key and wherever they turn up in text."""

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        values = {
            value
            for key, value in (configuration or {}).items()
            if SECRET_KEY.search(key)
            and len(value) >= MIN_SECRET_CHARS
            and value.lower() not in NOT_SECRET
        }
        # The longest first: one secret may be the beginning of another.
        ordered = sorted(values, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """`text` without secrets, and in valid Unicode."""
        clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
        return clean if self._secrets is None else self._secrets.sub(REDACTED, clean)

    def configuration(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """The same keys, with the values of secret ones hidden."""
        return {
            key: REDACTED if SECRET_KEY.search(key) else self.text(str(value))
            for key, value in configuration.items()
        }

    def value(self, value: Any) -> Any:
        """A JSON value with `text` applied to every string in it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
