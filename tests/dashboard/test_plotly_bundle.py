"""plotly.js from a registry: a real server on this machine that answers well, wrongly, or without end."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchgauge.dashboard import plotly_bundle
from torchgauge.dashboard.plotly_bundle import (
    MEMBER,
    PACKAGE,
    Wanted,
    basic_bundle,
    bring,
    configured_registry,
    full_bundle,
    plotlyjs_version,
)
from torchgauge.errors import InfrastructureError

VERSION = plotlyjs_version()
SCRIPT = b"/** plotly.js (basic - minified) */ window.Plotly = {};"


def archive(content: bytes, member: str = MEMBER) -> bytes:
    """An archive as the registry keeps it."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as files:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        files.addfile(info, io.BytesIO(content))
    return held.getvalue()


def sha512(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry:
    """What the server answers: ``files`` by path, and every path that it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | str] = {}
        self.asked: list[str] = []
        self.address = ""

    def offer(self, data: bytes, **dist: Any) -> None:
        """Offer an archive; ``dist`` replaces what the metadata say of it."""
        said = {"tarball": f"{self.address}basic.tgz", "integrity": sha512(data), **dist}
        self.files["/basic.tgz"] = data
        self.files[f"/{PACKAGE}/{VERSION}"] = json.dumps({"license": "MIT", "dist": said}).encode()


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            found.asked.append(self.path)
            answer = found.files.get(self.path)
            if isinstance(answer, str):
                self.send_response(302)
                self.send_header("Location", answer)
                self.end_headers()
            elif answer is None:
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                try:
                    self.wfile.write(answer)
                except OSError:
                    return  # the reader had enough

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def test_a_good_archive_is_unpacked_checked_and_kept(registry: Registry, tmp_path: Path) -> None:
    """The second build asks nobody, and the record names version, digest, licence and source."""
    registry.offer(archive(SCRIPT))
    first = basic_bundle(registry.address, tmp_path)
    again = basic_bundle("http://127.0.0.1:9/", tmp_path)
    assert first == again
    assert len(registry.asked) == 2
    assert first.content == SCRIPT
    digest = base64.b64encode(hashlib.sha384(SCRIPT).digest()).decode()
    assert first.record == {
        "file": first.file, "flavour": "basic", "version": VERSION, "integrity": f"sha384-{digest}",
        "licence": "MIT", "source": f"{registry.address}basic.tgz", "own_styles": [],
    }  # fmt: skip
    assert re.fullmatch(r"assets/plotly-basic-[\w.]+-[0-9a-f]{8}\.min\.js", first.file)


def test_a_cache_that_was_changed_is_brought_again(registry: Registry, tmp_path: Path) -> None:
    registry.offer(archive(SCRIPT))
    basic_bundle(registry.address, tmp_path)
    (tmp_path / f"basic-{VERSION}.min.js").write_bytes(b"alert(1)")
    assert basic_bundle(registry.address, tmp_path).content == SCRIPT
    assert len(registry.asked) == 4


def _wrong_digest(registry: Registry) -> None:
    registry.offer(archive(SCRIPT), integrity=sha512(b"something else"))


def _no_digest(registry: Registry) -> None:
    registry.offer(archive(SCRIPT), integrity="sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=")


def _endless(registry: Registry) -> None:
    registry.offer(b"\0" * (plotly_bundle.ARCHIVE_LIMIT + 1))


def _bomb(registry: Registry) -> None:
    registry.offer(archive(b"plotly.js" + b"\0" * plotly_bundle.BUNDLE_LIMIT))


def _no_archive(registry: Registry) -> None:
    registry.offer(b"<html>not today</html>")


def _cut_short(registry: Registry) -> None:
    registry.offer(archive(SCRIPT)[:60])


def _other_member(registry: Registry) -> None:
    registry.offer(archive(SCRIPT, "package/../../evil.js"))


def _other_script(registry: Registry) -> None:
    registry.offer(archive(b"alert(1)"))


def _plain_http(registry: Registry) -> None:
    registry.offer(archive(SCRIPT), tarball="http://example.invalid/basic.tgz")


def _local_file(registry: Registry) -> None:
    registry.offer(archive(SCRIPT), tarball="file:///etc/passwd")


def _redirect(registry: Registry) -> None:
    registry.offer(archive(SCRIPT))
    registry.files["/basic.tgz"] = "http://example.invalid/basic.tgz"


def _no_json(registry: Registry) -> None:
    registry.files[f"/{PACKAGE}/{VERSION}"] = b"<html>"


def _odd_json(registry: Registry) -> None:
    registry.files[f"/{PACKAGE}/{VERSION}"] = b'{"dist": ["tarball"]}'


def _not_there(registry: Registry) -> None:
    registry.files.clear()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_wrong_digest, "SHA-512 that the registry names"),
        (_no_digest, "no SHA-512"),
        (_endless, "more than 4 MiB"),
        (_bomb, "holds more than 8 MiB"),
        (_no_archive, "cannot be brought"),
        (_cut_short, "cannot be brought"),
        (_other_member, MEMBER),
        (_other_script, MEMBER),
        (_plain_http, "only https"),
        (_local_file, "only https"),
        (_redirect, "only https"),
        (_no_json, "cannot be brought"),
        (_odd_json, "names no archive"),
        (_not_there, "404"),
    ],
)
def test_what_must_not_be_used_is_refused_in_words_and_never_kept(
    registry: Registry, tmp_path: Path, spoil: Callable[[Registry], None], says: str
) -> None:
    """With ``auto`` the full bundle takes its place, and the note says why."""
    spoil(registry)
    with pytest.raises(InfrastructureError, match=re.escape(says)) as caught:
        bring(Wanted.BASIC, registry=registry.address, cache=tmp_path)
    assert "--plotly full" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    charts = bring(Wanted.AUTO, registry=registry.address, cache=tmp_path)
    assert charts.bundle is not None
    assert charts.bundle.flavour == "full"
    assert says in charts.note


def test_a_registry_that_is_down_gives_the_full_bundle_and_a_note(tmp_path: Path) -> None:
    charts = bring(Wanted.AUTO, registry="http://127.0.0.1:9/", cache=tmp_path)
    assert charts.bundle is not None
    assert charts.bundle.flavour == "full"
    assert "cannot be brought from http://127.0.0.1:9/" in charts.note


def test_the_full_bundle_is_the_one_of_python_plotly() -> None:
    """The files that are read without importing plotly are what plotly itself would give."""
    from plotly import offline

    assert plotlyjs_version() == offline.get_plotlyjs_version()
    assert full_bundle().content.decode() == offline.get_plotlyjs()
    assert len(full_bundle().record["own_styles"]) == 1


def test_no_charts_ask_nobody(tmp_path: Path) -> None:
    assert bring(Wanted.NONE, registry="http://127.0.0.1:9/", cache=tmp_path).bundle is None


def test_a_password_in_the_registry_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as caught:
        basic_bundle("http://me:hunter2@127.0.0.1:9/", tmp_path)
    assert "hunter2" not in str(caught.value)


def test_the_registry_is_the_one_that_npm_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    npmrc = tmp_path / "npmrc"
    monkeypatch.setenv("NPM_CONFIG_USERCONFIG", str(npmrc))
    assert configured_registry() == "https://registry.npmjs.org/"
    npmrc.write_text("; a comment\nregistry = https://mirror.invalid/npm/\n")
    assert configured_registry() == "https://mirror.invalid/npm/"
    monkeypatch.setenv("npm_config_registry", "https://other.invalid/")
    assert configured_registry() == "https://other.invalid/"


def test_an_archive_of_two_gzip_members_is_no_way_round_the_limit(registry: Registry, tmp_path: Path) -> None:
    """Only the first member is read."""
    data = archive(SCRIPT) + gzip.compress(b"\0" * 1000)
    registry.offer(data)
    assert basic_bundle(registry.address, tmp_path).content == SCRIPT
