"""The first lines that run: what Ctrl-C does before anything is begun, and while modules are imported.

Why: an exception in the middle of an import is a traceback, or is swallowed by the module that is imported.
The standard library only, and as little of it as possible: until these lines run, Python itself answers.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType

from torchgauge.processes.cursor import show_cursor

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as a shell says it."""
_IMPORTS = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


def main() -> None:
    """Entry point of ``torchgauge``."""
    answer_interrupts()
    try:
        from torchgauge.cli.main import main as command

        command()
    except Exception as error:  # noqa: BLE001  whatever a broken installation raises
        sys.exit(failed(error))


def failed(error: Exception) -> int:
    """Print the unforeseen ``error``, with its traceback where it may be a mistake of torchgauge's.

    Returns exit code 3, since 1 means a regression.
    """
    from pathlib import Path
    from traceback import extract_tb, print_exception

    problem, files = str(error), [Path(frame.filename) for frame in extract_tb(error.__traceback__)]
    hiding = next((file for file in files if file.parent == Path.cwd()), None)
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        advice = "free disk space"
    elif isinstance(error, RuntimeError) and "home directory" in problem:  # pathlib's words
        advice = "set HOME"
    elif hiding and isinstance(error, ImportError):  # python -m puts the folder first on the path
        problem = f"{hiding} shadows a module of the same name: {problem}"
        advice = "rename the file, or run torchgauge instead of python -m torchgauge"
    else:
        print_exception(error)
        problem = f"torchgauge itself failed: {type(error).__name__}: {problem}"
        advice = "run pip check; if it reports no conflict, report the traceback above"
    sys.stderr.write(f"error: {problem}\n  try: {advice}\n")
    return 3


def open_closed_streams() -> None:
    """Put streams in the place of those that were closed: stdout refuses each line, stderr drops it.

    Otherwise the next file that is opened would be stdout to a child.
    """
    for number, name, flags in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, flags), number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))


def answer_interrupts() -> None:
    """End at once where Ctrl-C meets an import, and raise ``KeyboardInterrupt`` elsewhere.

    Nothing changes for who was started to ignore Ctrl-C, or was given another answer to it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_number: int, frame: FrameType | None) -> None:
    each = frame
    while each is not None:
        if each.f_code.co_filename in _IMPORTS:
            _leave()
        each = each.f_back
    raise KeyboardInterrupt


def _leave() -> None:
    show_cursor()
    os.write(2, b"interrupted\n")
    processes = sys.modules.get("torchgauge.processes.kept_process")  # may itself be half imported
    leave = getattr(processes, "leave", os._exit)
    leave(INTERRUPTED)


if __name__ == "__main__":
    main()
