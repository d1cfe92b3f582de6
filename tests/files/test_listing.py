"""Which files a read takes: the folders, globs, names and times that count."""

import errno
import os
import re
import shutil
import sys
import tempfile
import threading
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.errors.files import (
    FileChangedError,
    FileLocationUnsupportedError,
    FilesNotFoundError,
    FilesUnreachableError,
    PartitionColumnTwiceError,
)
from millpond.files.cleaning import clean
from millpond.files.globs import compiled
from millpond.files.listed_file import ListedFile
from millpond.files.listing import list_files
from millpond.files.locations import locate, parse_uri, quote_path, unquote_path
from millpond.files.options import CleanSource, Dialect, Discovery, FileOptions
from millpond.files.partitions import Folders, partition_columns, partition_values
from millpond.files.stores import LocalFiles, local_copy, move, one_version, remove, stat

RECURSIVE = Discovery(recursive=True)
STRICT = Discovery(recursive=True, strict_globber=True)
LOOSE = Discovery(recursive=True, strict_globber=False)
SPARK = Discovery(recursive=False, strict_globber=True)


def write(folder, *names, seconds=None):
    for index, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
        moment = index if seconds is None else seconds
        os.utime(path, (moment, moment))


def listed(folder, path="", *, discovery=RECURSIVE, root=Path("/"), **options):
    """What is listed, below the folder."""
    where = f"{folder}/{path}" if path else str(folder)
    found = list_files(FileOptions("csv", (where,), discovery=discovery, **options), root=root)
    return [parse_uri(file.uri).path.removeprefix(f"{folder}/") for file in found]


