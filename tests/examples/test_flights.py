"""The flights example, replayed over a small made-up year in the form of the package's data."""

import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
LANDED = "{day},517,515,2,830,819,11,UA,{flight},N{flight},EWR,IAH,227,1400,5,15,{hour}"
CANCELLED = "{day},NA,600,NA,NA,700,NA,AA,1,NA,JFK,ORD,NA,740,6,0,{hour}"


def write_year(path: Path) -> int:
    """20 flights and a cancelled one for each day of 2013; returns how many in all."""
    lines = [HEADER]
    for number in range(365):
        date_of = date(2013, 1, 1) + timedelta(days=number)
        day = f"{date_of.year},{date_of.month},{date_of.day}"
        hour = f"{date_of.isoformat()}T10:00:00Z"
        lines += [
            LANDED.format(day=day, flight=flight, hour=hour)
            for flight in range(number, number + 20)
        ]
        lines.append(CANCELLED.format(day=day, hour=hour))
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def test_every_day_ends_as_last_delivered_whatever_came_late_or_twice(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    shutil.copytree(
        EXAMPLE, folder, ignore=shutil.ignore_patterns(".data", "landing", "pipeline-storage")
    )
    flights = write_year(folder / ".data" / "flights.csv")
    done = subprocess.run(
        [sys.executable, folder / "replay.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as it should.") == 5
    assert f"table has {flights:,} rows" in done.stdout
    assert "Every day is as the package has it." in done.stdout
