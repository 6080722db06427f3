"""The client of GitHub's API against a real server: token, pages, retries, limits, redirects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from github_server import HOME, TOKEN, Answer, GitHub, serving

from torchgauge.errors import UsageError
from torchgauge.workflows.github_api import ApiError, GitHubApi, repository_path


@dataclass
class StoppedClock:
    """A clock that stands still, and notes how long somebody wanted to sleep."""

    at: float = 1_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


@pytest.fixture
def github(monkeypatch) -> Iterator[GitHub]:
    """A running server."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    with serving(GitHub()) as github:
        yield github


def api_of(github: GitHub, token: str = TOKEN) -> tuple[GitHubApi, StoppedClock]:
    clock = StoppedClock()
    return GitHubApi(github.base, token, clock, clock.slept.append), clock


def test_all_pages_are_read(github) -> None:
    """Five comments on pages of two."""
    github.comments = [{"id": number, "on": 5, "user": {"login": "x"}} for number in range(5)]
    api, _ = api_of(github)
    assert [each["id"] for each in api.pages(f"{HOME}/issues/5/comments")] == [0, 1, 2, 3, 4]
    assert len(github.requests) == 3


def test_a_next_page_on_another_server_is_refused(github) -> None:
    """The token would go there."""
    github.trouble = [Answer(200, [], {"Link": '<https://evil.example/page>; rel="next"'})]
    with pytest.raises(ApiError, match="another server"):
        list(api_of(github)[0].pages(f"{HOME}/issues"))


def test_a_server_error_is_tried_again_with_longer_pauses(github) -> None:
    """And a reading request only."""
    github.trouble = [Answer(502), Answer(503)]
    api, clock = api_of(github)
    assert list(api.pages(f"{HOME}/issues", state="all")) == []
    assert clock.slept == [1.0, 2.0]


def test_a_post_is_not_sent_twice(github) -> None:
    """It may have done its work before the error."""
    github.trouble = [Answer(502, {"message": "oh no"})]
    api, clock = api_of(github)
    with pytest.raises(ApiError, match="HTTP 502: oh no") as caught:
        api.send("POST", f"{HOME}/issues/5/comments", {"body": "x"})
    assert (caught.value.status, clock.slept, len(github.requests)) == (502, [], 1)


def test_a_rate_limit_is_waited_for_where_it_is_short_and_said_where_it_is_long(github) -> None:
    """A POST too: the server did nothing."""
    github.trouble = [Answer(429, {}, {"Retry-After": "7"})]
    api, clock = api_of(github)
    assert api.send("POST", f"{HOME}/issues/5/comments", {"body": "x"})["body"] == "x"
    assert clock.slept == [7.0]
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(clock.at) + 3600)}
    github.trouble = [Answer(403, {"message": "API rate limit exceeded"}, spent)]
    with pytest.raises(ApiError, match=r"rate limit .* until 1970-01-12 14:46:40 UTC"):
        api.get(f"{HOME}/pulls/5")


def test_what_may_not_be_done_is_not_tried_again(github) -> None:
    """401 and 403 name the permissions, and nothing names the token."""
    api, clock = api_of(github, "ghs_wrong-token")
    with pytest.raises(ApiError) as caught:
        api.get(f"{HOME}/pulls/5")
    assert (caught.value.status, clock.slept) == (401, [])
    assert "permissions" in str(caught.value)
    assert "ghs_wrong" not in f"{caught.value} {caught.value!r} {api!r}"


def test_an_api_that_is_down_is_said(monkeypatch) -> None:
    """After four attempts."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(GitHub()) as github:
        api, clock = api_of(github)
    with pytest.raises(ApiError, match="cannot be reached") as caught:
        api.get(f"{HOME}/pulls/5")
    assert (caught.value.status, clock.slept) == (0, [1.0, 2.0, 4.0])


def test_a_download_follows_the_redirect_without_the_token(github) -> None:
    """And ends at its cap."""
    github.zips[3] = b"x" * 100
    api, _ = api_of(github)
    assert api.download(f"{HOME}/actions/artifacts/3/zip", 100) == b"x" * 100
    assert github.leaked == []
    with pytest.raises(ApiError, match="more than 99 bytes"):
        api.download(f"{HOME}/actions/artifacts/3/zip", 99)


def test_an_answer_that_is_no_json_is_said(github) -> None:
    """A proxy's page, say."""
    github.trouble = [Answer(200, b"<html>")]
    with pytest.raises(ApiError, match="not JSON"):
        api_of(github)[0].get(f"{HOME}/pulls/5")


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"GITHUB_TOKEN": "two words"},
        {"GITHUB_TOKEN": "line\nfeed"},
        {"GITHUB_TOKEN": "fine", "GITHUB_API_URL": "http://api.example"},
    ],
)
def test_a_bad_environment_is_a_usage_error(names) -> None:
    """No token, a token that is none, a server without encryption."""
    with pytest.raises(UsageError) as caught:
        GitHubApi.from_environment(names)
    assert "fine" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "owner", "owner/a/b", "owner/..", "o wner/a", "owner/a?x=1"])
def test_a_name_that_is_no_repository_makes_no_path(name) -> None:
    """It would lead elsewhere."""
    with pytest.raises(UsageError, match="not of the form OWNER/NAME"):
        repository_path(name)
