"""An engine that was closed is gone: a process may start one for each of thousands of updates."""

import gc
import weakref

from millpond.engine.embedded import EmbeddedEngine


def test_nothing_holds_an_engine_that_was_closed():
    engine = EmbeddedEngine()
    engine.client({"spark.sql.timestampType": "TIMESTAMP_NTZ"})
    held = weakref.ref(engine), weakref.ref(engine.session.client)
    engine.close()
    del engine
    gc.collect()
    assert [reference() for reference in held] == [None, None]
