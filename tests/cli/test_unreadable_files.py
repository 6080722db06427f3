"""A YAML file that cannot be read, wherever one is named: exit 2 and one message that names the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

UNREADABLE = {
    "nested": b"a: " + b"[" * 3000 + b"]" * 3000,
    "blocks": b"".join(b" " * level + b"a:\n" for level in range(3000)),
    "digits": b"version: " + b"9" * 10_000,
    "aliases": b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "key": b"? " + b"k" * 1_000_000 + b"\n: 1\n",
    "tab": b"a:\n\t- 1\n",
    "latin": b"a: \xe9\n",
    "nul": b"a: \x00\n",
}
READERS = {
    "plan": ("ci", "plan", "--config", "FILE"),
    "configuration of a pool": ("ci", "gate", "--pool", "cpu", "--config", "FILE"),
    "policy": ("gate", "latest", "--policy", "FILE", "--store", "STORE"),
    "named configurations": ("plan", "toy", "--device", "fake", "--config-file", "FILE"),
    "builds": ("bisect", "toy/noop", "--device", "fake", "--builds", "FILE", "--store", "STORE"),
    "claim": ("results", "claim", "FILE", "--store", "STORE"),
    "declarations": ("results", "scorecard", "--device", "fake", "--declared", "FILE", "--store", "STORE"),
    "any kind": ("validate", "FILE"),
}


@pytest.fixture(scope="module")
def unreadable(tmp_path_factory) -> Path:
    """A folder with a file of every kind that cannot be read."""
    folder = tmp_path_factory.mktemp("unreadable")
    for name, content in UNREADABLE.items():
        (folder / f"{name}.yaml").write_bytes(content)
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    return folder


@pytest.mark.parametrize("name", [*UNREADABLE, "folder", "pipe"])
def test_a_configuration_that_cannot_be_read_ends_with_two(process, unreadable, name) -> None:
    """Its name, what is wrong and what to try; a pipe without a writer is not waited for."""
    path = str(unreadable / f"{name}.yaml")
    done = process("ci", "plan", "--config", path)
    assert done.returncode == 2, done.stderr[-2000:]
    message, advice = done.stderr.splitlines()
    assert message.startswith(f"error: {path}")
    assert len(message) < 1000
    assert advice.startswith("  try: ")


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_cannot_be_read(process, store, unreadable, reader) -> None:
    """The reader of all YAML refuses; no verb has a way around it."""
    places = {"STORE": str(store)}
    for name in ("blocks", "pipe"):
        places["FILE"] = str(unreadable / f"{name}.yaml")
        done = process(*(places.get(word, word) for word in READERS[reader]))
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), (name, done.stderr[-2000:])
        assert done.stderr.count("error: ") == 1, done.stderr
        assert places["FILE"] in done.stderr
