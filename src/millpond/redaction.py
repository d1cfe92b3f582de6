"""Keeps secrets out of what is shown and recorded: events, errors, the command line's output.

A secret is known by the key of the setting that it is the value of, or by where it stands in an
address. Whoever writes a text that people see asks here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

REDACTED = "[REDACTED]"

# A shorter value, or one of these, would blot out unrelated words of every message.
MIN_SECRET_CHARS = 4
NOT_SECRET = frozenset({"true", "false", "null", "none"})

_WORDS = (
    r"password|passwd|passphrase|secret|token|credential|jaas|assertion|authorization"
    r"|(?:access|account|api|private|shared|encryption|sas)[._-]?key|connection[._-]?string"
)
_SECRET_KEY = re.compile(rf"{_WORDS}|(?:^|[._-])key$|\.pem$", re.IGNORECASE)
# What names of variables begin with that say how to log in to something that pipelines use.
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "SPARK_")

# A parameter of an address: `sc://host/;token=...`, `https://host/path?sig=...`.
_PARAMETER = re.compile(
    rf"""(?<=[;?&'"])([\w.-]*(?:{_WORDS}|sig(?:nature)?)=)([^;&\s'"]+)""", re.IGNORECASE
)
# A password before a host: `scheme://user:password@host`.
_USER_INFO = re.compile(r"(?<=://)([^\s/:@'\"]*:)([^\s/@'\"]+)(?=@)")
# An option in a line of code: `password => '...'`, `'password' = '...'`,
# `option("password", "...")`. A comparison of a column, such as `token = '...'`, is none.
_QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*\""""
_ARGUMENT = re.compile(
    rf"""((?:{_WORDS})[\w.-]*(?:[`'"]?\s*=>|[`'"]\s*=)\s*
    |option\(\s*['"][\w.-]*(?:{_WORDS})[\w.-]*['"]\s*,\s*)({_QUOTED})""",
    re.IGNORECASE | re.VERBOSE,
)
# A line of YAML: `db.password: ...`.
_LINE = re.compile(
    rf"""^([ ]*['"]?[\w.-]*(?:{_WORDS})[\w.-]*['"]?:[ ]+)(\S.*)$""", re.IGNORECASE | re.MULTILINE
)
# A setting within the text of a login: `required username="u" password="...";`.
_LOGIN = re.compile(rf"(?:{_WORDS})\s*=\s*({_QUOTED}|[^\s;]+)", re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Whether the value of a setting or an option of this name is a secret.

    >>> is_secret("fs.s3a.secret.key"), is_secret("fs.s3a.endpoint"), is_secret("key_column")
    (True, False, False)
    """
    return _SECRET_KEY.search(key) is not None


def shown_value(key: str, value: str) -> str:
    """The value of a setting as it may be shown.

    >>> shown_value("millpond.engine", "sc://host:15002/;use_ssl=true;token=abc")
    'sc://host:15002/;use_ssl=true;token=[REDACTED]'
    """
    return REDACTED if is_secret(key) else without_credentials(value)


def without_credentials(text: str) -> str:
    """A text without what stands where addresses and options have their secrets."""
    text = _PARAMETER.sub(rf"\1{REDACTED}", text)
    text = _USER_INFO.sub(rf"\1{REDACTED}", text)
    text = _LINE.sub(rf"\1{REDACTED}", text)
    return _ARGUMENT.sub(lambda found: f"{found[1]}{found[2][0]}{REDACTED}{found[2][0]}", text)


class Redactor:
    """Hides the secrets of one configuration, by key and wherever they turn up in text.

    Args:
        configuration: Settings, of which those with secret keys or addresses have secrets.
    """

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        variables = {
            name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)
        }
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn({**variables, **(configuration or {})})

    def learn(self, configuration: Mapping[str, str]) -> None:
        """Hide the secrets of more settings, too."""
        found = {value for item in configuration.items() for value in _secrets(*item)}
        if not found <= self._values:
            self._values |= found
            # The longest first: one secret may be the beginning of another.
            ordered = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, ordered)))

    def text(self, text: str) -> str:
        """`text` without secrets, and in valid Unicode."""
        clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
        if self._pattern is not None:
            clean = self._pattern.sub(REDACTED, clean)
        return without_credentials(clean)

    def configuration(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """The same keys, with the values of secret ones hidden."""
        return {
            key: REDACTED if is_secret(key) else self.text(str(value))
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


def _secrets(key: str, value: str) -> Iterator[str]:
    """The texts in a setting that must not be seen."""
    candidates: list[str] = []
    if is_secret(key):
        candidates.append(value)
        candidates += [found[1].strip("'\"") for found in _LOGIN.finditer(value)]
    candidates += [found[2] for found in _PARAMETER.finditer(value)]
    candidates += [found[2] for found in _USER_INFO.finditer(value)]
    candidates += [unquote(candidate) for candidate in candidates]
    for candidate in candidates:
        if len(candidate) >= MIN_SECRET_CHARS and candidate.lower() not in NOT_SECRET:
            yield candidate
