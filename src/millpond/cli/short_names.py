"""Names as people see them: those of the pipeline's own schema without catalog and schema."""

from __future__ import annotations

import re

from millpond.names import quote_identifier


class ShortNames:
    """Takes `catalog.schema.` off the names in a text.

    >>> ShortNames("main", "shop")("Flow main.shop.orders reads main.raw.orders.")
    'Flow orders reads main.raw.orders.'
    """

    def __init__(self, catalog: str, schema: str) -> None:
        prefix = f"{quote_identifier(catalog)}.{quote_identifier(schema)}."
        self._prefix = re.compile(rf"(?<![\w.`]){re.escape(prefix)}")

    def __call__(self, text: str) -> str:
        return self._prefix.sub("", text)
