"""Which operators may stand over a stream. One rule a file; both languages obey the same rules.

A rule answers for the kinds it lists, with a refusal or with `None`. A kind without a rule is
refused: what the analysis does not know must not give a wrong table.
"""

from millpond.engine.shapes.check import HasWatermark, check, check_replace_using, no_watermark
from millpond.engine.shapes.operator import (
    JoinType,
    Operator,
    OperatorKind,
    Refusal,
    Rows,
    SubqueryForm,
)

__all__ = [
    "HasWatermark",
    "JoinType",
    "Operator",
    "OperatorKind",
    "Refusal",
    "Rows",
    "SubqueryForm",
    "check",
    "check_replace_using",
    "no_watermark",
]
