"""Building the site: read, check, write aside, then swap; readers see the old site or the new one.

The pages come from the store's tables only. The same store and the same ``now`` give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from torchgauge import __version__
from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.dashboard.board import Board, read_board
from torchgauge.dashboard.downloads import FILES, downloads
from torchgauge.dashboard.pages.compatibility import compatibility_page
from torchgauge.dashboard.pages.model import model_pages
from torchgauge.dashboard.pages.overview import overview_page
from torchgauge.dashboard.pages.performance import performance_page
from torchgauge.dashboard.pages.runs import environment_sections, run_sections
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.tally import check_board
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.harness.metrics import METRICS
from torchgauge.results import units
from torchgauge.results.frames import STALE_AFTER_S
from torchgauge.results.store import Store

MANIFEST = "site.json"
"""The file that marks a folder as a site of ours, which may therefore be replaced."""

STATIC = ("style.css", "matrix.js", "copy.js")
"""The site's own style and modules."""


@dataclass(frozen=True)
class SiteReport:
    """What was built; ``digest`` is a hash over all files but the manifest."""

    out: Path
    pages: int
    files: int
    bytes: int
    cases: int
    passed: int
    planned: int
    runs: int
    unfinished: tuple[str, ...]
    digest: str


def build_site(store_path: Path | str, out: Path | str, *, now: float | None = None) -> SiteReport:
    """Build the static site of the store at ``store_path`` in the folder ``out``.

    ``now`` is in seconds since the epoch and is what ages are counted from. Raises :class:`UsageError`
    where there is no store or ``out`` holds something else, :class:`DamagedJournalError` for a table that
    cannot be read, :class:`DashboardError` where rows do not sum to the plan, and
    :class:`InfrastructureError` for a failing disk. Whatever is raised, the site that was there remains.
    """
    target = Path(out).resolve()
    store = Store.open(store_path)
    _check_target(target, store.path.resolve())
    at = SYSTEM_CLOCK.now() if now is None else now
    files, report = _render(store, target, at)
    try:
        _publish(files, target)
    except OSError as error:
        raise InfrastructureError(
            f"the site cannot be written to {target}: {error.strerror or error}",
            hint="free disk space or mend the permissions; the site that was there is untouched",
        ) from error
    return report


def _render(store: Store, target: Path, now: float) -> tuple[dict[str, bytes], SiteReport]:
    board = read_board(store, now)
    check_board(board)
    runs = run_sections(store, now)
    environments = environment_sections(store)
    overview = overview_page(board, runs)
    renderer = Renderer({"version": __version__, "generated": units.moment(now), "empty": not board.entries})
    pages = {
        "index.html": renderer.page("overview", "index.html", page=overview),
        "compatibility.html": renderer.page(
            "compatibility", "compatibility.html", page=compatibility_page(board)
        ),
        "performance.html": renderer.page("performance", "performance.html", tables=performance_page(board)),
        "runs.html": renderer.page("runs", "runs.html", runs=runs, environments=environments),
        "about.html": renderer.page(
            "about", "about.html", metrics=METRICS, downloads=FILES, stale_after=units.age(STALE_AFTER_S)
        ),
    }
    known = frozenset(environment.id for environment in environments)
    for model in model_pages(board, known):
        pages[model.file] = renderer.page("model", model.file, page=model)
    files = {name: text.encode() for name, text in {**pages, **downloads(board, now)}.items()}
    files |= {f"static/{name}": _static(name) for name in STATIC}
    files[".nojekyll"] = b""
    digest = _digest(files)
    files[MANIFEST] = _manifest(files, now, digest)
    report = SiteReport(
        out=target,
        pages=len(pages),
        files=len(files),
        bytes=sum(map(len, files.values())),
        cases=len(board.entries),
        passed=_passed(board),
        planned=board.planned - board.superseded,
        runs=len(runs),
        unfinished=tuple(run.run_id for run in overview.unfinished),
        digest=digest,
    )
    return files, report


def _passed(board: Board) -> int:
    return sum(entry.fully_passed for entry in board.entries.values())


def _static(name: str) -> bytes:
    return resources.files("torchgauge.dashboard").joinpath("static", name).read_bytes()


def _digest(files: dict[str, bytes]) -> str:
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return found.hexdigest()


def _manifest(files: dict[str, bytes], now: float, digest: str) -> bytes:
    listed = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    data = {"generator": f"torchgauge {__version__}", "generated_at": now, "digest": digest, "files": listed}
    return json.dumps(data, indent=1).encode() + b"\n"


def _check_target(target: Path, store: Path) -> None:
    if target == store or target in store.parents:
        raise UsageError(f"{target} holds the store", hint="name a folder outside it for the site")
    if not target.exists():
        return
    if not target.is_dir() or (any(target.iterdir()) and not (target / MANIFEST).is_file()):
        raise UsageError(
            f"{target} exists and is no site of torchgauge, and building would replace it",
            hint="name a new folder, or empty this one",
        )


def _publish(files: dict[str, bytes], target: Path) -> None:
    """Write ``files`` beside ``target``, then swap; on failure what was there stands again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    aside = target.with_name(f".{target.name}.{token}.new")
    old = target.with_name(f".{target.name}.{token}.old")
    try:
        for name, data in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _swap(aside, target, old)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)


def _swap(aside: Path, target: Path, old: Path) -> None:
    """Put ``aside`` in the place of ``target``, which becomes ``old``, or leave ``target`` where it is."""
    if not target.exists():
        aside.rename(target)
        return
    target.rename(old)
    try:
        aside.rename(target)
    except BaseException:
        old.rename(target)
        raise
