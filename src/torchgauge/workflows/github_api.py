"""GitHub's REST API as far as the steps of a workflow need it, over the standard library.

Base URL and token come from the environment (``GITHUB_API_URL``, ``GITHUB_TOKEN``), never from an argument or
a file that a job submitted. The token goes to that host alone: not along a redirect, not to the next page
of another host, and never into a message. What the server says is text that nobody controls.

Source: docs.github.com, "Best practices for using the REST API" (rate limits, pagination by ``Link``).
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, build_opener

from torchgauge.clock import SYSTEM_CLOCK, Clock, utc
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.results.hostile_text import first_line

ATTEMPTS = 4
"""How often a request is tried in all."""
LONGEST_WAIT_S = 120.0
"""A rate limit that ends later than this is an error that says when it ends."""
TIMEOUT_S = 30.0
PER_PAGE = 100
MOST_PAGES = 50
MOST_BYTES = 32 * 1024 * 1024
"""Bytes of one answer that are read."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}")
_NEXT = re.compile(r'<([^<>]+)>;\s*rel="next"')
_LOCAL = ("127.0.0.1", "localhost", "::1")


class ApiError(InfrastructureError):
    """The API refused or could not be reached; ``status`` is HTTP's, 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True)
class GitHubApi:
    """A door to the API of one GitHub server; ``sleep`` and ``clock`` are for tests."""

    base: str
    token: str = field(repr=False)
    clock: Clock = SYSTEM_CLOCK
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        if not may_see_a_token(self.base):
            raise UsageError(
                f"GITHUB_API_URL is {self.base!r}, but a token is sent only over https",
                hint="GITHUB_API_URL=https://api.github.com",
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> GitHubApi:
        """The API that a runner names; raises :class:`UsageError` where no token is given."""
        names = os.environ if environment is None else environment
        token = (names.get("GITHUB_TOKEN") or names.get("GH_TOKEN") or "").strip()
        if not token:
            raise UsageError(
                "GITHUB_TOKEN is not set", hint="give the step `env: {GITHUB_TOKEN: ${{ github.token }}}`"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("GITHUB_TOKEN contains invalid characters", hint="set the variable again")
        return cls(names.get("GITHUB_API_URL", "").strip().rstrip("/") or "https://api.github.com", token)

    def get(self, path: str, **query: str | int) -> Any:
        """The JSON at ``path``; raises :class:`ApiError`."""
        return _parsed(self._request("GET", self._url(path, query))[0], path)

    def pages(self, path: str, key: str = "", **query: str | int) -> Iterator[dict[str, Any]]:
        """Every item of a list, page after page; ``key`` names the list where an object holds it.

        Raises :class:`ApiError` also for a list of more than ``MOST_PAGES`` pages: half of one is none.
        """
        url = self._url(path, {"per_page": PER_PAGE, **query})
        for _ in range(MOST_PAGES):
            data, headers = self._request("GET", url)
            found = _parsed(data, path)
            items = found.get(key) if key and isinstance(found, dict) else found
            if not isinstance(items, list):
                raise ApiError(f"{path}: the response contains no list", hint="check GITHUB_API_URL")
            yield from (item for item in items if isinstance(item, dict))
            following = _NEXT.search(headers.get("Link", "") or "")
            if following is None:
                return
            url = following[1]
            if not url.startswith(self.base + "/"):
                raise ApiError(f"the next page of {path} is on another server", hint="check GITHUB_API_URL")
        raise ApiError(f"{path} has more than {MOST_PAGES} pages", hint="use a narrower search")

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send ``body``; a POST is not tried again where it may already have done its work."""
        text = json.dumps(body, allow_nan=False).encode()
        return _parsed(self._request(method, self._url(path, {}), text)[0], path)

    def download(self, path: str, limit: int) -> bytes:
        """The bytes at ``path``, over redirects; raises :class:`ApiError` for more than ``limit`` bytes."""
        return self._request("GET", self._url(path, {}), limit=limit)[0]

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        return f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")

    def _request(
        self, method: str, url: str, body: bytes | None = None, limit: int = MOST_BYTES
    ) -> tuple[bytes, HTTPMessage]:
        where = f"{method} {urlsplit(url).path}"
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(method, url, body, limit, where)
            except HTTPError as error:
                with error:
                    wait = self._wait(error, method, attempt, where)
            except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
                refused = isinstance(error, URLError) and isinstance(error.reason, ConnectionRefusedError)
                if attempt == ATTEMPTS or (method == "POST" and not refused):
                    raise _unreachable(where, error) from None
                wait = 2.0 ** (attempt - 1)
            self.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _once(
        self, method: str, url: str, body: bytes | None, limit: int, where: str
    ) -> tuple[bytes, HTTPMessage]:
        request = Request(url, data=body, method=method)  # noqa: S310  https or this machine, see above
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_header("User-Agent", "torchgauge")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        with build_opener().open(request, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(limit + 1)
            if len(data) > limit:
                raise ApiError(f"{where}: the response has more than {limit:,} bytes", answer.status)
            return data, answer.headers

    def _wait(self, error: HTTPError, method: str, attempt: int, where: str) -> float:
        """Seconds until the request is worth another try; raises :class:`ApiError` where it never is."""
        limited = _rate_limited(error)
        if limited:
            wait = self._until_allowed(error, attempt)
            if wait > LONGEST_WAIT_S or attempt == ATTEMPTS:
                moment = f"{utc(self.clock.now() + wait):%Y-%m-%d %H:%M:%S} UTC"
                raise ApiError(
                    f"{where}: the rate limit of the API is exceeded until {moment}",
                    error.code,
                    hint="run the job again after that time",
                )
            return wait
        if error.code < 500 or method == "POST" or attempt == ATTEMPTS:
            raise ApiError(f"{where}: HTTP {error.code}{_said(error)}", error.code, hint=_hint(error.code))
        return 2.0 ** (attempt - 1)

    def _until_allowed(self, error: HTTPError, attempt: int) -> float:
        after, reset = error.headers.get("Retry-After", ""), error.headers.get("X-RateLimit-Reset", "")
        if after and after.isascii() and after.isdigit():
            return min(float(after[:9]), 1e6)
        if (
            reset
            and reset.isascii()
            and reset.isdigit()
            and error.headers.get("X-RateLimit-Remaining") == "0"
        ):
            return min(max(1.0, float(reset[:12]) - self.clock.now()), 1e6)
        return 2.0**attempt


def own_name(job: Mapping[str, Any]) -> str:
    """The name of a job as the API lists it, without those of the workflows that call its own."""
    return str(job.get("name", "")).rpartition(" / ")[2]


def repository_path(repository: str) -> str:
    """``/repos/OWNER/NAME``; raises :class:`UsageError` for what is no name of a repository."""
    if not _REPOSITORY.fullmatch(repository) or repository.endswith(("/.", "/..")):
        raise UsageError(f"{repository[:80]!r} is not of the form OWNER/NAME", hint="--repository OWNER/NAME")
    return f"/repos/{repository}"


def may_see_a_token(address: str) -> bool:
    """Whether ``address`` is one over https, or of this machine."""
    found = urlsplit(address)
    local = found.scheme == "http" and found.hostname in _LOCAL
    return bool(found.hostname) and (found.scheme == "https" or local)


def is_repository(name: object) -> bool:
    """Whether ``name`` is written as a repository's name is."""
    return isinstance(name, str) and _REPOSITORY.fullmatch(name) is not None


def is_sha(text: object) -> bool:
    """Whether ``text`` is the full name of a commit: 40 hexadecimal digits."""
    return isinstance(text, str) and _SHA.fullmatch(text) is not None


def segment(text: str) -> str:
    """``text`` as one part of a path."""
    return quote(text, safe="")


def _rate_limited(error: HTTPError) -> bool:
    if error.code == 429:
        return True
    spent = error.headers.get("X-RateLimit-Remaining") == "0" or bool(error.headers.get("Retry-After"))
    return error.code == 403 and spent


def _parsed(data: bytes, path: str) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ApiError(f"{path}: the response is not JSON", hint="check GITHUB_API_URL") from None


def _said(error: HTTPError) -> str:
    """What the server says of an error, on one line."""
    try:
        found = json.loads(error.read(65_536))
        text = first_line(str(found.get("message", ""))) if isinstance(found, dict) else ""
    except (ValueError, OSError, HTTPException, RecursionError):
        text = ""
    return f": {text}" if text else ""


def _hint(status: int) -> str:
    if status in (401, 403):
        return "the permissions of the job must allow it; docs/how-to/gate-a-repository.md lists them"
    if status == 404:
        return "check the name, and whether the token has access"
    return "see GitHub's status page, then run the job again" if status >= 500 else ""


def _unreachable(where: str, error: BaseException) -> ApiError:
    reason = error.reason if isinstance(error, URLError) else error
    return ApiError(
        f"{where}: the API cannot be reached: {first_line(str(reason)) or type(reason).__name__}",
        hint="check GITHUB_API_URL and the network, then run the job again",
    )
