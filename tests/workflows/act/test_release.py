"""The workflow of a release under the real act: a tag is published once, and only where everything agrees."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from act_runner import PROJECT, STUBS, ActRun, GitHost
from source_tree import copy_source

VERSION = "0.7.3rc1"
FILES = {f"torchgauge-{VERSION}-py3-none-any.whl", f"torchgauge-{VERSION}.tar.gz"}
PUBLISHING = ("attest", "pypi", "page")


@dataclass
class Publisher:
    """A Git host with this project in it, and the folders into which a release goes."""

    git_host: GitHost
    folder: Path

    @property
    def published(self) -> dict[str, bytes]:
        """Name and content of every file on the index."""
        return {path.name: path.read_bytes() for path in (self.folder / "index").glob("*")}

    def attested(self, kind: str) -> Mapping[str, object]:
        return json.loads((self.folder / "attestations" / f"{kind}.json").read_text(encoding="utf-8"))

    def set_version(self, version: str) -> None:
        """Write the version, as a person does who cuts a release, and commit it."""
        path = self.git_host.repository / "src" / "torchgauge" / "__init__.py"
        text = re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', path.read_text(encoding="utf-8"))
        self.git_host.commit({"src/torchgauge/__init__.py": text}, f"torchgauge {version}")

    def push_tag(self, tag: str, run: int) -> ActRun:
        self.git_host.git("tag", "-f", tag)
        payload = {"ref": f"refs/tags/{tag}", "after": self.git_host.git("rev-parse", "HEAD")}
        return self.start("push", run, payload)

    def start(self, event: str, run: int, payload: Mapping[str, object] | None = None) -> ActRun:
        """Start the workflow without a network: what the wheel asks for is taken from this interpreter."""
        binaries = self.folder / "bin"
        binaries.mkdir(exist_ok=True)
        gh = binaries / "gh"
        gh.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STUBS / "gh" / "gh.py"}" "$@"\n')
        gh.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(binaries), prepend=":")
            return self.git_host.act(
                event,
                "release.yml",
                payload=payload,
                secrets={"GITHUB_TOKEN": "token"},
                environment={
                    "ACT_ATTESTATIONS": str(self.folder / "attestations"),
                    "ACT_INDEX": str(self.folder / "index"),
                    "ACT_RELEASES": str(self.folder / "releases"),
                    "OMP_NUM_THREADS": "1",
                    "PIP_NO_DEPS": "1",
                    "PIP_NO_INDEX": "1",
                    "PYTHONPATH": sysconfig.get_path("purelib"),
                },
                run=run,
            )


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    """This project in a repository of its own, as it is between two releases."""
    git_host = GitHost(tmp_path / "git_host")
    copy_source(git_host.repository)
    git_host.commit({}, "a development tree")
    return Publisher(git_host, tmp_path)


@pytest.mark.full
def test_a_tag_is_built_once_attested_published_and_put_on_a_page(publisher):
    """Every job hands on the same bytes, and the notes are the section of the changelog."""
    publisher.set_version(VERSION)
    changelog = publisher.git_host.repository / "CHANGELOG.md"
    head, *rest = changelog.read_text(encoding="utf-8").split("\n## ", 1)
    section = rest[0].partition("\n")[2]
    text = f"{head}\n## {VERSION} (2026-12-01)\n{section}"
    publisher.git_host.commit({"CHANGELOG.md": text}, "changelog")

    done = publisher.push_tag(f"v{VERSION}", run=1)

    assert done.jobs == {(job, "success") for job in ("build", *PUBLISHING)}, done.log[-6000:]
    assert publisher.published.keys() == FILES
    digests = {name: hashlib.sha256(held).hexdigest() for name, held in publisher.published.items()}
    assert publisher.attested("provenance")["subjects"] == digests
    assert publisher.attested("provenance")["ref"] == f"refs/tags/v{VERSION}"
    wheels = {name: digest for name, digest in digests.items() if name.endswith(".whl")}
    assert publisher.attested("sbom")["subjects"] == wheels
    page = publisher.folder / "releases" / f"v{VERSION}"
    assert {path.name for path in page.iterdir()} == FILES | {"title", "notes", "sbom.cdx.json"}
    assert {name: hashlib.sha256((page / name).read_bytes()).hexdigest() for name in FILES} == digests
    notes = (page / "notes").read_text(encoding="utf-8")
    assert notes.strip() == section.strip()
    with zipfile.ZipFile(BytesIO(publisher.published[f"torchgauge-{VERSION}-py3-none-any.whl"])) as wheel:
        metadata = wheel.read(f"torchgauge-{VERSION}.dist-info/METADATA").decode()
    assert f"\nVersion: {VERSION}\n" in metadata


def test_a_tag_that_is_not_the_version_is_refused_before_anything_is_built(publisher):
    """The message says what the tree says, what the tag says, and what to type."""
    publisher.set_version(VERSION)
    done = publisher.push_tag("v0.7.4", run=1)
    assert done.jobs == {("build", "failure")}
    assert f"the tag is v0.7.4, but src/torchgauge/__init__.py says {VERSION}" in done.output
    assert f"write: ## {VERSION} (its date)" in done.output
    assert publisher.git_host.artifact_names() == set()
    assert not publisher.published


@pytest.mark.full
def test_a_rehearsal_builds_everything_and_publishes_nothing(publisher):
    """Started by hand on a development tree, only the job without a token runs."""
    done = publisher.start("workflow_dispatch", run=1)
    assert done.jobs == {("build", "success")}, done.log[-6000:]
    with publisher.git_host.artifact("dist") as archive:
        (sdist,) = [name for name in archive.namelist() if name.endswith(".tar.gz")]
        with tarfile.open(fileobj=BytesIO(archive.read(sdist))) as tar:
            assert f"{sdist.removesuffix('.tar.gz')}/pyproject.toml" in tar.getnames()
    with publisher.git_host.artifact("about") as archive:
        assert json.loads(archive.read("sbom.cdx.json"))["bomFormat"] == "CycloneDX"
        notes = archive.read("notes.md").strip()
        assert notes
        assert notes in (PROJECT / "CHANGELOG.md").read_bytes()
    assert not publisher.published
    assert not (publisher.folder / "attestations").exists()
