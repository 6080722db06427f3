"""Stores in an object store, against a real server of S3's protocol (moto's) in a process of its own."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs as made
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.dashboard.site import build_site
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.dataset import read_table
from torchgauge.results.fsck import check_store
from torchgauge.results.publication import publish_again
from torchgauge.results.remote.object_files import ObjectFiles
from torchgauge.results.remote.pull import every_byte
from torchgauge.results.remote.push import push
from torchgauge.results.remote.store_url import is_url, read_url
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

SERVER = Path(__file__).with_name("s3_server.py")
FIRST, SECOND = "20260528T040000Z-00000001", "20260529T040000Z-00000002"


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A server and its address."""
    command = [sys.executable, str(SERVER), *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    assert select.select([server.stdout], [], [], 120)[0], "the server did not start"
    return server, server.stdout.readline().strip()


def stopped(server: subprocess.Popen[str]) -> None:
    """End it."""
    server.kill()
    server.wait()
    assert server.stdout is not None
    server.stdout.close()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a server that takes any credentials and has the bucket ``lab``."""
    server, address = started("lab")
    yield address
    stopped(server)


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of a test, and a cache of its own."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def url(endpoint: str, tmp_path: Path) -> str:
    """A prefix of its own."""
    return f"s3://lab/{tmp_path.name}?endpoint_override={endpoint}&scheme=http"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two finished runs."""
    store = Store.open(tmp_path / "store", create=True)
    for number, name in enumerate((FIRST, SECOND)):
        of = made.result(made.case(), 1e-3 * (number + 1))
        made.run(store, name, [of], at=made.BEGIN + number * made.DAY)
        (store.run(name).logs / "noop.log").write_text("fine\n")
    return store


def asked(*arguments: str) -> tuple[int, str]:
    """Exit code and words of a command."""
    done = CliRunner().invoke(cli, list(arguments))
    if isinstance(done.exception, (UsageError, InfrastructureError)):
        return done.exception.exit_code, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def all_rows(store: Store) -> dict[str, list[object]]:
    """Every row of every table."""
    return {name: read_table(store, name).to_pylist() for name in TABLES}


def test_every_reader_reads_the_remote_store_as_the_local_one(store: Store, url: str, tmp_path: Path) -> None:
    """Query, list, fsck, trend and the site; again after compaction there, and copied back."""
    local = str(store.path)
    assert asked("results", "push", url, "--store", local)[0] == 0
    for _ in range(2):
        for words in (
            ("results", "list", "--json"),
            ("results", "query", "--table", "summaries", "--json"),
            ("results", "fsck", "--json"),
            ("results", "trend", "--json", "--no-keep"),
            ("results", "show", SECOND, "--json"),
        ):
            assert asked(*words, "--store", url) == asked(*words, "--store", local), words
        assert all_rows(Store.open(url)) == all_rows(store)
        build_site(url, tmp_path / "there", now=made.BEGIN + 2 * made.DAY)
        build_site(local, tmp_path / "here", now=made.BEGIN + 2 * made.DAY)
        pages = sorted(path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*.html"))
        assert pages
        assert [(tmp_path / "there" / page).read_bytes() for page in pages] == [
            (tmp_path / "here" / page).read_bytes() for page in pages
        ]
        assert compact(store)[0].done in ("compacted", "nothing to do")
        assert asked("results", "push", url, "--store", local) == (0, _said(url, store))
    code, _ = asked("results", "pull", url, str(tmp_path / "back"))
    assert code == 0
    assert all_rows(Store.open(tmp_path / "back")) == all_rows(store)
    assert not [name for name in ObjectFiles(read_url(url)).listed() if name.startswith("tables/")]


def _said(url: str, store: Store) -> str:
    months = 0 if next(store.compacted.manifests()).path in _before.get(url, ()) else 1
    _before[url] = [month.path for month in store.compacted.manifests()]
    return f"0 runs and {'1 month' if months else '0 months'} copied, 2 already at the URL\n"


_before: dict[str, list[str]] = {}


def test_what_did_not_change_is_fetched_once(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look fetches nothing, or what is new; what was changed in the copy is fetched again."""
    push(store, url)
    copy = Store.open(url)
    fetched: list[str] = []
    get = ObjectFiles.get

    def count(self: ObjectFiles, name: str, to: Path) -> None:
        fetched.append(name)
        get(self, name, to)

    monkeypatch.setattr(ObjectFiles, "get", count)
    Store.open(url)
    assert fetched == []
    publish_again(copy, FIRST)
    assert Store.open(url).damage(FIRST) == ""
    assert {name for name in fetched if FIRST not in name} == set()
    assert f"runs/{FIRST}/seal.json" in fetched
    fetched.clear()
    third = "20260530T040000Z-00000003"
    made.run(store, third, [made.result(made.case())], at=made.BEGIN + 3 * made.DAY)
    push(store, url)
    assert Store.open(url).published() == (FIRST, SECOND, third)
    assert fetched
    assert all(third in name for name in fetched)


def test_a_run_that_is_half_uploaded_is_not_seen_and_is_made_whole(store: Store, url: str) -> None:
    """An upload that was killed before each of its files: the run is left out, named, and pushed again."""
    put, seen = ObjectFiles.put, []
    for number in range(1, 7):

        def cut_off(self: ObjectFiles, path: Path, name: str, number: int = number) -> None:
            seen.append(name)
            if len([each for each in seen if SECOND in each]) == number:
                raise KeyboardInterrupt
            put(self, path, name)

        seen.clear()
        prefix = url.replace("?", f"-{number}?")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ObjectFiles, "put", cut_off)
            with pytest.raises(KeyboardInterrupt):
                push(store, prefix)
        there = Store.open(prefix)
        assert there.published() == (FIRST,)
        assert [SECOND in each for each in there.unfinished] == ([True] if number > 1 else [])
        assert push(store, prefix).copied == [SECOND]
        assert all_rows(Store.open(prefix)) == all_rows(store)


def test_two_writers_lose_nothing(store: Store, url: str, tmp_path: Path) -> None:
    """At once, as two processes with runs of their own, some of them in a compacted month."""
    other = Store.open(tmp_path / "other", create=True)
    names = [f"20260628T04000{n}Z-0000000{n}" for n in range(3)]
    for name in names:
        made.run(other, name, [made.result(made.case("conv"))], at=made.BEGIN + 31 * made.DAY)
    compact(other)
    code = "import sys; from torchgauge.cli.main import main; main()"
    commands = [
        [sys.executable, "-c", code, "results", "push", url, "--store", str(each.path)]
        for each in (store, other)
    ]
    writers = [subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for each in commands]
    for writer in writers:
        _, said = writer.communicate(timeout=120)
        assert writer.returncode == 0, said
    there = Store.open(url)
    assert there.published() == (FIRST, SECOND, *names)
    with every_byte(url) as checked:
        assert check_store(checked).findings == ()


def test_another_run_of_the_same_name_is_refused(store: Store, url: str, tmp_path: Path) -> None:
    """Nothing of the one that is there is replaced; the same run that was published again replaces itself."""
    push(store, url)
    other = Store.open(tmp_path / "other", create=True)
    made.run(other, FIRST, [made.result(made.case("conv"))])
    with pytest.raises(UsageError, match="already has a different run with the id"):
        push(other, url)
    assert all_rows(Store.open(url)) == all_rows(store)
    (store.path / "runs" / FIRST / "run.json").write_text(
        (store.path / "runs" / FIRST / "run.json").read_text() + " "
    )
    publish_again(store, FIRST)
    assert push(store, url).already == [FIRST, SECOND]


def test_what_is_damaged_or_not_finished_stays_here(store: Store, url: str) -> None:
    """With a reason, and the command ends with 3."""
    path = store.table_path("summaries", FIRST)
    path.write_bytes(path.read_bytes()[:-10])
    made.run(store, "20260530T040000Z-00000003", [made.result(made.case())], publish=False)
    report = push(store, url)
    assert report.copied == [SECOND]
    assert "the run is damaged: tables/summaries" in report.left[FIRST]
    assert "not published" in report.left["20260530T040000Z-00000003"]
    assert asked("results", "push", url, "--store", str(store.path))[0] == 3


def test_damage_there_is_found(store: Store, url: str) -> None:
    """``results fsck`` fetches every byte, and names the file."""
    push(store, url)
    files = ObjectFiles(read_url(url))
    name = f"tables/results/{FIRST}.parquet"
    whole = (store.path / name).read_bytes()
    (store.path / "harmed").write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    files.put(store.path / "harmed", name)
    code, said = asked("results", "fsck", "--store", url)
    assert code == 3
    assert f"damaged  {name}" in said


def test_only_what_reads_takes_an_address(url: str) -> None:
    """Whoever measures or mends is told how to write there."""
    for words in (
        ("results", "publish", FIRST, "--store", url),
        ("results", "compact", "--store", url),
        ("run", "toy", "--device", "fake", "--store", url),
    ):
        code, said = asked(*words)
        assert code == 2, words
        assert "is read-only" in said
        assert "torchgauge results push URL --store DIR" in said


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda url: url.replace("/lab/", "/nobody/"), 2, "bucket nobody does not exist"),
        (lambda url: url, 2, "is not a store"),
        (lambda url: url.replace("s3://", "s3://me:secret@"), 2, "must not contain credentials"),
        (lambda url: url + "&speed=high", 2, "speed is not an option"),
        (lambda url: "s3://X/y", 2, "names no bucket"),
    ],
)
def test_a_wrong_address_is_told(url: str, change: Callable[[str], str], code: int, words: str) -> None:
    """Each mistake by its name, and no secret in the words."""
    found, said = asked("results", "list", "--store", change(url))
    assert (found, words in said) == (code, True), said
    assert "secret" not in said.replace("AWS_SECRET_ACCESS_KEY", "")


def test_wrong_credentials_are_told() -> None:
    """By a server that knows its accounts."""
    server, address = started("lab", "--accounts")
    try:
        url = f"s3://lab/x?endpoint_override={address}&scheme=http"
        code, said = asked("results", "list", "--store", url)
        assert code == 2, said
        assert "refuses these credentials" in said
        assert "a secret" not in said
    finally:
        stopped(server)


def test_a_server_that_does_not_answer_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not there at once, one that is silent after the time that a request may take."""
    monkeypatch.setattr("torchgauge.results.remote.object_files._REQUEST_S", 2.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        url = f"s3://lab/x?endpoint_override=127.0.0.1:{port}&scheme=http"
        with pytest.raises(InfrastructureError, match="does not respond"):
            Store.open(url)
    before = time.monotonic()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"s3://lab/x?endpoint_override=127.0.0.1:{silent.getsockname()[1]}&scheme=http"
        with pytest.raises(InfrastructureError, match="does not respond"):
            push(store, url)
    assert time.monotonic() - before < PATIENCE_S


def test_where_the_server_is_comes_from_the_variables_of_aws() -> None:
    """As every tool of AWS takes them; what the address says comes first."""
    said = {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_DEFAULT_REGION": "eu-west-1"}
    found = read_url("s3://lab/a/b", said)
    assert (found.endpoint, found.scheme, found.region) == ("localhost:9000", "http", "eu-west-1")
    assert read_url("s3://lab?endpoint_override=https://other", said).endpoint == "other"
    assert str(read_url("s3:/lab/a", {})) == "s3://lab/a"
    assert [is_url(text) for text in ("s3://lab", "s3:/lab/a", "./s3", "store", "s3")] == [
        True,
        True,
        *[False] * 3,
    ]


def test_a_copy_that_is_no_copy_is_not_written_over(store: Store, url: str, tmp_path: Path) -> None:
    """Nor does an object lead out of the folder of the copy."""
    push(store, url)
    shutil.copytree(store.path, tmp_path / "mine")
    code, said = asked("results", "pull", url, str(tmp_path / "mine"))
    assert code == 2
    assert "is not a copy of a store" in said


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://bucket/p?endpoint_override=http://u:secret@h:9", "must not contain credentials"),
        ("s3://bucket/p?endpoint_override=h:9&scheme=ftp", "'ftp' is not a valid scheme"),
    ],
)
def test_a_server_that_is_none_is_refused_without_its_secrets(address: str, words: str) -> None:
    """They would stand in every later message."""
    with pytest.raises(UsageError, match=words) as told:
        read_url(address, {})
    assert "secret" not in told.value.message


def test_an_object_that_goes_while_it_is_read_is_no_full_disk(url: str, tmp_path: Path) -> None:
    """Whoever reads looks again; nothing half is left."""
    files = ObjectFiles(read_url(url))
    with pytest.raises(FileNotFoundError):
        files.get("runs/none/seal.json", tmp_path / "seal.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").write_text("a file where a folder is needed")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        files.get("runs/none/seal.json", tmp_path / "a" / "seal.json")
