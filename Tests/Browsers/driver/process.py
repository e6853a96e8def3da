"""The process of a browser."""
import asyncio
import collections
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile

# Options of prctl(2).
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Process:
    """A browser, with a folder of its own for its profile and its temporary files.

    A keeper is its parent: a process in a session of its own. It waits until this program has ended, in whatever way.
    Then it kills the browser with all that the browser has started, and removes the folder.
    """

    def __init__(self, kind, names):
        folder = tempfile.mkdtemp(prefix="nigh-browser-")
        os.mkdir(f"{folder}/tmp")
        os.mkdir(f"{folder}/profile")
        # Neither the browser nor this program reaches it through a proxy.
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            del os.environ[name]
        environment = {**os.environ, "HOME": folder, "TMPDIR": f"{folder}/tmp", **kind.environment}
        self.lines = collections.deque(maxlen=30)
        life, self.life = os.pipe()
        self.output_end, output = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                os.close(self.life)
                keep(kind.arguments(f"{folder}/profile", names), environment, folder, life, output)
            finally:
                os._exit(0)
        os.close(life)
        os.close(output)

    @property
    def output(self):
        """The last lines that the browser printed."""
        return "".join(self.lines)

    async def read(self):
        """Begins to read what the browser prints."""
        loop = asyncio.get_running_loop()
        self.found_address = loop.create_future()
        self.reader = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.reader), os.fdopen(self.output_end, "rb"))
        self.reading = asyncio.ensure_future(self.read_lines())

    async def read_lines(self):
        while line := (await self.reader.readline()).decode(errors="replace"):
            self.lines.append(line)
            if not self.found_address.done() and (found := re.search(r"listening on (ws://\S+)", line)):
                self.found_address.set_result(found[1])
        if not self.found_address.done():
            self.found_address.set_exception(OSError("it has ended"))

    async def address(self):
        """Returns the address of the WebSocket at which the browser listens, as soon as it says so."""
        return await self.found_address

    def end(self):
        """Ends the browser, and returns when nothing of it is left."""
        os.close(self.life)
        os.waitpid(self.keeper, 0)


def keep(arguments, environment, folder, life, output):
    """Runs the browser until `life` ends. The browser prints to `output`."""
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    set_option = ctypes.CDLL(None).prctl
    # What the browser has started becomes a child of this process when its own parent ends.
    set_option(PR_SET_CHILD_SUBREAPER, 1)
    try:
        subprocess.Popen(
            arguments, env=environment, cwd=folder,
            preexec_fn=lambda: set_option(PR_SET_PDEATHSIG, signal.SIGKILL))
        # From now on only the browser holds its output, which ends with it.
        for descriptor in (1, 2, output):
            os.dup2(nothing, descriptor)
        os.read(life, 1)
    finally:
        kill_children()
        shutil.rmtree(folder, ignore_errors=True)


def kill_children():
    """Kills the children of this process until none is left. Those of a child become its own when the child ends."""
    try:
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