def test_a_time_that_no_64_bits_hold_is_a_late_one(tmp_path):
    write(tmp_path, "a.csv", seconds=13_569_465_600)
    (found,) = list_files(FileOptions("csv", (str(tmp_path),)), root=Path("/"))
    assert datetime.fromtimestamp(found.modified_ns // 10**9, UTC).year == 2261
    assert stat(found.uri) == found


def test_files_come_in_the_order_of_their_times_and_of_their_names_where_those_are_equal(tmp_path):
    write(tmp_path, "c", "b", "z/a")
    write(tmp_path, "e", "d", seconds=1)
    assert listed(tmp_path) == ["c", "b", "d", "e", "z/a"]


def test_a_file_is_listed_with_its_size_and_time(tmp_path):
    (tmp_path / "a b.csv").write_bytes(b"12345")
    os.utime(tmp_path / "a b.csv", ns=(0, 1_700_000_000_123_456_789))
    (found,) = list_files(FileOptions("csv", (str(tmp_path),)), root=Path("/"))
    assert found == ListedFile(f"file:{tmp_path}/a%20b.csv", 5, 1_700_000_000_123_456_789)
    assert found.name == "a%20b.csv"
    assert stat(found.uri) == found


# By name, how Apache Spark 4.2 writes it in `_metadata.file_path`.
NAMES = {
    "a b.csv": "a%20b.csv",
    "a%20b.csv": "a%2520b.csv",
    "a+b.csv": "a+b.csv",
    "a#b.csv": "a%23b.csv",
    "a?b.csv": "a%3Fb.csv",
    "quo'te.csv": "quo'te.csv",
    'dq"x.csv': "dq%22x.csv",
    "new\nline.csv": "new%0Aline.csv",
    "tab\tx.csv": "tab%09x.csv",
    "uniécode.csv": "uniécode.csv",
    "nfd-e\u0301.csv": "nfd-e\u0301.csv",
    "emoji😀.csv": "emoji😀.csv",
    "amp&=x.csv": "amp&=x.csv",
    "semi;colon,comma.csv": "semi;colon,comma.csv",
    "par(en)[br]{cu}.csv": "par(en)%5Bbr%5D%7Bcu%7D.csv",
    "at@~!$*^`|<>.csv": "at@~!$*%5E%60%7C%3C%3E.csv",
    "back\\slash.csv": "back%5Cslash.csv",
    "del\x7f.csv": "del%7F.csv",
    "nbsp\u00a0x.csv": "nbsp%C2%A0x.csv",
    "ctl\u0085\u2028x.csv": "ctl%C2%85%E2%80%A8x.csv",
}


def test_odd_names_are_written_as_spark_writes_them_and_read_back(tmp_path):
    write(tmp_path, *NAMES)
    found = list_files(FileOptions("csv", (str(tmp_path),)), root=Path("/"))
    assert [file.uri for file in found] == [f"file:{tmp_path}/{n}" for n in NAMES.values()]
    assert [file.name for file in found] == list(NAMES.values())
    assert [stat(file.uri) for file in found] == found


@pytest.mark.parametrize("name", NAMES)
def test_a_single_file_of_an_odd_name_is_found(tmp_path, name):
    write(tmp_path, name)
    written = "".join(f"\\{char}" if char in "*?[]{}\\" else char for char in name)
    assert listed(tmp_path, written, discovery=SPARK) == [name]


def test_every_character_that_a_name_may_have_survives_its_quoting():
    names = "".join(chr(code) for code in range(1, 0x3100)) + "\ud7ff\ue000\uffff\U0001f600\udcff"
    assert unquote_path(quote_path(names)) == names


def test_names_that_are_not_utf8_are_no_hindrance(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")).write_bytes(b"1\n")
    (found,) = list_files(FileOptions("csv", (str(tmp_path),)), root=Path("/"))
    assert found.uri == f"file:{tmp_path}/caf%E9.csv"
    assert stat(found.uri) == found
    assert local_copy(found, tmp_path).read_bytes() == b"1\n"


def test_hidden_files_and_folders_are_left_out_as_in_spark(tmp_path):
    shown = ["p=1/f", "_p=1/f", "_f=1.csv", "sub/f", "f.crc"]
    hidden = ["_a.csv", ".h.csv", "z._COPYING_", "_metadata", "_tmp/f", ".hid/f", ".p=1/f"]
    write(tmp_path, *shown, *hidden)
    assert listed(tmp_path) == shown


def test_what_the_path_itself_names_is_not_hidden(tmp_path):
    write(tmp_path, "_a.csv", "_d/b.csv", ".c/_e.csv", "f.csv")
    assert listed(tmp_path, "_a.csv") == ["_a.csv"]
    assert listed(tmp_path, "_d") == ["_d/b.csv"]
    assert listed(tmp_path, "_*", discovery=STRICT) == ["_a.csv", "_d/b.csv"]
    assert listed(tmp_path, "*", discovery=STRICT) == ["f.csv"]


def test_sparks_own_source_looks_into_folders_of_partitions_alone(tmp_path):
    write(tmp_path, "a", "p=1/b", "p=1/q=2/c", "sub/d", "sub/p=1/e", "p=1/sub/f")
    assert listed(tmp_path, discovery=SPARK) == ["a", "p=1/b", "p=1/q=2/c"]
    assert listed(tmp_path, discovery=RECURSIVE) == [
        "a",
        "p=1/b",
        "p=1/q=2/c",
        "sub/d",
        "sub/p=1/e",
        "p=1/sub/f",
    ]


STRICTLY = {
    # As Apache Spark 4.2 answers, but for hidden folders, which `*` does not mean here.
    "y/*": ["y/a.csv", "y/d1/a.csv", "y/d2/a.csv", "y/p=1/a.csv"],
    "y/*/*": ["y/d1/a.csv", "y/d2/a.csv", "y/p=1/a.csv", "y/d1/s/b.csv"],
    "y/d?/*.csv": ["y/d1/a.csv", "y/d2/a.csv"],
    "y/{d1,d2}/a.csv": ["y/d1/a.csv", "y/d2/a.csv"],
    "y/[d]1": ["y/d1/a.csv"],
    "y/d[^1]/a.csv": ["y/d2/a.csv"],
    "y/d[!1]/a.csv": ["y/d2/a.csv"],
    "y/d[1-2]/*": ["y/d1/a.csv", "y/d2/a.csv", "y/d1/s/b.csv"],
    "y/{d1/s,d2}/*": ["y/d2/a.csv", "y/d1/s/b.csv"],
    "y/{d{1,2},p=1}/a.csv": ["y/d1/a.csv", "y/d2/a.csv", "y/p=1/a.csv"],
    "*/d1": ["y/d1/a.csv"],
    "y/d*/": ["y/d1/a.csv", "y/d2/a.csv"],
    "y/a*/": [],
    "y/d1/{a,a}.csv": ["y/d1/a.csv"],
    "y/d[]]/*": [],
    "y/d[2-1]/*": [],
}


@pytest.mark.parametrize("pattern", STRICTLY)
def test_strict_globs(tmp_path, pattern):
    write(tmp_path, "y/a.csv", "y/d1/a.csv", "y/d1/.a.csv", "y/d1/_a.csv", "y/d2/a.csv")
    write(tmp_path, "y/p=1/a.csv", "y/_d/a.csv", seconds=5)
    write(tmp_path, "y/d1/s/b.csv", seconds=6)
    assert listed(tmp_path, pattern, discovery=SPARK, streaming=True) == STRICTLY[pattern]


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("[b-[-]", ["-"], ["b", "["]),
        ("[^-.\\]", ["a"], ["-", ".", "/"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[!]a]", ["b"], ["]", "a", "/"]),
        ("[+-0]", ["+", "0"], ["1", "/"]),
        ("[a", ["[a"], ["a"]),
        ("{a", ["{a"], ["a"]),
        ("a}", ["a}"], ["a"]),
        ("{a,}", ["a", ""], [","]),
        ("\\*\\{a,b}", ["*{a,b}"], ["x{a,b}"]),
    ],
)
def test_odd_patterns(pattern, matching, others):
    assert all(compiled(pattern).match(name) for name in matching)
    assert not any(compiled(pattern).match(name) for name in others)


