"""What the options of a read of files mean, in each of the three spellings."""

import sys

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from millpond.errors import SourceLocation
from millpond.errors.files import (
    FileFormatUnknownError,
    FileLocationUnsupportedError,
    FilesPathMissingError,
    FilesSchemaMissingError,
    InvalidFileOptionError,
    UnknownFileOptionError,
    UnsupportedFileOptionError,
)
from millpond.files.option_parser import parse_options
from millpond.files.options import CleanSource, Dialect, EvolutionMode, ParseMode
from millpond.files.schema_hints import quoted_names

TYPES = {"INT": IntegerType(), "STRING": StringType()}
DAY_S = 24 * 3600.0
YEAR_2026_NS = 1_767_225_600 * 10**9


def schema(text):
    parts = [part.split() for part in text.split(",")]
    return StructType([StructField(name, TYPES[kind]) for name, kind in parts])


def parse(
    reader, *, paths=("/data",), columns=None, streaming=True, infers=False, root=None, **options
):
    """Options with `__` for a dot."""
    names = [name.replace("__", ".") for name in options]
    given = {name.lower(): text for name, text in zip(names, options.values(), strict=True)}
    return parse_options(
        format=reader,
        paths=paths,
        options=given,
        columns=columns,
        streaming=streaming,
        parse_schema=schema,
        where=SourceLocation("transformations/prices.py", 7),
        infers_streams=infers,
        root=root,
        written={name.lower(): name for name in names},
    )


def cloud_files(file_format="csv", **options):
    return parse("cloudfiles", cloudFiles__format=file_format, **options)


def test_cloud_files_has_the_defaults_of_auto_loader():
    found = cloud_files()
    assert (found.format, found.dialect, found.paths) == ("csv", Dialect.CLOUD_FILES, ("/data",))
    assert not found.infer_types
    assert not found.discovery.strict_globber
    assert found.discovery.recursive
    assert found.evolution is EvolutionMode.ADD_NEW_COLUMNS
    assert found.rescued_column == "_rescued_data"
    assert found.partition_columns is None
    assert (found.max_files, found.max_bytes) == (1000, None)
    assert (found.allow_overwrites, found.include_existing) == (False, True)
    assert found.clean_source is CleanSource.OFF
    assert found.mode is ParseMode.PERMISSIVE


def test_read_files_turns_two_defaults_around():
    found = parse("read_files", format="csv")
    assert found.dialect is Dialect.READ_FILES
    assert found.infer_types
    assert found.discovery.strict_globber


def test_a_plain_format_has_the_defaults_of_spark():
    found = parse("csv", columns="a INT")
    assert found.dialect is Dialect.SPARK
    assert found.schema == schema("a INT")
    assert found.discovery.strict_globber
    assert not found.discovery.recursive
    assert found.evolution is EvolutionMode.NONE
    assert found.rescued_column is None
    assert found.max_files == sys.maxsize


@pytest.mark.parametrize(
    ("file_format", "infers"), [("csv", False), ("json", True), ("xml", True), ("parquet", True)]
)
def test_spark_infers_the_types_of_all_formats_but_csv(file_format, infers):
    assert parse(file_format, streaming=False).infer_types is infers
    assert parse(file_format, streaming=False, inferSchema="true").infer_types


@pytest.mark.parametrize(
    "given",
    [
        {"cloudFiles__allowOverwrites": "true"},
        {"allowOverwrites": "TRUE"},
        # The one with the prefix counts.
        {"allowOverwrites": "false", "cloudFiles__allowOverwrites": "true"},
    ],
)
@pytest.mark.parametrize("reader", ["cloudfiles", "read_files"])
def test_options_of_auto_loader_are_read_with_the_prefix_and_without(reader, given):
    assert parse(reader, cloudFiles__format="csv", **given).allow_overwrites


def test_all_that_can_be_said_about_discovery():
    found = cloud_files(
        recursiveFileLookup="false",
        pathGlobFilter="*.csv",
        cloudFiles__useStrictGlobber="true",
        modifiedAfter="2026-01-01T01:00:00",
        modifiedBefore="2026-01-01",
        timeZone="+01:00",
        cloudFiles__maxFileAge="2 weeks 1 day",
        cloudFiles__partitionColumns="year, month",
        cloudFiles__includeExistingFiles="false",
        ignoreMissingFiles="true",
        ignoreCorruptFiles="true",
    )
    discovery = found.discovery
    assert not discovery.recursive
    assert discovery.path_glob == "*.csv"
    assert discovery.strict_globber
    assert discovery.modified_after_ns == YEAR_2026_NS
    assert discovery.modified_before_ns == YEAR_2026_NS - 3600 * 10**9
    assert discovery.max_file_age_s == 15 * DAY_S
    assert found.partition_columns == ("year", "month")
    assert not found.include_existing
    assert found.ignore_missing
    assert found.ignore_corrupt


