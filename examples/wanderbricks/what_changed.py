"""Shows which keys of a REPLACE USING table an update has touched, and that no others changed.

It reads the table before and after, and the rows that the update has read, with delta-rs and
DuckDB: nothing of millpond has a say in it. Exit code 1 when a key changed that should not have.
"""

import argparse
import sys

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def rows_at(folder: str, version: int) -> pa.Table:
    table = DeltaTable(folder, version=version)
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, help="folder of the Delta table")
    parser.add_argument("--before", type=int, required=True, help="its version before the update")
    parser.add_argument("--after", type=int, required=True, help="its version after the update")
    parser.add_argument("--source", required=True, help="folder of the table that the flow reads")
    parser.add_argument("--read-after", type=int, required=True, help="source version read before")
    parser.add_argument("--key", required=True)
    parser.add_argument("--sequence", required=True)
    arguments = parser.parse_args()

    connection = duckdb.connect()
    connection.register("before", rows_at(arguments.table, arguments.before))
    connection.register("after", rows_at(arguments.table, arguments.after))
    source = DeltaTable(arguments.source)
    connection.register("source_before", rows_at(arguments.source, arguments.read_after))
    connection.register("source_now", rows_at(arguments.source, source.version()))
    connection.sql(
        f"""
        CREATE TABLE keys AS
        WITH arrived AS (
            SELECT {arguments.key} AS key, max({arguments.sequence}) AS sequence, count(*) AS events
            FROM (FROM source_now EXCEPT ALL FROM source_before) GROUP BY 1
        ),
        old AS (
            SELECT {arguments.key} AS key, max({arguments.sequence}) AS sequence,
                list(before ORDER BY before) AS rows
            FROM before GROUP BY 1
        ),
        new AS (
            SELECT {arguments.key} AS key, list(after ORDER BY after) AS rows FROM after GROUP BY 1
        )
        SELECT
            key,
            coalesce(events, 0) AS events,
            old.rows IS DISTINCT FROM new.rows AS changed,
            CASE
                WHEN events IS NULL THEN 'not in the new events'
                WHEN old.key IS NULL AND new.key IS NULL THEN 'new, but dropped by an expectation'
                WHEN old.key IS NULL THEN 'new: inserted'
                WHEN arrived.sequence <= old.sequence THEN 'only late events: ignored'
                WHEN old.rows IS NOT DISTINCT FROM new.rows THEN 'newer events all dropped'
                ELSE 'newer events: replaced'
            END AS what
        FROM old FULL JOIN new USING (key) FULL JOIN arrived USING (key)
        """
    )
    summary = connection.sql(
        """
        SELECT what, count(*) AS keys, sum(events)::BIGINT AS events,
            count(*) FILTER (changed) AS changed
        FROM keys GROUP BY what ORDER BY keys
        """
    ).fetchall()
    print(f"  {'':36}{'keys':>7}{'events':>8}{'changed':>9}")
    for what, keys, events, changed in summary:
        print(f"  {what:36}{keys:>7,}{events:>8,}{changed:>9,}")
    [(wrong,)] = connection.sql(
        """
        SELECT count(*) FROM keys WHERE changed
        AND what IN ('not in the new events', 'only late events: ignored')
        """
    ).fetchall()
    if wrong:
        print(f"  {wrong} keys changed that should not have", file=sys.stderr)
        return 1
    print("  Keys without a newer event are the same, row for row.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
