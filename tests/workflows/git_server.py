"""A git server on this machine: git's own HTTP backend behind a token, over HTTP as a Git host has it."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

TOKEN = "ghs_a-secret-of-the-tests"
LOGIN = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
NAME = "owner/project"


@dataclass
class GitServer:
    """``statuses`` are answered, first things first, to requests whose address holds ``broken``."""

    root: Path
    base: str = ""
    broken: str = ""
    statuses: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    logins: list[list[str]] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        """The bare repository that it serves."""
        return self.root / NAME

    def git(self, *arguments: str, told: str = "") -> str:
        """Run git in that repository, with ``told`` on its input."""
        command = ["git", "-c", "user.name=tests", "-c", "user.email=tests@example.invalid"]
        done = subprocess.run(
            [*command, *arguments],
            cwd=self.repository,
            input=told,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def push(self, branch: str, text: str) -> str:
        """Let somebody else put one commit on top of ``branch``; its name."""
        blob = self.git("hash-object", "-w", "--stdin", told=text)
        tree = self.git("mktree", told=f"100644 blob {blob}\tfile.txt\n")
        parent = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        commit = self.git("commit-tree", tree, *(("-p", parent) if parent else ()), "-m", "theirs")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit


@contextmanager
def serving(root: Path) -> Iterator[GitServer]:
    """Serve one bare repository below ``root`` until the block ends."""
    state = GitServer(root)
    state.repository.mkdir(parents=True)
    state.git("init", "-q", "--bare", "-b", "main", ".")
    state.git("config", "http.receivepack", "true")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _answer(self, body: bytes) -> None:
            state.requests.append(self.path)
            logins = self.headers.get_all("Authorization") or []
            state.logins.append(logins)
            if state.statuses and state.broken in self.path:
                self._end(state.statuses.pop(0))
            elif [login.split()[-1] for login in logins] != [LOGIN]:
                self._end(401)
            else:
                self._backend(body)

        def _end(self, status: int) -> None:
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _backend(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            names = {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "tests",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                env={**os.environ, **names},
                capture_output=True,
                check=True,
            )
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
