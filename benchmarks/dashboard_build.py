"""What building the site of the million rows costs.

Each build is a process of its own; CPU seconds are user and system time of that process, from the start of
the interpreter, and its peak memory is what the kernel says. The store is made by ``dashboard_store.py`` in
the work folder, once. The second and later builds replace the site of the one before. Afterwards the site is
looked at: number of files, bytes, the largest JSON file under gzip (level 6), and what a first load of every
top page moves: the page, its styles and its modules, each under gzip.

Asked: <= 15 CPU s, no shard above 64 KiB gzipped, site <= 255 MB with plotly.js.

::

    python benchmarks/dashboard_build.py WORK [--repeat 3] [--json OUT]
    python benchmarks/dashboard_build.py WORK --nights 6 --models 10      a small one, to try it

The CPU seconds of a loaded machine are higher than those of an idle one: the load is reported beside them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from child_run import run_child
from dashboard_store import Shape, generate, morning_after

SHARDS = ("cases", "series", "snapshots", "trends", "latest")
LIMITS = {"CPU s": 15.0, "largest shard": 64 * 1024, "site bytes": 255e6}
_BUILD = """
import sys
from torchgauge.dashboard import build_site
print(build_site(*sys.argv[1:3], now=float(sys.argv[3])).digest)
"""


@dataclass(frozen=True)
class Build:
    """One build: seconds of CPU and of wall time, peak memory in MiB, and the digest of the site."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    digest: str
    load: float


def build(store: Path, site: Path) -> Build:
    """Build ``site`` in a process of its own."""
    load = os.getloadavg()[0]

    def digest_of(text: str) -> str:
        (digest,) = text.split()
        return digest

    ended = run_child(
        [sys.executable, "-c", _BUILD, str(store), str(site), repr(morning_after(store))],
        digest_of,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return Build(
        cpu_s=round(ended.cpu_s, 2),
        wall_s=round(ended.seconds, 2),
        peak_mib=round(ended.used.ru_maxrss / 1024, 1),
        digest=ended.results,
        load=round(load, 2),
    )


def measure(work: Path, shape: Shape, repeat: int) -> dict[str, Any]:
    """``repeat`` builds, and the site that they leave."""
    if not (work / "planted.json").is_file():
        generate(work, shape)
    if json.loads((work / "planted.json").read_text())["shape"] != asdict(shape):
        raise SystemExit(f"{work} holds a store of another shape: name an empty folder")
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    builds = [build(work / "store", site) for _ in range(repeat)]
    if len({each.digest for each in builds}) > 1:
        raise SystemExit("the same store gave different sites")
    return {
        "shape": asdict(shape),
        "rows": shape.rows,
        "builds": [asdict(each) for each in builds],
        **look(site),
    }


def look(site: Path) -> dict[str, Any]:
    """Number, size and weight of the files of ``site``."""
    sizes = {str(path.relative_to(site)): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    shards = {
        name: _gzipped(site / name)
        for name in sizes
        if name.endswith(".json") and (name.split("/")[0] in SHARDS or "/" not in name)
    }
    largest = max(shards, key=lambda name: shards[name])
    folders: dict[str, int] = {}
    for name, size in sizes.items():
        head = name.split("/")[0] if "/" in name else "top pages"
        folders[head] = folders.get(head, 0) + size
    return {
        "files": len(sizes),
        "site bytes": sum(sizes.values()),
        "bytes by folder": dict(sorted(folders.items(), key=lambda item: -item[1])),
        "largest shard": {"name": largest, "gzipped": shards[largest]},
        "first load, gzipped": {path.name: _first_load(path) for path in sorted(site.glob("*.html"))},
    }


def _first_load(page: Path) -> dict[str, int]:
    """Bytes and requests of a page with its styles and modules, modules imported by modules included."""
    todo = [
        page.parent / name for name in re.findall(r'(?:src|href)="([^":#]+\.(?:css|js))"', page.read_text())
    ]
    parts: dict[Path, int] = {page: _gzipped(page)}
    while todo:
        path = todo.pop().resolve()
        if path not in parts and path.is_file():
            parts[path] = _gzipped(path)
            if path.suffix == ".js":
                todo += [path.parent / name for name in re.findall(r'from "(\./[^"]+)"', path.read_text())]
    return {"bytes": sum(parts.values()), "requests": len(parts)}


def _gzipped(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 6))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    for name, default in asdict(Shape()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = vars(parser.parse_args())
    work, repeat, out = given.pop("work"), given.pop("repeat"), given.pop("json")
    text = json.dumps(measure(work, Shape(**given), repeat), indent=1)
    print(text)
    print("asked, at most:", json.dumps(LIMITS))
    if out:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
