"""Keeps processes in the place of torchgauge's keeper, and forks hosts from a template with torch imported.

Why: a test that runs a model starts a command, which starts a host, which imports torch, its compiler and the
model libraries for seconds. These imports are alike for thousands of tests. ``TORCHGAUGE_KEEPER`` names this
file, so each process that torchgauge starts comes here first:

- A host of this interpreter is forked from a template: a process per pytest worker and environment in which
  the modules are imported. A fork below the template runs torchgauge's own keeper, and that one's fork runs
  the host. The process that torchgauge started passes signals on and ends as the fork ends.
- Whatever else is started, the first host of an environment included, gets torchgauge's keeper.

A forked host has the descriptors, variables, folder, limits and session of a started one, ``/proc`` shows its
own variables, and a second interpreter is never involved.

Roles: ``warm_hosts.py LIFELINE ANSWER REMOVE COMMAND...`` as ``keeper.py``; ``nursery FOLDER`` starts
templates, until its standard input ends; ``template SOCKET_FD`` is one.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

FOLDER = "TORCHGAUGE_TEST_NURSERY"
"""The variable with the folder of the nursery's socket; without it every host is started."""
HERE = Path(__file__).resolve()
KEEPER = HERE.parents[1] / "src" / "torchgauge" / "processes" / "keeper.py"
HOST = "torchgauge.harness.worker.host"
IMPORTS = (
    "torchgauge.suites.torchvision_schemas:define_missing_schemas",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.utils.flop_counter",
    "timm",
    "transformers",
    "torchgauge.harness.worker.torch_checks",
    "torchgauge.harness.worker.group_run",
    "torchgauge.harness.worker.check_run",
    "torchgauge.harness.worker.fresh_process",
    "torchgauge.harness.worker.python_checks",
    "torchgauge.harness.ab.side_run",
    "torchgauge.devices.fingerprint",
    "torchgauge.devices.calibrate",
)
EARLY = {"torch", "torchvision", "timm", "transformers", "numpy", "sitecustomize", "usercustomize"}
"""Modules that a template has imported when a host's own path is set."""
LASTING = (
    "TORCH",
    "PYTORCH",
    "PYTHON",
    "OMP_",
    "MKL_",
    "KMP_",
    "GOMP_",
    "OPENBLAS_",
    "MALLOC_",
    "HF_",
    "TOKENIZERS_",
    "LD_",
)
"""How variables begin which a library may read when it is imported: hosts that differ share no template."""
PASSING = (
    "PYTHONPATH",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHGAUGE_CHROMIUM",
    "TORCHGAUGE_COMPILE_CACHE",
    "TORCHGAUGE_FAULTS_",
    "TORCHGAUGE_KEEPER",
    "TORCHGAUGE_LEASE",
    "TORCHGAUGE_REQUIRE_",
    "TORCHGAUGE_TEST_",
)
"""How variables begin that are read whenever they are needed."""
ROOM = 1 << 16
"""Bytes reserved for the variables that ``/proc`` shows of a fork."""
FEW = 64
"""Descriptors of this file's own lie above those of a host."""


# --- in the place of the keeper ----------------------------------------------------------------------


def keep(words: list[str]) -> NoReturn:
    """Start a host from a template where there is one, else become torchgauge's keeper."""
    connection = None
    with contextlib.suppress(OSError, ValueError):
        connection = _template_of(words[3:])
    if connection is not None:
        _follow(connection, words)
    os.execv(sys.executable, [sys.executable, "-I", "-S", str(KEEPER), *words])


def _template_of(command: list[str]) -> socket.socket | None:
    """Return a connection to the template for ``command``; None where it needs an interpreter of its own."""
    folder = os.environ.get(FOLDER)
    if not folder or command[3:5] != [HOST, "serve"] or not _is_own(command[0]):
        return None
    options = json.loads(command[5])
    if not options["warm"] or "torch" not in options["preload"] or "PYTHONHASHSEED" in os.environ:
        return None
    if any(map(_changes_imports, os.environ.get("PYTHONPATH", "").split(os.pathsep))):
        return None
    variables = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(LASTING) and not name.startswith(PASSING)
    }
    limits = {
        name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name[:7] == "RLIMIT_"
    }
    alike = [variables, limits, sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)]
    alike += [os.getuid(), Path("/proc/self/cgroup").read_text(encoding="utf-8")]
    alike += sorted(str(path.readlink()) for path in Path("/proc/self/ns").iterdir())
    key = hashlib.sha256(json.dumps(alike).encode()).hexdigest()[:16]
    nursery = socket.socket(socket.AF_UNIX)
    nursery.connect(f"{folder}/nursery")
    _send(nursery, {"key": key, "environment": variables})
    if not (path := _receive(nursery)[0]):
        return None
    template = socket.socket(socket.AF_UNIX)
    template.connect(path)
    return template


