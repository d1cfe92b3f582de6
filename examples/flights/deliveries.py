"""The plan: which days are delivered in which step, in which version, in which order.

The package's data is how each day ended. The first version of a day is what could be known on its
evening: some flights have not been reported yet, some have not landed.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

CSV = Path(".data/flights.csv")
DAYS = 365
HALF = 182

# Days whose first version gets lost on the way and comes after the last one.
OVERTAKEN = range(20, 30)
# A day whose last version comes in two parts, a step apart.
IN_TWO_PARTS = 45


@dataclass(frozen=True)
class Delivery:
    """All or part of one day. Days count from 1; part 0 is all of it."""

    day: int
    version: int
    part: int = 0


@dataclass(frozen=True)
class Step:
    """What comes in between two updates: commits of several deliveries each."""

    title: str
    commits: tuple[tuple[Delivery, ...], ...]


def plan() -> list[Step]:
    first = [Delivery(day, 1) for day in range(1, DAYS + 1) if day not in OVERTAKEN]
    last = [Delivery(day, 2) for day in range(1, DAYS + 1) if day != IN_TWO_PARTS]
    backwards = last[:89][::-1]
    return [
        Step("January to June, as known each evening", _commits(first[:HALF])),
        Step(
            "the rest of the year; January to March again, corrected, newest day first",
            _commits([*first[HALF:], *backwards, Delivery(IN_TWO_PARTS, 2, part=1)]),
        ),
        Step(
            "10 first versions that were overtaken; the second part of 14 February",
            _commits([*(Delivery(day, 1) for day in OVERTAKEN), Delivery(IN_TWO_PARTS, 2, part=2)]),
        ),
        Step("April to December again, corrected", _commits(last[89:])),
        Step("nothing", ()),
    ]


def _commits(deliveries: list[Delivery]) -> tuple[tuple[Delivery, ...], ...]:
    return tuple(tuple(deliveries[i : i + 30]) for i in range(0, len(deliveries), 30))


class Flights:
    """The flights of the package, and the versions of their days."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, csv: Path) -> None:
        self._connection = connection
        connection.execute(
            """
            CREATE TABLE final AS SELECT
                year::INTEGER AS year, month::INTEGER AS month, day::INTEGER AS day,
                dep_time::INTEGER AS dep_time, sched_dep_time::INTEGER AS sched_dep_time,
                dep_delay::INTEGER AS dep_delay, arr_time::INTEGER AS arr_time,
                sched_arr_time::INTEGER AS sched_arr_time, arr_delay::INTEGER AS arr_delay,
                carrier, flight::INTEGER AS flight, tailnum, origin, dest,
                air_time::INTEGER AS air_time, distance::INTEGER AS distance,
                time_hour::TIMESTAMPTZ AS time_hour,
                dayofyear(make_date(year, month, day)) AS day_of_year
            FROM read_csv(?, nullstr = ['', 'NA'], timestampformat = '%Y-%m-%dT%H:%M:%SZ')
            """,
            [str(csv)],
        )
        connection.execute(
            """
            CREATE VIEW versions AS
            SELECT *, 2 AS version, 1 + flight % 2 AS part FROM final
            UNION ALL BY NAME
            SELECT * REPLACE (
                    CASE WHEN flight % 17 <> 3 THEN arr_time END AS arr_time,
                    CASE WHEN flight % 17 <> 3 THEN arr_delay END AS arr_delay,
                    CASE WHEN flight % 17 <> 3 THEN air_time END AS air_time
                ),
                1 AS version, 0 AS part
            FROM final WHERE flight % 41 <> 5
            """
        )

    def rows(self, deliveries: tuple[Delivery, ...]) -> pa.Table:
        """The rows of one commit to the landing table."""
        wanted = pa.Table.from_pylist([vars(delivery) for delivery in deliveries])
        self._connection.register("wanted", wanted)
        rows = self._connection.sql(
            """
            SELECT versions.* EXCLUDE (day_of_year, version, part),
                -- Versions are sent on the evening of the day, and 30 days later.
                make_timestamptz(year, month, versions.day, 22, 0, 0, 'UTC')
                    + to_days(30 * (versions.version - 1)::INTEGER) AS sent_at
            FROM versions JOIN wanted
            ON day_of_year = wanted.day AND versions.version = wanted.version
            AND (wanted.part = 0 OR versions.part = wanted.part)
            """
        )
        return rows.to_arrow_table()