def test_no_partition_column_is_wanted_where_their_list_is_empty():
    assert cloud_files(cloudFiles__partitionColumns="").partition_columns == ()


def test_spark_looks_for_no_partitions_where_it_takes_every_folder():
    assert parse("csv", columns="a INT", recursiveFileLookup="true").partition_columns == ()
    assert parse("csv", columns="a INT").partition_columns is None


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("10g", 10 << 30), ("512m", 512 << 20), ("1000", 1000), ("1KB", 1024)]
)
def test_sizes(text, size_bytes):
    assert cloud_files(cloudFiles__maxBytesPerTrigger=text).max_bytes == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30 days", 30 * DAY_S),
        ("1 week", 7 * DAY_S),
        ("interval 1 day 12 hours", 1.5 * DAY_S),
        ("INTERVAL '7' DAYS", 7 * DAY_S),
        ("7d", 7 * DAY_S),
        ("90min", 5400.0),
        ("1500ms", 1.5),
        ("0 seconds", 0.0),
    ],
)
def test_lengths_of_time(text, seconds):
    found = cloud_files(cloudFiles__cleanSource__retentionDuration=text)
    assert found.clean_source_retention_s == seconds


@pytest.mark.parametrize(
    ("text", "zone", "after_ns"),
    [
        ("2026-01-01", "UTC", YEAR_2026_NS),
        ("2026", "UTC", YEAR_2026_NS),
        ("2026-01", "UTC", YEAR_2026_NS),
        ("2026-01-01 00:00:00", "UTC", YEAR_2026_NS),
        ("2026-01-01T00:00:00.000001Z", "Europe/Berlin", YEAR_2026_NS + 1000),
        ("2026-01-01T01:00", "Europe/Berlin", YEAR_2026_NS),
        ("2026-01-01T02:00:00+02:00", "UTC", YEAR_2026_NS),
    ],
)
def test_times(text, zone, after_ns):
    found = cloud_files(modifiedAfter=text, timeZone=zone)
    assert found.discovery.modified_after_ns == after_ns


def test_what_becomes_of_files_that_were_read():
    found = cloud_files(
        cloudFiles__cleanSource="move", cloudFiles__cleanSource__moveDestination="/archive"
    )
    assert found.clean_source is CleanSource.MOVE
    assert found.clean_source_move_to == "/archive"
    assert found.clean_source_retention_s == 30 * DAY_S
    assert cloud_files(cloudFiles__cleanSource="DELETE").clean_source is CleanSource.DELETE
    # Spark has another word for it and does it at once.
    spark = parse("csv", columns="a INT", cleanSource="archive", sourceArchiveDir="/archive")
    assert spark.clean_source is CleanSource.MOVE
    assert spark.clean_source_move_to == "/archive"
    assert spark.clean_source_retention_s == 0.0


def test_the_formats_own_options_are_handed_on_in_lower_case():
    found = cloud_files(sep=";", header="true", timestampNTZFormat="yyyy", mode="failfast")
    assert found.format_options == {"sep": ";", "header": "true", "timestampntzformat": "yyyy"}
    assert found.mode is ParseMode.FAIL_FAST


def test_settings_of_a_store_are_handed_on():
    found = cloud_files(fs__s3a__endpoint="http://127.0.0.1:9000")
    assert found.store_options == {"fs.s3a.endpoint": "http://127.0.0.1:9000"}


@pytest.mark.parametrize("reader", ["cloudfiles", "read_files"])
def test_a_schema_changes_what_is_done_about_new_columns(reader):
    given = parse(reader, columns="a INT", cloudFiles__format="csv")
    assert given.evolution is EvolutionMode.NONE
    assert given.rescued_column is None
    named = parse(reader, columns="a INT, _RESCUED_data STRING", cloudFiles__format="csv")
    assert named.rescued_column == "_RESCUED_data"
    renamed = parse(
        reader, columns="a INT", cloudFiles__format="csv", rescuedDataColumn="leftovers"
    )
    assert renamed.rescued_column == "leftovers"
    rescuing = parse(
        reader, columns="a INT", cloudFiles__format="csv", cloudFiles__schemaEvolutionMode="rescue"
    )
    assert rescuing.rescued_column == "_rescued_data"