# Patterns, paths, and whether they match loosely and strictly, as Databricks documents it.
GLOBS = [
    ("a/b", "a/b/c/file.txt", True, True),
    ("a/b", "a/b_dir/c/file.txt", False, False),
    ("a/b", "a/b.txt", False, False),
    ("a/b/", "a/b.txt", False, False),
    ("a/*/c/", "a/b/c/file.txt", True, True),
    ("a/*/c/", "a/b/c/d/file.txt", True, True),
    ("a/*/d/", "a/b/c/d/file.txt", True, False),
    ("a/*/c/", "a/b/x/y/c/file.txt", True, False),
    ("a/*/c", "a/b/c_file.txt", True, False),
    ("a/*/c/", "a/b/c_file.txt", True, False),
    ("a/*/c", "a/b/cookie/file.txt", True, False),
    ("a/b*", "a/b.txt", True, True),
    ("a/b*", "a/b/file.txt", True, True),
    ("a/{0.txt,1.txt}", "a/0.txt", True, True),
    ("a/*/{0.txt,1.txt}", "a/0.txt", False, False),
    ("a/b/[cde-h]/i/", "a/b/c/i/file.txt", True, True),
]


@pytest.mark.parametrize(("pattern", "path", "loosely", "strictly"), GLOBS)
def test_globs_of_auto_loader(tmp_path, pattern, path, loosely, strictly):
    write(tmp_path, path)
    for discovery, matches in ((LOOSE, loosely), (STRICT, strictly)):
        try:
            found = listed(tmp_path, pattern, discovery=discovery, streaming=True)
        except FilesNotFoundError:
            found = []
        assert found == ([path] if matches else [])


@pytest.mark.parametrize("path", ["data", "./data", "x/../data", "data/", "data//"])
def test_a_relative_path_starts_from_the_root(tmp_path, path):
    write(tmp_path, "data/a.csv")
    (found,) = list_files(FileOptions("csv", (path,)), root=tmp_path)
    assert found.uri == f"file:{tmp_path}/data/a.csv"


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
def test_a_uri_is_taken_as_it_stands_or_quoted(tmp_path, form):
    write(tmp_path, "a b/x.csv")
    (found,) = list_files(FileOptions("csv", (form.format(f"{tmp_path}/a b"),)), root=Path("/"))
    (quoted,) = list_files(FileOptions("csv", (form.format(f"{tmp_path}/a%20b"),)), root=Path("/"))
    assert found.uri == quoted.uri == f"file:{tmp_path}/a%20b/x.csv"
    # Where a folder is really called so, it is meant.
    write(tmp_path, "a%20b/y.csv")
    (other,) = list_files(FileOptions("csv", (form.format(f"{tmp_path}/a%20b"),)), root=Path("/"))
    assert other.uri == f"file:{tmp_path}/a%2520b/y.csv"


def test_a_file_that_several_paths_lead_to_is_listed_once(tmp_path):
    write(tmp_path, "a/x", "b/y")
    paths = (f"{tmp_path}/a", f"{tmp_path}/b", str(tmp_path))
    found = list_files(FileOptions("csv", paths, discovery=RECURSIVE), root=Path("/"))
    assert [file.name for file in found] == ["x", "y"]


