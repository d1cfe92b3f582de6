"""Has Spark write the tables of `spark_tables.py` anew, and read them: takes some minutes.

Usage, from the root of the repository: python -m tests.foreign.record_spark_tables
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pyarrow.parquet as pq

from tests.foreign.spark_tables import ANSWERS, ARCHIVE, RECORDED_IN, TABLES
from tests.spark.server import session_of, shared_server


def main() -> None:
    root = Path(RECORDED_IN)
    shutil.rmtree(root, ignore_errors=True)
    (root / ANSWERS).mkdir(parents=True)
    with shared_server() as server, session_of(server) as spark:
        for table in TABLES:
            path = root / table.name
            for statement in table.statements:
                words = {"t": f"delta.`{path}`", "path": path, "other": root / table.other}
                spark.sql(statement.format(**words)).collect()
            if not table.refused:
                answer = spark.read.format("delta").load(str(path)).toArrow()
                pq.write_table(answer, root / ANSWERS / f"{table.name}.parquet")
    with tarfile.open(ARCHIVE, "w:xz") as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                archive.add(path, path.relative_to(root), filter=_anonymous)
    shutil.rmtree(root)


def _anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


if __name__ == "__main__":
    main()