def test_read_files_takes_a_schema_as_an_option():
    assert parse("read_files", format="csv", schema="a INT").schema == schema("a INT")


def test_hints_leave_the_schema_inferred():
    found = cloud_files(cloudFiles__schemaHints="a INT")
    assert (found.schema, found.schema_hints) == (None, schema("a INT"))
    assert found.evolution is EvolutionMode.ADD_NEW_COLUMNS


@pytest.mark.parametrize(
    ("hints", "quoted"),
    [
        ("a INT, b STRING", "a INT, b STRING"),
        ("user.dob DATE,m MAP<STRING, INT>", "`user.dob` DATE,m MAP<STRING, INT>"),
        ("a.b.c: DECIMAL(10, 2) , `x y`.z INT", "`a.b.c`: DECIMAL(10, 2) , `x y.z` INT"),
        ("s STRUCT<a: ARRAY<MAP<INT, STRUCT<x: INT, y: INT>>>, b: INT>, t.u INT COMMENT 'a, b.c'",)
        * 2,
        ("`a.b` INT, c DOUBLE", "`a.b` INT, c DOUBLE"),
        ("", ""),
    ],
)
def test_hints_may_name_nested_columns(hints, quoted):
    assert quoted_names(hints) == quoted.replace("t.u", "`t.u`")


def test_a_schema_that_can_not_be_read_says_where():
    def fails(text):
        raise FileFormatUnknownError.from_missing(option=text, known=())

    with pytest.raises(FileFormatUnknownError) as error:
        parse_options(
            format="csv",
            paths=("/data",),
            options={},
            columns="a NUMBER",
            streaming=False,
            parse_schema=fails,
            where=SourceLocation("a.py", 1),
        )
    assert error.value.where == SourceLocation("a.py", 1)


def test_mode_none_said_aloud_rescues_nothing_as_in_auto_loader():
    assert cloud_files(cloudFiles__schemaEvolutionMode="none").rescued_column is None
    rescue = cloud_files(cloudFiles__schemaEvolutionMode="rescue")
    assert (rescue.evolution, rescue.rescued_column) == (EvolutionMode.RESCUE, "_rescued_data")


def test_formats_of_fixed_columns_neither_rescue_nor_evolve():
    found = cloud_files("binaryFile")
    assert found.format == "binaryfile"
    assert (found.rescued_column, found.evolution) == (None, EvolutionMode.NONE)


def test_a_batch_does_not_evolve():
    assert parse("read_files", streaming=False, format="csv").evolution is EvolutionMode.NONE


def test_adding_columns_to_a_given_schema_is_refused():
    with pytest.raises(InvalidFileOptionError, match="schemaHints"):
        cloud_files(columns="a INT", cloudFiles__schemaEvolutionMode="addNewColumns")


@pytest.mark.parametrize(
    ("path", "file_format"),
    [
        ("/data/a.csv", "csv"),
        ("/data/*.JSON.gz", "json"),
        ("/data/a.csv.xz", "csv"),
        ("/data/a.parquet", "parquet"),
        ("/data/a.ndjson", "json"),
        ("/data/a.txt", "text"),
    ],
)
def test_read_files_takes_the_format_from_the_ending(path, file_format):
    assert parse("read_files", paths=(path,)).format == file_format


@pytest.mark.parametrize("path", ["/data", "/data/a.dat"])
def test_a_format_that_can_not_be_told_must_be_given(path):
    with pytest.raises(FileFormatUnknownError, match="set format to one of avro, binaryfile"):
        parse("read_files", paths=(path,))
    with pytest.raises(FileFormatUnknownError, match=r"set cloudFiles\.format"):
        parse("cloudfiles", paths=(path,))


def test_read_files_takes_the_format_from_what_is_in_the_folder(tmp_path):
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "a.csv.gz").touch()
    (tmp_path / "prices" / "_started").touch()
    assert parse("read_files", paths=("prices",), root=tmp_path).format == "csv"
    (tmp_path / "prices" / "b.json").touch()
    with pytest.raises(FileFormatUnknownError):
        parse("read_files", paths=("prices",), root=tmp_path)
    only = parse("read_files", paths=("prices",), root=tmp_path, fileNamePattern="*.json")
    assert only.format == "json"


def test_an_unknown_format_is_refused_with_the_likely_one():
    with pytest.raises(FileFormatUnknownError, match="did you mean parquet"):
        cloud_files("parqet")
    with pytest.raises(FileFormatUnknownError, match="the formats are avro"):
        cloud_files("orc")


