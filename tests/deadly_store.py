"""A store that kills its own process at a chosen moment, and children to be killed by it."""

import os
import signal

from millpond.storage import LocalStore


class DeadlyStore(LocalStore):
    """Kills the process at the n-th moment: each call has one before and one after its work."""

    def __init__(self, moments):
        self.moments_left = moments

    def pass_moment(self):
        self.moments_left -= 1
        if self.moments_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _step(self, method, *arguments):
        self.pass_moment()
        result = getattr(LocalStore, method)(self, *arguments)
        self.pass_moment()
        return result

    def read(self, path):
        return self._step("read", path)

    def exists(self, path):
        return self._step("exists", path)

    def list(self, folder):
        return self._step("list", folder)

    def put(self, path, data):
        return self._step("put", path, data)

    def put_if_absent(self, path, data):
        return self._step("put_if_absent", path, data)

    def link(self, source, target):
        return self._step("link", source, target)

    def sync(self, paths):
        return self._step("sync", paths)

    def remove(self, path):
        return self._step("remove", path)


def in_child(work):
    """Run `work` in a child process; return whether it lived to the end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in {0, -signal.SIGKILL}:
        raise SystemExit(f"a child ended with {status}")
    return status == 0