def test_what_does_not_exist_is_named(tmp_path):
    with pytest.raises(FilesNotFoundError, match=r"data/prices' \(looked for .*/data/prices\)"):
        list_files(FileOptions("csv", ("data/prices",), streaming=True), root=tmp_path)
    with pytest.raises(FilesNotFoundError):
        listed(tmp_path, "a\0b")
    # A file is no folder.
    write(tmp_path, "a.csv")
    with pytest.raises(FilesNotFoundError):
        listed(tmp_path, "a.csv/")


def test_a_glob_may_match_nothing_yet_in_a_stream_but_not_in_a_batch(tmp_path):
    for discovery in (STRICT, LOOSE):
        assert listed(tmp_path, "x*/y", discovery=discovery, streaming=True) == []
        with pytest.raises(FilesNotFoundError, match="Nothing matches"):
            listed(tmp_path, "x*/y", discovery=discovery)


def test_a_name_with_signs_of_a_pattern_is_found_where_nothing_matches_it(tmp_path):
    write(tmp_path, "report[1].csv", "in{1}/p=1/a.csv")
    assert listed(tmp_path, "report[1].csv", discovery=SPARK) == ["report[1].csv"]
    for discovery in (STRICT, LOOSE):
        assert listed(tmp_path, "in{1}", discovery=discovery) == ["in{1}/p=1/a.csv"]
    assert columns_of(tmp_path, "in{1}/p=1/a.csv", path="in{1}").names == ["p"]
    write(tmp_path, "report1.csv")
    assert listed(tmp_path, "report[1].csv", discovery=SPARK) == ["report1.csv"]


def test_an_empty_folder_has_no_files(tmp_path):
    assert listed(tmp_path) == []


@pytest.mark.parametrize("path", ["dbfs:/data", "https://host/a.csv", "ftp://host/a"])
def test_other_places_are_refused(path):
    with pytest.raises(FileLocationUnsupportedError, match="s3://"):
        locate(path, root=Path("/"))


@pytest.mark.parametrize("path", ["s3:///key", "file://host/share"])
def test_half_a_place_is_refused(path):
    with pytest.raises(FileLocationUnsupportedError, match="write it as"):
        locate(path, root=Path("/"))


def test_a_colon_in_a_name_makes_no_uri(tmp_path):
    write(tmp_path, "12:30.csv", "s3:x/a.csv")
    assert listed(tmp_path) == ["12:30.csv", "s3:x/a.csv"]
    (found,) = list_files(FileOptions("csv", ("12:30.csv",)), root=tmp_path)
    assert found.uri == f"file:{tmp_path}/12:30.csv"


def test_links_are_followed_out_of_the_folder_too_and_those_to_nowhere_left_out(tmp_path):
    write(tmp_path, "elsewhere/x/a.csv", "elsewhere/b.csv")
    data = tmp_path / "data"
    data.mkdir()
    (data / "folder").symlink_to(tmp_path / "elsewhere" / "x")
    (data / "file.csv").symlink_to(tmp_path / "elsewhere" / "b.csv")
    (data / "dangling.csv").symlink_to(tmp_path / "nowhere")
    (data / "one.csv").symlink_to(data / "other.csv")
    (data / "other.csv").symlink_to(data / "one.csv")
    assert listed(data) == ["folder/a.csv", "file.csv"]
    assert listed(data, "*", discovery=STRICT) == ["folder/a.csv", "file.csv"]


def test_links_in_a_circle_come_to_an_end(tmp_path):
    write(tmp_path, "a/x.csv", "b/y.csv")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "over").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "back").symlink_to(tmp_path / "a")
    assert listed(tmp_path) == ["a/x.csv", "b/back/x.csv", "a/over/y.csv", "b/y.csv"]


def test_folders_that_all_link_to_each_other_are_walked_in_little_time(tmp_path):
    names = [f"d{number}" for number in range(12)]
    write(tmp_path, *(f"{name}/a.csv" for name in names))
    for name in names:
        for other in names:
            if other != name:
                (tmp_path / name / f"to_{other}").symlink_to(tmp_path / other)
    found = listed(tmp_path)
    assert {f"{name}/a.csv" for name in names} <= set(found)
    assert {f"d0/to_{name}/a.csv" for name in names[1:]} <= set(found)
    # Each folder once by itself, and once behind each link in a folder.
    assert len(found) == 12 + 12 * 11 * 11
    assert listed(tmp_path) == found


