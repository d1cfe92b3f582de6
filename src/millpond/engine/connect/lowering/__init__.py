"""SQL text that holds operators with state over streams, as relations in which these are seen.

Which operators may stand there is for `engine.shapes` to say, before.
"""

from millpond.engine.connect.lowering.queries import External, Lowered, keeps_state, lowered

__all__ = ["External", "Lowered", "keeps_state", "lowered"]
