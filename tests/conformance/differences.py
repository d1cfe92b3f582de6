"""What a pipeline does otherwise on Spark than on the embedded engine, and why.

The documentation lists the same. Each is tested in `test_differences.py`, which fails where one is
gone.
"""

DIFFERENCES = {
    "files": "cloudFiles and read_files are refused: open releases of Spark have neither.",
    "sequence": (
        "A sequence that is a Column of functions is refused: the statement that replaces rows "
        "takes SQL."
    ),
    "left lateral join": (
        "LEFT JOIN LATERAL f(..) over a stream is refused in SQL: Spark loses the rows for which "
        "the function gives none."
    ),
    "column names": (
        "A column with a space or one of ,;{}()= in its name turns column mapping on for its "
        "table: Delta on Spark takes these characters only so."
    ),
    "unchanged view": (
        "A materialized view is committed anew in each update, also where no row is another: Spark "
        "overwrites it without a look at what it holds."
    ),
    "NaN": (
        "A filter can lose rows with NaN of files that other programs wrote: Spark trusts bounds "
        "that leave NaN out. It writes none itself."
    ),
    "added window": (
        "A time window that withColumn adds to a stream carries no watermark, so that an outer join "
        "on it is refused: Spark Connect drops it. One that select adds does."
    ),
    "rows that fail": (
        "Where an expectation or NOT NULL fails an append flow, the error shows one row and not "
        "how many: Spark ends at the first."
    ),
}