def test_what_is_no_file_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    write(tmp_path, "a.csv")
    assert listed(tmp_path) == ["a.csv"]
    assert stat(f"file:{tmp_path}/pipe.csv") is None
    assert stat(f"file:{tmp_path}/gone.csv") is None


def test_folders_may_lie_deep(tmp_path):
    deep = "/".join(["d"] * 900)
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(900):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("a.csv", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    assert listed(tmp_path) == [f"{deep}/a.csv"]
    shutil.rmtree(tmp_path / "d" / "d")


def test_a_folder_that_may_not_be_read_fails_the_listing(tmp_path):
    write(tmp_path, "shut/a.csv")
    (tmp_path / "shut").chmod(0)
    user = os.geteuid()
    if user == 0:
        # Root may read every folder, so somebody else tries.
        os.seteuid(65534)
    try:
        with pytest.raises(FilesUnreachableError, match="Permission denied"):
            listed(tmp_path)
    finally:
        os.seteuid(user)
        (tmp_path / "shut").chmod(0o700)


@pytest.mark.parametrize(
    ("path", "discovery"), [("", RECURSIVE), ("*", STRICT), ("*/*", STRICT), ("*", LOOSE)]
)
def test_a_folder_that_may_not_be_read_is_passed_over_where_that_is_told(path, discovery):
    user = os.geteuid()
    unlisted = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write(folder, "shut/a.csv", "open/b.csv")
        (folder / "shut").chmod(0)
        if user == 0:
            os.seteuid(65534)
        try:
            options = FileOptions("csv", (f"{folder}/{path}",), discovery=discovery)
            found = list_files(options, root=Path("/"), unlisted=unlisted)
        finally:
            os.seteuid(user)
            (folder / "shut").chmod(0o700)
        assert [file.uri for file in found] == [f"file:{folder}/open/b.csv"]
        assert unlisted == {f"file:{folder}/shut/": "the folder can't be listed: Permission denied"}


def test_a_name_too_long_for_any_file_fails_with_words(tmp_path):
    with pytest.raises(FilesUnreachableError, match="can't be read: File name too long"):
        listed(tmp_path, "a" * 300)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.csv", ["a.csv", "d1/a.csv", "d1/b.csv"]),
        ("a*", ["a.csv", "a.txt", "d1/a.csv"]),
        ("{a,b}.csv", ["a.csv", "d1/a.csv", "d1/b.csv"]),
        ("d1/*", []),
        ("[b-c].*", ["d1/b.csv"]),
    ],
)
def test_a_glob_of_names_looks_at_the_name_alone(tmp_path, pattern, names):
    write(tmp_path, "a.csv", "a.txt", "d1/a.csv", "d1/b.csv")
    discovery = Discovery(recursive=True, path_glob=pattern)
    assert listed(tmp_path, discovery=discovery) == names


@pytest.mark.parametrize("name", [name for name in NAMES if "[" not in name])
def test_a_glob_of_names_means_the_names_themselves_not_their_uris(tmp_path, name):
    write(tmp_path, name, "another.txt")
    pattern = re.sub(r"[*?{}\\^]", lambda sign: f"\\{sign[0]}", name)
    (found,) = list_files(
        FileOptions("csv", (str(tmp_path),), discovery=Discovery(path_glob=pattern)), root=Path("/")
    )
    assert found.name == NAMES[name]


def test_times_before_and_after_leave_the_very_moment_out(tmp_path):
    write(tmp_path, "zero", "one", "two", "three")
    after = Discovery(modified_after_ns=10**9)
    assert listed(tmp_path, discovery=after) == ["two", "three"]
    before = Discovery(modified_before_ns=2 * 10**9)
    assert listed(tmp_path, discovery=before) == ["zero", "one"]


def test_age_counts_from_now_in_auto_loader(tmp_path):
    now = int(datetime.now(UTC).timestamp())
    write(tmp_path, "old", seconds=now - 3600)
    write(tmp_path, "new", seconds=now - 60)
    discovery = Discovery(max_file_age_s=600)
    assert listed(tmp_path, discovery=discovery, dialect=Dialect.CLOUD_FILES) == ["new"]


