"""``--pretrained`` from end to end, with a hub of our own that has nothing: who asks it and what is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

WORDS = (
    "huggingface",
    "timm",
    "--models",
    "huggingface/BertForMaskedLM,timm/resnet18",
    "--device",
    "cpu",
    "--config",
    "eager",
)


class EmptyHub(ThreadingHTTPServer):
    """A hub that answers every question with "there is no such repository"."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _NoSuchRepository)
        self.asked: list[str] = []


class _NoSuchRepository(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, EmptyHub)
        self.server.asked.append(self.path)
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815  the names are the server's

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[EmptyHub]:
    with EmptyHub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def measured(sandbox, hub: EmptyHub, *words: str, **variables: str) -> list[tuple[str, str]]:
    """Status and cause of the rows of a run whose hub is ``hub`` and whose caches are empty."""
    home = sandbox.store_path.with_name("home")
    own = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(home),
        "no_proxy": "127.0.0.1",
    }
    sandbox.environment.pop("HF_HUB_OFFLINE", None)
    done = sandbox.measure(*WORDS, *words, **own, TORCH_HOME=str(home), **variables)
    assert done.returncode == (3 if words else 0), done.stderr  # without weights nothing was measured
    return [(row.status.value, row.cause.value if row.cause else row.reason) for row in sandbox.rows()]


@pytest.mark.torch
def test_a_run_that_asks_for_weights_may_reach_the_hub(sandbox, hub: EmptyHub) -> None:
    """The workers ask the hub, and what it does not have is missing data, not an error of the model."""
    assert measured(sandbox, hub, "--pretrained") == [("skipped", "missing_data")] * 2
    assert any("bert-base-uncased" in path for path in hub.asked)
    assert any("resnet18" in path for path in hub.asked)
    assert all("weights=pretrained" in row.case.id for row in sandbox.rows())


@pytest.mark.torch
def test_a_person_who_forbids_the_network_is_obeyed(sandbox, hub: EmptyHub) -> None:
    """With ``HF_HUB_OFFLINE=1`` nothing is asked, and the rows say that there is no network."""
    assert measured(sandbox, hub, "--pretrained", HF_HUB_OFFLINE="1") == [("skipped", "no_network")] * 2
    assert hub.asked == []


@pytest.mark.torch
def test_random_weights_ask_nobody(sandbox, hub: EmptyHub) -> None:
    """Without the flag the same models pass, and the hub hears nothing."""
    assert {status for status, _ in measured(sandbox, hub)} == {"pass"}
    assert hub.asked == []
