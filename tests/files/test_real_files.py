"""Public files that are known to be awkward: with inference, a stream gives what pandas reads.

They are those that data packages carry. Where pandas takes a text for missing and Spark does not,
or reads what Spark would not unless told, the options say so, and so does the reason.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.pipeline_folder import SPEC, PipelineFolder
from tests.readers import read_with_delta_rs

# pandas takes many texts for missing, among them the NA of Namibia; Spark nothing but no text.
EXACT: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
Read = Callable[[Path], pd.DataFrame]


def csv(**options: Any) -> Read:
    return lambda path: pd.read_csv(path, **(EXACT | options))


def records(path: Path) -> pd.DataFrame:
    return pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class RealFile:
    """A file of a package.

    Attributes:
        why: What is awkward about it.
        options: Of `read_files`, as SQL.
        read: How pandas reads the same.
        query: What is taken of it; `*` but for what is nested.
        encoding: What it is written anew in before it is read, if given.
    """

    package: str
    path: str
    why: str
    options: str
    read: Read
    query: str = "*"
    encoding: str | None = None

    @property
    def name(self) -> str:
        stem = re.sub(r"\W", "_", self.path.rpartition("/")[2])
        return f"{self.package.partition('-')[0]}_{stem}".lower()

    def locate(self, folder: Path) -> Path:
        path = Path(importlib.metadata.distribution(self.package).locate_file(self.path))
        if self.encoding is None:
            return path
        copy = folder / path.name
        copy.write_text(path.read_text(encoding="utf-8"), encoding=self.encoding)
        return copy


FILES = [
    RealFile(
        "airportsdata",
        "airportsdata/airports.csv",
        "28,000 rows, every text in quotes, some with quotes inside and some empty, which is "
        "missing to both; letters of many scripts; codes such as 00AA beside numbers; NA is Namibia",
        "format => 'csv', header => true, escape => '\"'",
        csv(),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/lincoln_weather.csv",
        "numbers and dates in quotes, and commas in quotes",
        "format => 'csv', header => true",
        csv(parse_dates=["DATE"]),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/sprint.csv",
        "columns lined up by blanks, before quotes and numbers and in the header",
        "format => 'csv', header => true, ignoreLeadingWhiteSpace => true",
        csv(skipinitialspace=True, escapechar="\\"),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/elements.csv",
        "columns of numbers that hold words in a few rows: '76 (+1)', '-', 'Ancient'; blanks in names",
        "format => 'csv', header => true",
        csv(),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/CGM.csv.gz",
        "compressed; lines end as on Windows; 'nil' for no value; numbers with and without a point",
        "format => 'csv', header => true, nullValue => 'nil'",
        csv(na_values=["nil"], parse_dates=["datetime"]),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/unemployment09.csv.gz",
        "compressed; no header; thousands with commas in quotes, and blanks behind; codes with zeros "
        "in front, which are numbers to both. Spark does not take '23,288  ' for a number, and "
        "pandas only if told",
        "format => 'csv'",
        csv(names=[f"_c{position}" for position in range(9)]),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/sea_surface_temperature.csv.gz",
        "compressed; names with blanks and parentheses; times with a zone",
        "format => 'csv', header => true",
        csv(parse_dates=["time (UTC)"]),
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/gapminder_regions.csv",
        "written in Latin-1, as Excel does; the package has it in UTF-8",
        "format => 'csv', header => true, encoding => 'latin1'",
        csv(encoding="latin1"),
        encoding="latin1",
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/titanic_all.csv",
        "names with quotes doubled inside, of which some do not pair; missing ages",
        "format => 'csv', header => true, escape => '\"'",
        csv(),
    ),
    RealFile(
        "vega-datasets",
        "vega_datasets/_data/stocks.csv",
        "dates as 'Jan 1 2000'; the last line does not end",
        "format => 'csv', header => true, dateFormat => 'MMM d yyyy'",
        csv(parse_dates=["date"], date_format="%b %d %Y"),
    ),
    RealFile(
        "vega-datasets",
        "vega_datasets/_data/sf-temps.csv",
        "times as '2010/01/01 00:00:00', which Spark takes for texts unless told",
        "format => 'csv', header => true, timestampFormat => 'yyyy/MM/dd HH:mm:ss'",
        csv(parse_dates=["date"]),
    ),
    RealFile(
        "vega-datasets",
        "vega_datasets/_data/cars.json",
        "one array over many lines; nulls; whole and broken numbers in one column; dates are texts "
        "to Spark, and pandas is kept from guessing them",
        "format => 'json', multiLine => true",
        records,
    ),
    RealFile(
        "vega-datasets",
        "vega_datasets/_data/wheat.json",
        "an array; numbers as texts; keys that some records lack; no end of the last line",
        "format => 'json', multiLine => true",
        records,
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/sample_geojson.geojson",
        "GeoJSON: one object on one long line, with the records in an array two levels down; keys "
        "that some of them lack",
        "format => 'json', multiLine => true",
        lambda path: geojson(json.loads(path.read_text(encoding="utf-8"))),
        query="inline(transform(features, f -> struct(f.id AS id, f.geometry.coordinates[0] AS x, "
        "f.geometry.coordinates[1] AS y, f.properties.City AS city, "
        "f.properties.Address3 AS address)))",
    ),
    RealFile(
        "bokeh-sampledata",
        "bokeh_sampledata/_data/us_cities.json.gz",
        "compressed; columns instead of records: an object of two arrays of 37,616 numbers",
        "format => 'json'",
        pd.read_json,
        query="inline(arrays_zip(lat, lon))",
    ),
    RealFile(
        "countryinfo",
        "countryinfo/data",
        "254 files, each an object over up to 8,000 lines: keys that many lack, a capital that is a "
        "text, a list or null, objects without any key, coordinates three or four lists deep; and a "
        "program among them, which is left out by its name",
        "format => 'json', multiLine => true, pathGlobFilter => '*.json'",
        lambda path: countries(path),  # noqa: PLW0108 - it is defined below
        query="name, population, area, capital, ISO.alpha2 AS code, size(borders) AS borders, "
        "geoJSON.features[0].geometry.type AS shape, translations.de AS german",
    ),
]


def geojson(found: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": feature["id"],
            "x": feature["geometry"]["coordinates"][0],
            "y": feature["geometry"]["coordinates"][1],
            "city": feature["properties"].get("City"),
            "address": feature["properties"].get("Address3"),
        }
        for feature in found["features"]
    )


def countries(folder: Path) -> pd.DataFrame:
    found = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    shapes = [
        [f["geometry"]["type"] for f in c.get("geoJSON", {}).get("features", [])] for c in found
    ]
    return pd.DataFrame(
        {
            "name": country["name"],
            "population": country.get("population"),
            "area": country.get("area"),
            "capital": as_text(country["capital"]),
            "code": country["ISO"]["alpha2"],
            "borders": len(country["borders"]) if "borders" in country else None,
            "shape": shape[0] if shape else None,
            "german": country.get("translations", {}).get("de"),
        }
        for country, shape in zip(found, shapes, strict=True)
    )


def as_text(value: Any) -> str | None:
    """As Spark has it where some records have a text."""
    return json.dumps(value) if isinstance(value, list) else value


def facts(column: pd.Series) -> tuple[Any, ...]:
    """What is compared of a column: how many values, and what they come to."""
    values = column.dropna()
    count = len(values)
    if not count:
        return (0,)
    if pd.api.types.is_datetime64_any_dtype(values):
        times = pd.to_datetime(values, utc=True)
        return ("time", count, times.min(), times.max(), times.nunique())
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.astype(float)
        total = float(numbers.sum())
        return ("number", count, pytest.approx(total, rel=1e-12), numbers.min(), numbers.max())
    texts = values.astype(str)
    return ("text", count, texts.nunique(), texts.min(), texts.max())


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in frame.columns:
        values = frame[name].dropna()
        if len(values) and hasattr(values.iloc[0], "year"):
            frame[name] = pd.to_datetime(frame[name], utc=True)
    return frame


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """All files, each in a table of its own, by one update."""
    root = tmp_path_factory.mktemp("real")
    (root / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    pipeline = PipelineFolder(root)
    places = {file.name: file.locate(root) for file in FILES}
    for file in FILES:
        pipeline.write(
            f"{file.name}.sql",
            f"CREATE STREAMING TABLE {file.name} AS SELECT {file.query} "
            f"FROM STREAM read_files('{places[file.name]}', {file.options});",
        )
    result = pipeline.run()
    assert not result.problems
    assert {flow.name: flow.error for flow in result.flows if flow.error} == {}
    return pipeline, places


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_real_file_gives_what_pandas_reads(file: RealFile, loaded) -> None:
    pipeline, places = loaded
    actual = table(read_with_delta_rs(pipeline.table(file.name)))
    expected = file.read(places[file.name])
    if "_rescued_data" in actual:
        assert actual.pop("_rescued_data").dropna().empty
    assert len(actual) == len(expected)
    assert sorted(actual.columns) == sorted(expected.columns)
    for name in expected.columns:
        assert facts(actual[name]) == facts(expected[name]), name