def test_age_counts_from_the_newest_file_in_spark_and_not_at_first(tmp_path):
    write(tmp_path, "old", seconds=1000)
    write(tmp_path, "newer", seconds=4000)
    write(tmp_path, "newest", seconds=4100)
    discovery = Discovery(max_file_age_s=600)
    options = FileOptions("csv", (str(tmp_path),), discovery=discovery, streaming=True)
    assert [f.name for f in list_files(options, root=tmp_path)] == ["newer", "newest"]
    first = list_files(options, root=tmp_path, first=True)
    assert [f.name for f in first] == ["old", "newer", "newest"]
    assert listed(tmp_path, discovery=discovery) == ["old", "newer", "newest"]


def test_many_files_are_listed_in_one_scan_of_their_folder_and_none_is_opened(tmp_path):
    for number in range(2_000):
        os.close(os.open(tmp_path / f"supplier-{number:05}.csv", os.O_CREAT))
    options = FileOptions("csv", (str(tmp_path),))
    calls = []
    watching = True

    def watch(event, arguments):
        # A hook can't be taken away again.
        if watching and event in {"os.scandir", "os.listdir", "open"}:
            calls.append((event, str(arguments[0])))

    sys.addaudithook(watch)
    assert len(list_files(options, root=tmp_path)) == 2_000
    watching = False
    assert calls == [("os.scandir", str(tmp_path))]


def test_files_that_are_known_are_shown_as_they_were_if_they_are_still_there(tmp_path):
    write(tmp_path, "new.csv", "rewritten.csv", "a=1/below.csv")
    names = ("rewritten.csv", "a=1/below.csv", "gone.csv")
    known = {uri: ListedFile(uri, 99, 5) for uri in (f"file:{tmp_path}/{name}" for name in names)}
    options = FileOptions("csv", (str(tmp_path),))
    assert list_files(options, root=Path("/"), known=known) == [
        ListedFile(f"file:{tmp_path}/new.csv", 2, 0),
        known[f"file:{tmp_path}/a=1/below.csv"],
        known[f"file:{tmp_path}/rewritten.csv"],
    ]


@pytest.mark.parametrize("dies", [False, True])
def test_a_file_is_moved_whole_to_another_device_or_not_at_all(tmp_path, monkeypatch, dies):
    def rename(path, target, before=Path.rename):
        if path.parent != Path(target).parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return before(path, target)

    def copy(source, target, **_more):
        if dies:
            Path(target).write_text(Path(source).read_text()[:1])
            raise KeyboardInterrupt
        return copy2(source, target)

    copy2 = shutil.copy2
    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(shutil, "copy2", copy)
    write(tmp_path, "in/a.csv")
    uri = f"file:{tmp_path}/in/a.csv"
    with pytest.raises(KeyboardInterrupt) if dies else nullcontext():
        move(uri, f"{tmp_path}/done")
    moved = [path for path in (tmp_path / "done").rglob("*") if path.is_file()]
    assert [path.read_text() for path in moved] == ([] if dies else ["1\n"])
    assert (tmp_path / "in/a.csv").exists() == dies


def test_files_that_come_and_go_while_they_are_listed_do_no_harm(tmp_path):
    write(tmp_path, "stays.csv")
    done = threading.Event()

    def churn():
        while not done.is_set():
            for number in range(20):
                write(tmp_path, f"d{number}/f.csv")
            for number in range(20):
                shutil.rmtree(tmp_path / f"d{number}")

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        for _ in range(100):
            assert "stays.csv" in listed(tmp_path)
    finally:
        done.set()
        worker.join()


def columns_of(folder, *names, path="", dialect=Dialect.SPARK, **options):
    write(folder, *names)
    asked = FileOptions("csv", (f"{folder}/{path}",), dialect=dialect, **options)
    files = [ListedFile(f"file:{quote_path(f'{folder}/{name}')}", 0, 0) for name in names]
    return partition_columns(files, asked, root=Path("/"))


def test_folders_give_values_decoded_twice_and_null(tmp_path):
    uri = "file:/data/day=2026-01-31/city=New%2520York%252F1/none=__HIVE_DEFAULT_PARTITION__/e=/a=1"
    assert partition_values(uri) == {
        "day": "2026-01-31",
        "city": "New York/1",
        "none": None,
        "e": None,
    }
    assert partition_values("s3://bucket/p=1/x/p=2/a.csv") == {"p": "2"}
    assert partition_values("file:/data/=x/a.csv") == {}