def _is_own(python: str) -> bool:
    return os.path.realpath(python) == os.path.realpath(sys.executable) and (
        Path(python).parent == Path(sys.executable).parent
    )


def _changes_imports(entry: str) -> bool:
    """Return whether ``entry`` of the path brings a library that a template has, or one that torch loads."""
    folder = Path(entry)
    if not entry or folder == KEEPER.parents[2]:
        return False
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name.partition(".")[0] in EARLY:
                return True
            points = path / "entry_points.txt"
            if points.is_file() and "torch.backends" in points.read_text(encoding="utf-8"):
                return True
    return False


def _follow(connection: socket.socket, words: list[str]) -> NoReturn:
    """Let the template fork for ``words``, pass signals on, and end as the fork ends."""
    numbers = sorted(int(path.name) for path in Path("/proc/self/fd").iterdir())
    numbers = [number for number in numbers if number != connection.fileno() and _is_open(number)]
    request = {
        "words": words,
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "mask": os.umask(0o022),
        "leads": os.getsid(0) == os.getpid(),
        "numbers": numbers,
    }
    _send(connection, request, numbers)
    pid = _receive(connection)[0]
    if pid is None:  # the template died
        os.execv(sys.executable, [sys.executable, "-I", "-S", str(KEEPER), *words])
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    null = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        os.dup2(null, number) if number < 3 else os.close(number)
    status = _receive(connection)[0]
    if status is None or not os.WIFSIGNALED(status):
        os._exit(1 if status is None else os.waitstatus_to_exitcode(status))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(1)


def _is_open(number: int) -> bool:
    with contextlib.suppress(OSError):
        return not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC or number < 3
    return False


# --- messages: a length, JSON, and descriptors beside the first byte -------------------------------------


def _send(connection: socket.socket, message: Any, numbers: list[int] | None = None) -> None:
    data = json.dumps(message).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", numbers))] if numbers else []
    head = struct.pack("I", len(data))
    connection.sendmsg([head], rights)
    connection.sendall(data)


def _receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return a message with its descriptors; None where the other end is gone."""
    numbers = array.array("i")
    head, rights, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(4 * FEW))
    for _, _, data in rights:
        numbers.frombytes(data)
    if len(head) < 4:
        return None, []
    (length,), data = struct.unpack("I", head), b""
    while len(data) < length:
        if not (more := connection.recv(length - len(data))):
            return None, list(numbers)
        data += more
    return json.loads(data), list(numbers)


# --- templates -------------------------------------------------------------------------------------------


def nursery(folder: str) -> None:
    """Send the address of a template for each request whose key was seen before; end with standard input."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{folder}/nursery")
    listening.listen(64)
    asked: set[str] = set()
    templates: dict[str, subprocess.Popen[bytes]] = {}
    while True:
        ready, _, _ = select.select([0, listening], [], [])
        if 0 in ready:
            for template in templates.values():
                template.kill()
            return
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            message, _ = _receive(connection)
            if message is None:
                continue
            key, path = message["key"], f"{folder}/{message['key']}"
            known = key in templates and templates[key].poll() is None
            if key in asked and key not in templates:
                with socket.socket(socket.AF_UNIX) as place:
                    place.bind(path)
                    place.listen(64)
                    templates[key] = subprocess.Popen(
                        [sys.executable, str(HERE), "template", str(place.fileno())],
                        env=_variables_of_template(message["environment"]),
                        pass_fds=(place.fileno(),),
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                known = True
            asked.add(key)
            _send(connection, path if known else "")


def _variables_of_template(lasting: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*LASTING, *PASSING))}
    return {**kept, **lasting, "TORCHGAUGE_TEST_ROOM": "x" * ROOM}


