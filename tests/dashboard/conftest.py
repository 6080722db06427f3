"""A realistic site, a tiny server and a real browser, each made once."""

from __future__ import annotations

import functools
import http.server
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import store_builder
from patience import PATIENCE_MS, patient

from torchgauge.dashboard import build_site

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two devices, two configurations and all ten statuses; not to be changed."""
    path = tmp_path_factory.mktemp("realistic") / "store"
    store_builder.realistic_store(path)
    return path


@pytest.fixture(scope="session")
def site(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the realistic store."""
    out = tmp_path_factory.mktemp("site") / "site"
    build_site(store, out, now=store_builder.NOW)
    return out


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, absent: Collection[str], **options: Any) -> None:
        self._absent = absent
        super().__init__(*args, **options)

    def send_head(self) -> Any:
        """Answer 404 for what is absent, though the folder has it."""
        if urlsplit(self.path).path.lstrip("/") in self._absent:
            return self.send_error(404)
        return super().send_head()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def _serving(folder: Path, absent: Collection[str] = ()) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder), absent=absent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """The address under which a folder is served, but for the files whose paths are in ``absent`` then."""
    with ExitStack() as stack:
        yield lambda folder, absent=(): stack.enter_context(_serving(folder, absent))


@pytest.fixture(scope="session")
def address(serve: Callable[[Path], str], site: Path) -> str:
    """Where the realistic site is served."""
    return serve(site)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; required where CI or TORCHGAUGE_REQUIRE_CHROMIUM is set."""
    executable = os.environ.get("TORCHGAUGE_CHROMIUM", "/usr/bin/chromium")
    required = os.environ.get("CI") or os.environ.get("TORCHGAUGE_REQUIRE_CHROMIUM")
    if not Path(executable).is_file() and not required:
        pytest.skip(f"there is no Chromium at {executable}; TORCHGAUGE_CHROMIUM names another")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS, timeout=PATIENCE_MS)
        yield patient(chromium)
        chromium.close()