# What Apache Spark 4.2 infers, with void (which no table can hold) a string here.
@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (["1", "2"], IntegerType()),
        (["01", "+1", "-5"], IntegerType()),
        (["1", "3000000000"], LongType()),
        (["1", "99999999999999999999"], DecimalType(20, 0)),
        (["1", "1.5"], DoubleType()),
        (["1.50"], DoubleType()),
        (["NaN"], DoubleType()),
        (["12345678901234567890123456789012345678901"], DoubleType()),
        (["1.5", "99999999999999999999"], StringType()),
        (["2024-01-01"], DateType()),
        (["2024-01-01", "2024-1-2"], StringType()),
        (["2024-01-32"], StringType()),
        (["2024-01-01 10%3A00%3A00"], TimestampType()),
        (["2024-01-01", "2024-01-01 10%3A00%3A00"], TimestampType()),
        (["2024-01-01", "1"], StringType()),
        (["2024-01-01T10:00:00Z"], StringType()),
        (["true"], StringType()),
        (["2024-01"], StringType()),
        (["__HIVE_DEFAULT_PARTITION__", "1"], IntegerType()),
        (["__HIVE_DEFAULT_PARTITION__"], StringType()),
        (["a+b"], StringType()),
    ],
)
def test_types_of_partitions_are_sparks(tmp_path, values, data_type):
    found = columns_of(tmp_path, *(f"p={value}/f.csv" for value in values))
    assert found == StructType([StructField("p", data_type)])


def test_types_of_partitions_are_strings_where_types_are_not_inferred(tmp_path):
    found = columns_of(tmp_path, "p=1/f.csv", dialect=Dialect.CLOUD_FILES)
    assert found == StructType([StructField("p", StringType())])
    found = columns_of(tmp_path, "p=1/f.csv", dialect=Dialect.CLOUD_FILES, infer_types=True)
    assert found == StructType([StructField("p", IntegerType())])


def test_a_type_that_the_user_gives_counts(tmp_path):
    given = StructType([StructField("P", StringType())])
    for options in ({"schema": given}, {"schema_hints": given}):
        found = columns_of(tmp_path, "p=1/f.csv", **options)
        assert found == StructType([StructField("p", StringType())])


def test_columns_come_in_the_order_of_the_folders_each_once(tmp_path):
    found = columns_of(tmp_path, "p=1/q=x/f.csv", "P=2/q=y/f.csv", "p=3/f.csv")
    assert found.names == ["p", "q"]


def test_the_columns_that_are_asked_for_are_all_there_are(tmp_path):
    asked = {"dialect": Dialect.CLOUD_FILES, "partition_columns": ("q", "r")}
    assert columns_of(tmp_path, "p=1/q=x/f.csv", **asked).names == ["q", "r"]
    asked["partition_columns"] = ()
    assert columns_of(tmp_path, "p=1/q=x/f.csv", **asked).names == []


# As Apache Spark 4.2 answers.
@pytest.mark.parametrize(
    ("path", "base", "names"),
    [
        ("base", None, ["p", "q"]),
        ("base/", None, ["p", "q"]),
        ("base/p=1", None, ["q"]),
        ("base/p=1/q=2/f.csv", None, []),
        ("base/*", None, ["q"]),
        ("base/*/*", None, []),
        ("base/{p=1,p=2}", None, ["q"]),
        ("base/p=1", "base", ["p", "q"]),
    ],
)
def test_folders_count_below_what_was_named(tmp_path, path, base, names):
    discovery = Discovery(base_path=None if base is None else f"{tmp_path}/{base}")
    found = columns_of(tmp_path, "base/p=1/q=2/f.csv", path=path, discovery=discovery)
    assert found.names == names


def test_in_auto_loader_folders_count_below_where_a_glob_begins(tmp_path):
    found = columns_of(tmp_path, "base/p=1/q=2/f.csv", path="base/*/*", dialect=Dialect.CLOUD_FILES)
    assert found.names == ["p", "q"]


