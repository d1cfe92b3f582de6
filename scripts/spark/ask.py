"""Waits until a Spark Connect server answers a query, in the environment that has Spark.

    ask.py PORT

Leaves it to whoever started it to lose patience.
"""

import socket
import sys
import time


def main() -> None:
    # Imported while the server starts, so that no time is lost.
    from pyspark.sql.connect.session import SparkSession

    port = int(sys.argv[1])
    while not listens(port):
        time.sleep(0.05)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    rows = session.sql("SELECT 1 AS one").collect()
    session.stop()
    sys.exit(0 if [row.one for row in rows] == [1] else f"SELECT 1 gave {rows}")


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