class Template:
    """A process that has imported what hosts import, and forks one for each request."""

    def __init__(self, listening: int) -> None:
        self.listening = socket.socket(fileno=listening)
        self.connections: dict[int, socket.socket] = {}
        self.entries: list[str] = []

    def serve(self) -> None:
        """Fork hosts until it is killed."""
        import gc
        import importlib

        self.entries = [entry for entry in sys.path if entry and Path(entry) != HERE.parent]
        sys.path[:] = [str(KEEPER.parents[2]), *self.entries]  # this checkout's, whatever is installed
        for name in IMPORTS:
            module, _, call = name.partition(":")
            try:
                imported = importlib.import_module(module)
            except ImportError:
                continue
            if call:
                getattr(imported, call)()
        gc.collect()
        gc.freeze()
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self.listening, woken, *self.connections.values()], [], [])
            for source in ready:
                if source is self.listening:
                    connection, _ = self.listening.accept()
                    self.fork(connection)
                elif source == woken:
                    os.read(woken, 4096)
                    self.reap()
                else:  # torchgauge has killed the process that follows the fork
                    for pid, connection in list(self.connections.items()):
                        if connection is source:
                            os.kill(pid, signal.SIGTERM)
                            self.connections.pop(pid).close()

    def reap(self) -> None:
        """Report each fork that has ended."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self.connections.pop(ended[0], None)
                if connection is not None:
                    with connection, contextlib.suppress(OSError):
                        _send(connection, ended[1])

    def fork(self, connection: socket.socket) -> None:
        """Fork a keeper with its host for the request on ``connection``."""
        request, numbers = _receive(connection)
        if request is None:
            connection.close()
            return
        pid = os.fork()
        if pid:
            for number in numbers:
                os.close(number)
            self.connections[pid] = connection
            _send(connection, pid)
            return
        try:
            self.become(request, numbers)
        finally:
            os._exit(1)

    def become(self, request: dict[str, Any], numbers: list[int]) -> None:
        """Turn this fork into the keeper of a host, with all that the request names."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        wanted = request["numbers"]
        high = max(*wanted, *numbers, FEW) + 1
        moved = [fcntl.fcntl(number, fcntl.F_DUPFD, high) for number in numbers]
        os.closerange(0, high)
        for number, target in zip(moved, wanted, strict=True):
            os.dup2(number, target, inheritable=True)
            os.close(number)
        if request["leads"]:
            os.setsid()
        os.chdir(request["folder"])
        os.umask(request["mask"])
        self._take_variables(request["environment"])
        from torchgauge.processes import keeper

        lifeline, answer, remove, *command = request["words"]
        keeper._become = lambda command, answer, pid: _become_host(command, (int(lifeline), answer), pid)
        keeper.main(int(lifeline), int(answer), json.loads(remove), command)

    def _take_variables(self, environment: dict[str, str]) -> None:
        import importlib
        import tempfile

        os.environ.clear()
        os.environ.update(environment)
        block = b"".join(f"{name}={value}\0".encode() for name, value in environment.items())
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
        begin, end = int(fields[47]), int(fields[48])
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, block, min(len(block), end - begin - 1))
        entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
        sys.path[:] = dict.fromkeys([*entries, *self.entries])
        sys.path_importer_cache.clear()
        importlib.invalidate_caches()
        tempfile.tempdir = None


def _become_host(command: list[str], ends: tuple[int, int], keeper: int) -> NoReturn:
    """Run the host in this fork, where torchgauge's keeper would replace it by an interpreter."""
    import traceback

    from torchgauge.harness.worker import host
    from torchgauge.processes import process_tree

    process_tree.die_with_parent()
    if os.getppid() != keeper:
        os._exit(1)
    for end in ends:
        os.close(end)
    sys.argv = [host.__file__, *command[4:]]
    code = 1
    try:
        host.main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:  # noqa: BLE001  the log tells the rest
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


# --- in pytest -------------------------------------------------------------------------------------------


def start(folder: str) -> subprocess.Popen[bytes]:
    """Start the nursery of this pytest worker, whose commands find it from now on."""
    command = [sys.executable, "-I", "-S", str(HERE), "nursery", folder]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    os.environ.update({"TORCHGAUGE_KEEPER": str(HERE), FOLDER: folder})
    return process


def main() -> None:
    """Play the role that the first word names."""
    if sys.argv[1] == "nursery":
        nursery(sys.argv[2])
    elif sys.argv[1] == "template":
        Template(int(sys.argv[2])).serve()
    else:
        keep(sys.argv[1:])


if __name__ == "__main__":
    main()