def test_a_path_that_has_one_column_twice_says_nothing_of_columns(tmp_path):
    assert columns_of(tmp_path, "p=1/P=2/f.csv", "q=1/f.csv").names == ["q"]
    folders = Folders(FileOptions("csv", (str(tmp_path),)), root=tmp_path)
    with pytest.raises(PartitionColumnTwiceError, match="gives the column P twice"):
        folders.values(f"file:{tmp_path}/p=1/P=2/f.csv")
    chosen = FileOptions("csv", (str(tmp_path),), partition_columns=("q",))
    assert Folders(chosen, root=tmp_path).values(f"file:{tmp_path}/p=1/P=2/q=3/f.csv") == {"q": "3"}


def test_a_local_file_is_read_where_it_is(tmp_path):
    write(tmp_path, "a b.csv")
    (found,) = list_files(FileOptions("csv", (str(tmp_path),)), root=Path("/"))
    assert local_copy(found, tmp_path / "copies") == tmp_path / "a b.csv"


def test_files_are_removed_and_moved_with_their_paths(tmp_path):
    write(tmp_path, "in/a/x.csv", "in/b/x.csv")
    for file in list_files(
        FileOptions("csv", (f"{tmp_path}/in",), discovery=RECURSIVE), root=tmp_path
    ):
        assert move(file.uri, f"{tmp_path}/out") == f"file:{tmp_path}/out{file.uri[5:]}"
        move(file.uri, f"{tmp_path}/out")  # it is gone
    assert listed(tmp_path / "in") == []
    moved = listed(tmp_path / "out")
    assert moved == [f"{tmp_path}/in/{name}/x.csv"[1:] for name in "ab"]
    for name in moved:
        remove(f"file:{tmp_path}/out/{name}")
        remove(f"file:{tmp_path}/out/{name}")
    assert listed(tmp_path / "out") == []
    with pytest.raises(FileLocationUnsupportedError, match="lies elsewhere"):
        move(f"file:{tmp_path}/in/a/x.csv", "s3://bucket/out")


def test_a_file_that_is_moved_takes_the_place_of_no_other(tmp_path):
    uri = f"file:{tmp_path}/in/a.csv"
    (tmp_path / f"out{tmp_path}/in/a.csv.2").mkdir(parents=True)
    for version in ("1", "2", "3"):
        write(tmp_path, "in/a.csv")
        (tmp_path / "in/a.csv").write_text(version)
        move(uri, f"{tmp_path}/out")
    archive = tmp_path / f"out{tmp_path}/in"
    texts = [(archive / name).read_text() for name in ("a.csv", "a.csv.3", "a.csv.4")]
    assert texts == ["1", "2", "3"]


def test_a_file_that_can_not_be_moved_keeps_no_other_from_it(tmp_path):
    write(tmp_path, "in/sub/x.csv", "in/y.csv")
    files = list_files(FileOptions("csv", (f"{tmp_path}/in",), discovery=RECURSIVE), root=tmp_path)
    archive = tmp_path / f"out{tmp_path}/in"
    archive.mkdir(parents=True)
    (archive / "sub").write_text("no folder")
    options = FileOptions(
        "csv",
        (f"{tmp_path}/in",),
        clean_source=CleanSource.MOVE,
        clean_source_move_to=f"{tmp_path}/out",
    )
    with pytest.raises(FilesUnreachableError, match=r"sub/x\.csv can't be moved"):
        clean(files, {file.uri: 0 for file in files}, options)
    assert listed(tmp_path / "in") == ["sub/x.csv"]
    assert (archive / "y.csv").exists()


def test_a_copy_is_of_one_version(tmp_path):
    write(tmp_path, "a.csv")
    uri = f"file:{tmp_path}/a.csv"
    assert LocalFiles().fetch(uri, tmp_path / "copy") == stat(uri)
    assert (tmp_path / "copy").read_text() == "1\n"
    with pytest.raises(FileNotFoundError):
        LocalFiles().fetch(f"file:{tmp_path}/gone.csv", tmp_path / "copy")

    copies = []

    def copy_while_it_changes():
        copies.append((tmp_path / "a.csv").read_text())
        if len(copies) < 3:
            (tmp_path / "a.csv").write_text("1\n" * (len(copies) + 1))

    found = one_version(uri, lambda: stat(uri), copy_while_it_changes)
    assert (found, copies[-1]) == (stat(uri), "1\n1\n1\n")
    copies[:] = [""] * -3
    with pytest.raises(FileChangedError, match="3 times in a row"):
        one_version(uri, lambda: stat(uri), lambda: write_longer(tmp_path / "a.csv"))


def write_longer(path):
    path.write_text(path.read_text() + "1\n")
