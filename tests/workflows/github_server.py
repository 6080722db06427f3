"""A small GitHub on this machine: a real HTTP server that keeps state and enforces the rules that bite.

A token is needed; nobody edits what another wrote; a body has at most 65,536 characters; lists come in pages
of at most ``page`` items with a ``Link``; artifacts are redirected to another host, which must not see the
token.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

TOKEN = "ghs_a-secret-of-the-tests"
BOT = "github-actions[bot]"
LIMIT = 65_536
HOME = "/repos/owner/project"


@dataclass
class Answer:
    """One answer; ``body`` is JSON, or bytes as they are."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class GitHub:
    """What the server knows; tests change it freely between requests."""

    base: str = ""
    page: int = 2
    pulls: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    check_runs: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    night_jobs: Callable[[int], list[dict[str, Any]]] = lambda _run: []
    """Run to the jobs of all attempts with their `annotations`, asked anew each time."""
    zips: dict[int, bytes] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    """Path and commit to the text of a file."""
    trouble: list[Answer] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    relayed: list[dict[str, Any]] = field(default_factory=list)

    def writes(self) -> list[tuple[str, str]]:
        """Requests that change something."""
        return [each for each in self.requests if each[0] != "GET"]

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        for pattern, wanted, handle in self._routes():
            found = re.fullmatch(pattern, path)
            if found and method == wanted:
                return handle(found.groups(), query, body)
        return Answer(404, {"message": "Not Found"})

    def _routes(self) -> list[tuple[str, str, Callable[..., Answer]]]:
        return [
            (f"{HOME}/pulls", "GET", self._list_pulls),
            (rf"{HOME}/contents/(.+)", "GET", self._contents),
            (rf"{HOME}/pulls/(\d+)", "GET", self._pull),
            (rf"{HOME}/actions/runs/(\d+)", "GET", self._run),
            (rf"{HOME}/actions/runs/(\d+)/artifacts", "GET", self._artifacts),
            (rf"{HOME}/actions/runs/(\d+)/jobs", "GET", self._jobs),
            (rf"{HOME}/check-runs/(\d+)/annotations", "GET", self._annotations),
            (rf"{HOME}/actions/artifacts/(\d+)/zip", "GET", self._zip),
            (rf"{HOME}/issues/(\d+)/comments", "GET", self._list_comments),
            (rf"{HOME}/issues/(\d+)/comments", "POST", self._comment),
            (rf"{HOME}/issues/comments/(\d+)", "PATCH", self._edit),
            (f"{HOME}/issues", "GET", self._list_issues),
            (f"{HOME}/issues", "POST", self._open),
            (rf"{HOME}/issues/(\d+)", "PATCH", self._change),
            (rf"{HOME}/commits/([0-9a-f]+)/check-runs", "GET", self._list_checks),
            (f"{HOME}/check-runs", "POST", self._check),
            (rf"{HOME}/check-runs/(\d+)", "PATCH", self._recheck),
            (rf"{HOME}/collaborators/([^/]+)/permission", "GET", self._role),
            ("/oidc", "GET", lambda _g, query, _b: Answer(200, {"value": f"oidc-for-{query['audience']}"})),
        ]

    def _list_pulls(self, _groups: Any, query: dict[str, str], _body: Any) -> Answer:
        owner, _, branch = query["head"].partition(":")
        found = [
            each
            for each in self.pulls
            if each["head"]["ref"] == branch
            and ((each["head"].get("repo") or {}).get("full_name", "/").split("/")[0]) == owner
            and query["state"] in ("all", each["state"])
        ]
        return self._paged(found, f"{HOME}/pulls", query)

    def _pull(self, groups: Any, _query: Any, _body: Any) -> Answer:
        found = [each for each in self.pulls if each["number"] == int(groups[0])]
        return Answer(200, found[0]) if found else Answer(404, {"message": "Not Found"})

    def _contents(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        text = self.files.get((groups[0], query["ref"]))
        if text is None:
            return Answer(404, {"message": "Not Found"})
        return Answer(200, {"encoding": "base64", "content": base64.encodebytes(text.encode()).decode()})

    def _run(self, groups: Any, _query: Any, _body: Any) -> Answer:
        return Answer(200, self.runs[int(groups[0])])

    def _jobs(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        told = self.jobs
        if query["filter"] == "all":
            told = [
                {"conclusion": "success"}
                | {key: job[key] for key in ("id", "name", "run_attempt", "conclusion") if key in job}
                for job in self.night_jobs(int(groups[0]))
            ]
        return self._paged(told, f"{HOME}/actions/runs/{groups[0]}/jobs", query, "jobs")

    def _artifacts(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        return self._paged(self.artifacts, f"{HOME}/actions/runs/{groups[0]}/artifacts", query, "artifacts")

    def _annotations(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        run, number = divmod(int(groups[0]), 1000)
        found = [job for job in self.night_jobs(run) if job["id"] == run * 1000 + number]
        if not found:
            return Answer(404, {"message": "Not Found"})
        return self._paged(found[0]["annotations"], f"{HOME}/check-runs/{groups[0]}/annotations", query)

    def _zip(self, groups: Any, _query: Any, _body: Any) -> Answer:
        where = self.base.replace("127.0.0.1", "localhost")
        return Answer(302, None, {"Location": f"{where}/blob/{groups[0]}"})

    def _list_comments(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        found = [each for each in self.comments if each["on"] == int(groups[0])]
        return self._paged(found, f"{HOME}/issues/{groups[0]}/comments", query)

    def _comment(self, groups: Any, _query: Any, body: Any) -> Answer:
        if len(body["body"]) > LIMIT:
            return Answer(422, {"message": "Validation Failed: body is too long"})
        made = {"id": 1000 + len(self.comments), "on": int(groups[0]), "user": {"login": BOT}, **body}
        self.comments.append(made)
        return Answer(201, made)

    def _edit(self, groups: Any, _query: Any, body: Any) -> Answer:
        found = next(each for each in self.comments if each["id"] == int(groups[0]))
        if found["user"]["login"] != BOT:
            return Answer(403, {"message": "Resource not accessible by integration"})
        if len(body["body"]) > LIMIT:
            return Answer(422, {"message": "Validation Failed: body is too long"})
        found.update(body)
        return Answer(200, found)

    def _list_issues(self, _groups: Any, query: dict[str, str], _body: Any) -> Answer:
        found = [
            each
            for each in self.issues
            if query["state"] in ("all", each["state"])
            and each["user"]["login"] == query.get("creator", each["user"]["login"])
            and query.get("labels", "") in ("", *(label["name"] for label in each["labels"]))
        ]
        return self._paged(found, f"{HOME}/issues", query)

    def _open(self, _groups: Any, _query: Any, body: Any) -> Answer:
        if len(body["body"]) > LIMIT or len(body["title"]) > 256:
            return Answer(422, {"message": "Validation Failed"})
        labels = [{"name": name} for name in body["labels"]]
        made = {
            "number": 1 + len(self.issues),
            "state": "open",
            "user": {"login": BOT},
            **body,
            "labels": labels,
        }
        self.issues.append(made)
        return Answer(201, made)

    def _change(self, groups: Any, _query: Any, body: Any) -> Answer:
        found = next(each for each in self.issues if each["number"] == int(groups[0]))
        if len(body.get("body", "")) > LIMIT:
            return Answer(422, {"message": "Validation Failed"})
        found.update(body)
        return Answer(200, found)

    def _list_checks(self, groups: Any, query: dict[str, str], _body: Any) -> Answer:
        found = [
            each
            for each in self.check_runs
            if each["head_sha"] == groups[0] and each["name"] == query["check_name"]
        ]
        return self._paged(found, f"{HOME}/commits/{groups[0]}/check-runs", query, "check_runs")

    def _check(self, _groups: Any, _query: Any, body: Any) -> Answer:
        if len(body["output"]["summary"]) > LIMIT - 1:
            return Answer(422, {"message": "Validation Failed: summary"})
        made = {"id": 1 + len(self.check_runs), **body}
        self.check_runs.append(made)
        return Answer(201, made)

    def _recheck(self, groups: Any, _query: Any, body: Any) -> Answer:
        found = next(each for each in self.check_runs if each["id"] == int(groups[0]))
        found.update(body)
        return Answer(200, found)

    def _role(self, groups: Any, _query: Any, _body: Any) -> Answer:
        role = self.roles.get(unquote(groups[0]))
        return Answer(200, {"permission": role}) if role else Answer(404, {"message": "Not Found"})

    def _paged(self, items: list[Any], path: str, query: dict[str, str], key: str = "") -> Answer:
        number, size = int(query.get("page", 1)), min(int(query.get("per_page", 30)), self.page)
        part = items[(number - 1) * size : number * size]
        headers = {}
        if number * size < len(items):
            following = urlencode({**query, "page": number + 1})
            headers["Link"] = f'<{self.base}{path}?{following}>; rel="next", <{self.base}{path}>; rel="last"'
        return Answer(200, {"total_count": len(items), key: part} if key else part, headers)


@contextmanager
def serving(github: GitHub) -> Iterator[GitHub]:
    """Serve ``github`` on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            found = urlsplit(self.path)
            github.requests.append((self.command, found.path))
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            self._send(self._answer(found.path, dict(parse_qsl(found.query)), body))

        def _answer(self, path: str, query: dict[str, str], body: Any) -> Answer:
            if path.startswith("/blob/"):
                github.leaked.extend(filter(None, [self.headers.get("Authorization")]))
                return Answer(200, github.zips[int(path.removeprefix("/blob/"))])
            if github.trouble:
                return github.trouble.pop(0)
            if path == "/callback":
                if not (self.headers.get("Authorization") or "").startswith("Bearer oidc-for-"):
                    return Answer(401, {"message": "no token"})
                github.relayed.append(body)
                return Answer(200, {"ok": True})
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return Answer(401, {"message": "Bad credentials"})
            return github.answer(self.command, path, query, body)

        def _send(self, answer: Answer) -> None:
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815  names of the base class

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    github.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