def test_a_stream_of_spark_needs_a_schema():
    with pytest.raises(FilesSchemaMissingError, match=r"cloudFiles\.format = csv") as error:
        parse("csv")
    assert error.value.where == SourceLocation("transformations/prices.py", 7)
    assert parse("csv", infers=True).schema is None
    assert parse("csv", streaming=False).schema is None
    assert parse("text").schema is None


def test_a_path_may_be_an_option_and_must_be_somewhere():
    assert parse("csv", paths=(), path="/data", streaming=False).paths == ("/data",)
    for paths in ((), ("",), ("/data", " ")):
        with pytest.raises(FilesPathMissingError):
            parse("csv", paths=paths, streaming=False)


@pytest.mark.parametrize(
    ("reader", "option", "meant"),
    [
        ("csv", "headr", "did you mean header"),
        ("json", "multline", "did you mean multiLine"),
        ("cloudfiles", "cloudFiles.alowOverwrites", r"did you mean cloudFiles\.allowOverwrites"),
        ("cloudfiles", "cloudFiles.schemaHint", r"did you mean cloudFiles\.schemaHints"),
        ("read_files", "alowOverwrites", "did you mean allowOverwrites"),
        ("xml", "rowTags", "did you mean rowTag"),
        ("avro", "avroSchem", "did you mean avroSchema"),
        ("text", "xyzzy", "has no option 'xyzzy'"),
        ("cloudfiles", "cloudFiles.xyzzy", r"no option 'cloudFiles\.xyzzy'"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_likely_one(reader, option, meant):
    given = {option: "true"}
    if reader in {"cloudfiles", "read_files"}:
        given["cloudFiles__format"] = "csv"
    with pytest.raises(UnknownFileOptionError, match=meant):
        parse(reader, columns="a INT", **given)


@pytest.mark.parametrize(
    ("reader", "given", "hint"),
    [
        ("cloudfiles", "cloudFiles.fromat", "did you mean cloudFiles.format?"),
        ("read_files", "fromat", "did you mean format?"),
    ],
)
def test_a_format_that_is_missing_for_a_slip_of_the_pen_is_told_by_the_slip(reader, given, hint):
    with pytest.raises(UnknownFileOptionError) as caught:
        parse(reader, **{given: "csv", "header": "true", "cloudFiles.schemaHints": "a INT"})
    assert f"has no option '{given}'" in str(caught.value)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("reader", "option"),
    [("csv", "allowOVERwrites"), ("csv", "cloudFiles.useNotifications"), ("json", "inferNothing")],
)
def test_an_option_is_told_as_the_user_wrote_it(reader, option):
    with pytest.raises((UnknownFileOptionError, UnsupportedFileOptionError)) as caught:
        parse(reader, columns="a INT", **{option: "true"})
    assert option in str(caught.value)


@pytest.mark.parametrize("reader", ["cloudfiles", "read_files", "csv"])
def test_a_read_has_no_checkpoint_of_its_own(reader):
    given = {} if reader == "csv" else {"cloudFiles__format": "csv"}
    with pytest.raises(UnsupportedFileOptionError, match="checkpointLocation") as caught:
        parse(reader, columns="a INT", checkpointLocation="/x", **given)
    assert "each flow has a checkpoint of its own" in caught.value.hint


def test_all_options_that_do_not_exist_are_told_at_once():
    with pytest.raises(UnknownFileOptionError) as caught:
        cloud_files(headr="true", multiLines="true", wibble="1")
    assert "has no options 'headr', 'multiLines', 'wibble'" in str(caught.value)
    assert caught.value.hint == (
        "did you mean header by headr? did you mean multiLine by multiLines?"
    )


def test_a_place_that_can_not_be_reached_is_refused_before_anything_is_read():
    with pytest.raises(FileLocationUnsupportedError) as error:
        parse("csv", paths=("dbfs:/data",), columns="a INT")
    assert error.value.where == SourceLocation("transformations/prices.py", 7)


def test_an_option_of_another_format_is_passed_over():
    assert parse("text", header="true").format_options == {}


def test_options_are_not_looked_at_where_the_user_turns_that_off():
    assert cloud_files(cloudFiles__validateOptions="false", anything="goes").format == "csv"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("cloudFiles.schemaLocation", "/checkpoints/schema"),
        ("cloudFiles.useNotifications", "true"),
        ("cloudFiles.useManagedFileEvents", "true"),
        ("cloudFiles.useIncrementalListing", "auto"),
        ("cloudFiles.backfillInterval", "1 day"),
        ("cloudFiles.fetchParallelism", "4"),
        ("cloudFiles.resourceTag.team", "sales"),
        ("cloudFiles.validateOptions", "true"),
        ("cloudFiles.region", "eu-central-1"),
    ],
)
def test_how_files_are_found_elsewhere_is_passed_over(option, text):
    assert cloud_files(**{option: text}).format == "csv"


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("cloudFiles.pathRewrites", "in the path itself"),
        ("cloudFiles.awsAccessKey", "AWS_ACCESS_KEY_ID"),
        ("databricks.serviceCredential", "into the environment"),
        ("singleVariantColumn", "schema"),
    ],
)
def test_options_that_would_change_what_is_read_are_refused(option, instead):
    with pytest.raises(UnsupportedFileOptionError, match=instead):
        cloud_files(**{option: "x"})


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("latestFirst", "modification times"),
        ("fileNameOnly", "several files"),
        ("allowOverwrites", r"cloudFiles\.allowOverwrites"),
        ("cloudFiles.schemaHints", r"cloudFiles\.schemaHints"),
    ],
)
def test_options_that_sparks_own_source_can_not_have_here(option, instead):
    with pytest.raises(UnsupportedFileOptionError, match=instead):
        parse("csv", columns="a INT", **{option: "true"})


