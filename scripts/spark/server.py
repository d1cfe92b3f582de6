"""Starts and stops a Spark Connect server with Delta Lake on this machine: `make spark`.

    server.py start|stop|status [--folder FOLDER] [--port PORT] [--workers N]

Without workers the server does the work itself. With workers it is the driver of a standalone
cluster: a master and N workers as processes of their own, each worker with one executor.

All that a server writes lies in its folder: process ids, logs, tables, the catalog, spilled data.
Servers in different folders, on different ports, do not disturb one another. `make spark-ready`
brings what this needs: Spark with its Python packages, and the jars of Delta Lake.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from process import Process

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build" / "spark"
PYTHON = BUILD / "venv" / "bin" / "python"
JARS = BUILD / "jars"
HOST = "127.0.0.1"
PORT = 15002
START_S = 180.0
STOP_S = 20.0
DRIVER_MEMORY = "2g"
EXECUTOR_MEMORY = "1g"
CORES = 2
# Master and workers only look after others. The driver would take this for its own as well.
DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    " -Dspark.master.rest.enabled=false",
}
# Where each query comes once, generating code for it takes longer than the query without.
SHORT_LIVED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class ServerError(Exception):
    """What a person can act on: printed without a traceback."""


@dataclass(frozen=True)
class Settings:
    """What a server was started with.

    Attributes:
        port: Where it listens for clients.
        workers: Workers of its cluster; with 0 it does the work itself.
        short_lived: Whether it is to warm up fast rather than to be fast in the end.
    """

    port: int
    workers: int
    short_lived: bool


@dataclass(frozen=True)
class Server:
    """A server that runs, or could, in `folder`."""

    folder: Path

    @property
    def driver(self) -> Process:
        return Process(self.folder, "server")

    @property
    def master(self) -> Process:
        return Process(self.folder, "master")

    def worker(self, number: int) -> Process:
        return Process(self.folder, f"worker-{number}")

    @property
    def settings(self) -> Settings:
        """What it was last started with."""
        return Settings(**json.loads((self.folder / "settings.json").read_text()))

    def processes(self) -> list[Process]:
        """All that may run, those first that are to end first."""
        workers = sorted(self.folder.glob("worker-*.pid"))
        return [self.driver, *(Process(self.folder, path.stem) for path in workers), self.master]

    def start(self, settings: Settings) -> None:
        """Start it and wait until it answers a query; or, if it runs already, say so."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._one_at_a_time():
            if self.driver.is_running():
                self._must_be_as(settings)
                print(f"Spark is already running at {url(self.settings.port)}")
                return
            for process in self.processes():
                process.stop(patience_s=STOP_S)
            environment = server_environment(self.folder)
            # What a server that was killed has left there.
            for name in ("tmp", "work"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / "tmp").mkdir()
            _port_must_be_free(settings.port)
            (self.folder / "settings.json").write_text(json.dumps(asdict(settings)))
            began = time.monotonic()
            try:
                master = self._start_cluster(settings.workers, environment)
                command = driver_command(self.folder, master=master, settings=settings)
                self._wait_until_it_answers(self.driver.start(command, environment=environment))
            except BaseException:
                # Also when a person does not want to wait any longer.
                self._stop(patience_s=0)
                raise
            print(f"Spark answers at {url(settings.port)} after {time.monotonic() - began:.1f} s")

    def stop(self, *, patience_s: float = STOP_S) -> bool:
        """Stop it, and say whether it ran."""
        if not self.folder.is_dir():
            return False
        with self._one_at_a_time():
            return self._stop(patience_s=patience_s)

    def _stop(self, *, patience_s: float) -> bool:
        running = [process for process in self.processes() if process.is_running()]
        for process in running:
            process.stop(patience_s=patience_s)
        return bool(running)

    def _start_cluster(self, workers: int, environment: dict[str, str]) -> str:
        """Start master and workers, and return how the driver names the master."""
        if workers == 0:
            return f"local[{CORES}]"
        port = free_port()
        environment = {**environment, **DAEMON}
        program = [str(spark_home() / "bin" / "spark-class")]
        address = ["--host", HOST, "--webui-port", "0"]
        self.master.start(
            [*program, MASTER, *address, "--port", str(port)], environment=environment
        )
        master = f"spark://{HOST}:{port}"
        for number in range(1, workers + 1):
            work = self.folder / "work" / f"worker-{number}"
            limits = ["--cores", "1", "--memory", EXECUTOR_MEMORY, "--work-dir", str(work)]
            self.worker(number).start(
                [*program, WORKER, *address, *limits, master], environment=environment
            )
        return master

    def _wait_until_it_answers(self, driver: subprocess.Popen[bytes]) -> None:
        port = str(self.settings.port)
        asking = subprocess.Popen(
            [str(PYTHON), str(Path(__file__).with_name("ask.py")), port],
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + START_S
        try:
            while asking.poll() is None and driver.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if asking.returncode == 0:
                return
            why = f"did not answer within {START_S:.0f} s"
            if driver.returncode is not None:
                why = f"ended with exit code {driver.returncode}"
            elif asking.returncode is not None:
                why = f"does not answer: {asking.communicate()[1]}"
            raise ServerError(
                f"{self.driver.last_lines(40)}\n\nThe Spark server {why}. Log: {self.driver.log}"
            )
        finally:
            asking.kill()
            asking.wait()

    def _must_be_as(self, settings: Settings) -> None:
        if self.settings != settings:
            raise ServerError(
                f"A Spark server runs in {self.folder} with {self.settings}, which is not the "
                f"{settings} asked for. Stop it first: make spark-stop"
            )

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Let nobody else start or stop a server in this folder."""
        with (self.folder / "change.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def driver_command(folder: Path, *, master: str, settings: Settings) -> list[str]:
    confs = [f"{key}={value}" for key, value in confs_of(folder, settings=settings).items()]
    options = [word for conf in confs for word in ("--conf", conf)]
    submit = str(spark_home() / "bin" / "spark-submit")
    return [submit, "--master", master, *options, "--class", CONNECT_SERVER, "spark-internal"]


def confs_of(folder: Path, *, settings: Settings) -> dict[str, str]:
    java = f'-Djava.io.tmpdir="{folder / "tmp"}" -XX:+UseSerialGC'
    if settings.short_lived:
        # The second compiler takes a third of the processor's time while a server warms up.
        java += " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    derby = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    return {
        **(SHORT_LIVED if settings.short_lived else {}),
        "spark.app.name": "millpond",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # On the class path rather than as jars to distribute: all processes are on this machine.
        "spark.driver.extraClassPath": f"{JARS}/*",
        "spark.executor.extraClassPath": f"{JARS}/*",
        # Spark's own catalog is in memory and forgets all tables when the server stops.
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
        "spark.hadoop.hive.exec.scratchdir": str(folder / "tmp" / "hive"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(settings.port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.executor.cores": "1",
        "spark.cores.max": str(max(settings.workers, 1)),
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.default.parallelism": str(CORES),
        # Delta reads its log in as many tasks, 50 by default, which is for logs of clusters.
        "spark.databricks.delta.snapshotPartitions": str(CORES),
        # Spark 4.2.0 waits forever for a Python function that it feeds from a scan (SPARK-58241).
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def server_environment(folder: Path) -> dict[str, str]:
    """Return the environment of the server's processes, without settings for another Spark."""
    for needed in (PYTHON, JARS / ".ready"):
        if not needed.exists():
            raise ServerError(f"{needed} is missing: run make spark-ready")
    java_must_be_there()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    return {
        **kept,
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONF_DIR": str(Path(__file__).with_name("conf")),
        "SPARK_LOCAL_IP": HOST,
        # Functions of clients run in it, on workers as well.
        "PYSPARK_PYTHON": str(PYTHON),
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
    }


def java_must_be_there() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise ServerError("Spark needs Java 17 or newer: put it on PATH or set JAVA_HOME")


def spark_home() -> Path:
    """Return where Spark lies within the environment, whichever Python that has."""
    return next((BUILD / "venv" / "lib").glob("python3.*/site-packages/pyspark"))


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        return bound.getsockname()[1]


def _port_must_be_free(port: int) -> None:
    with socket.socket() as bound:
        # As the server will: a port whose last connections are not forgotten yet is free.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, port))
        except OSError as error:
            raise ServerError(
                f"Port {port} is taken by another program: set MILLPOND_SPARK_PORT to a free one"
            ) from error


def url(port: int) -> str:
    return f"sc://{HOST}:{port}"


def main() -> None:
    options = parse(sys.argv[1:])
    server = Server(options.folder.resolve())
    try:
        if options.action == "start":
            server.start(Settings(options.port, options.workers, options.short_lived))
            print(f"Logs: {server.driver.log.parent}")
        elif options.action == "stop":
            ran = server.stop(patience_s=0 if options.now else STOP_S)
            print("Spark has stopped" if ran else "Spark is not running")
        else:
            running = [process for process in server.processes() if process.is_running()]
            for process in running:
                print(f"{process.name}: process {process.process_id()}")
            if not server.driver.is_running():
                sys.exit("Spark is not running")
            print(url(server.settings.port))
    except ServerError as error:
        sys.exit(str(error))


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop", "status"])
    asked = os.environ.get
    parser.add_argument(
        "--folder",
        type=Path,
        default=asked("MILLPOND_SPARK_FOLDER") or BUILD / "server",
        help="where all that the server writes lies (MILLPOND_SPARK_FOLDER)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=asked("MILLPOND_SPARK_PORT") or PORT,
        help=f"where it listens, {PORT} by default (MILLPOND_SPARK_PORT)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=asked("MILLPOND_SPARK_WORKERS") or 0,
        help="workers of its cluster, none by default (MILLPOND_SPARK_WORKERS)",
    )
    parser.add_argument(
        "--short-lived", action="store_true", help="start: warm up fast, and be slower in the end"
    )
    parser.add_argument("--now", action="store_true", help="stop: kill it, as a crash would")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
