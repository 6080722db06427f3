"""Links to commits, branches and pull requests on their Git host; text of any other form stays text."""

from __future__ import annotations

import re
from urllib import parse

from markupsafe import Markup, escape

from torchgauge.records.comparison import CodeSource
from torchgauge.results.hostile_text import brief

TORCH = "https://github.com/pytorch/pytorch"
_REPOSITORY = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~-]+)+")
_COMMIT = re.compile(r"[0-9a-f]{8,64}")
_PULL = re.compile(r"(?:refs/)?pull/([0-9]{1,9})(?:/(?:head|merge))?")
_OF_TORCH = re.compile(r"torch[._](?:git_)?commit")


def commit_link(commit: str, repository: str = TORCH) -> Markup:
    """Return the first digits of ``commit`` as a link to its page, or the text where it has no such page."""
    short = Markup("<code>{}</code>").format(brief(commit[:12], 40)) if commit else Markup()
    if not (_COMMIT.fullmatch(commit) and _REPOSITORY.fullmatch(repository)):
        return short
    return Markup('<a href="{}/commit/{}">{}</a>').format(repository, commit, short)


def source_link(source: CodeSource | None) -> Markup:
    """Return the commit of a side, and its branch or pull request."""
    if source is None:
        return Markup()
    commit, branch = commit_link(source.commit, source.repository), brief(source.branch, 100)
    if not branch:
        return commit
    if _REPOSITORY.fullmatch(source.repository):
        pull = _PULL.fullmatch(source.branch)
        path, name = (
            (f"pull/{pull[1]}", f"#{pull[1]}") if pull else (f"tree/{parse.quote(source.branch)}", branch)
        )
        branch = Markup('<a href="{}/{}">{}</a>').format(source.repository, path, name)
    return Markup("{} of {}").format(commit, branch)


def linked_fact(key: str, value: str) -> Markup:
    """Return the value of a fact, escaped, with each commit of torch in it as a link."""
    parts = value.split(" → ") if _OF_TORCH.fullmatch(key) else ()
    if not any(map(_COMMIT.fullmatch, parts)):
        return escape(brief(value))
    return Markup(" → ").join(commit_link(each) if _COMMIT.fullmatch(each) else brief(each) for each in parts)