def test_orders_that_hold_anyway_may_be_written_out():
    found = parse("csv", columns="a INT", latestFirst="false", fileNameOnly="false")
    assert found.format == "csv"


@pytest.mark.parametrize(
    ("option", "text", "must_be"),
    [
        ("cloudFiles.allowOverwrites", "yes", "'true' or 'false'"),
        ("cloudFiles.maxFilesPerTrigger", "0", "a whole number above 0"),
        ("cloudFiles.maxFilesPerTrigger", "²", "a whole number above 0"),
        ("cloudFiles.maxBytesPerTrigger", "much", "10g"),
        ("cloudFiles.maxFileAge", "a while", "30 days"),
        ("cloudFiles.maxFileAge", "5", "30 days"),
        ("cloudFiles.maxFileAge", "", "30 days"),
        ("cloudFiles.schemaEvolutionMode", "sometimes", "one of addNewColumns, rescue"),
        ("cloudFiles.cleanSource", "archive", "one of OFF, DELETE, MOVE"),
        ("modifiedAfter", "yesterday", "2026-01-31"),
        ("modifiedAfter", "0001-01-01T00:00:00+14:00", "2026-01-31"),
        ("timeZone", "Mars/Olympus", "a time zone"),
        ("timeZone", "+99:00", "a time zone"),
        ("mode", "LENIENT", "one of PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ("encoding", "klingon", "an encoding that Python knows"),
        ("encoding", "hex", "an encoding that Python knows"),
        ("encoding", "IDNA", "an encoding that Python knows"),
        ("encoding", "punycode", "an encoding that Python knows"),
        ("charset", "rot13", "an encoding that Python knows"),
    ],
)
def test_a_value_that_can_not_be_is_refused_with_what_can(option, text, must_be):
    with pytest.raises(InvalidFileOptionError, match=must_be) as error:
        cloud_files(**{option: text})
    assert error.value.where is not None
    assert f"the option {option}" in str(error.value)


def test_moving_needs_a_destination_outside_of_what_is_read():
    with pytest.raises(InvalidFileOptionError, match=r"add cloudFiles\.cleanSource\.moveDest"):
        cloud_files(cloudFiles__cleanSource="MOVE")
    with pytest.raises(InvalidFileOptionError, match="add sourceArchiveDir"):
        parse("csv", columns="a INT", cleanSource="archive")
    for inside in ("/data", "/data/old"):
        with pytest.raises(InvalidFileOptionError, match="would be read again"):
            cloud_files(
                cloudFiles__cleanSource="MOVE", cloudFiles__cleanSource__moveDestination=inside
            )
    with pytest.raises(InvalidFileOptionError, match="an absolute path"):
        parse("csv", columns="a INT", cleanSource="archive", sourceArchiveDir="archive")


@pytest.mark.parametrize("path", ["sent", "file:sent", "link"])
def test_a_destination_is_seen_to_be_inside_however_the_folder_is_named(tmp_path, path):
    (tmp_path / "sent").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "sent")
    if path.startswith("file:"):
        path = f"file:{tmp_path}/./sent/"
    with pytest.raises(InvalidFileOptionError, match="would be read again"):
        parse(
            "csv",
            paths=(path,),
            columns="a INT",
            root=tmp_path,
            cleanSource="archive",
            sourceArchiveDir=str(tmp_path / "sent/archive"),
        )
