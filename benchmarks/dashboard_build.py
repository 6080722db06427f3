"""What building the site costs: a full build of the million rows, and the next night on top of it.

Each build is a process of its own; CPU seconds are user and system time of that process, from the start of
the interpreter, and its peak memory is what the kernel says. The store is made by ``dashboard_store.py`` in
the work folder, once; the night that is added is its last one. Afterwards the site is looked at: number of
files, bytes, the largest JSON file under gzip (level 6), and what a first load of every top page moves: the
page, its styles and its modules, each under gzip.

Asked: full <= 15 CPU s, incremental <= 3 CPU s, no shard above 64 KiB gzipped, site <= 250 MB.

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
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dashboard_store import DAY, FIRST_NIGHT, Shape, generate

from torchgauge.clock import utc

SHARDS = ("cases", "series", "snapshots", "trends", "latest")
LIMITS = {"full CPU s": 15.0, "incremental CPU s": 3.0, "largest shard": 64 * 1024, "site bytes": 250e6}
_BUILD = """
import json, sys
from torchgauge.dashboard import build_site
print(json.dumps(vars(build_site(*sys.argv[1:])), default=str))
"""


@dataclass(frozen=True)
class Build:
    """One build: seconds of CPU and of wall time, peak memory in MiB, and why it was a full one."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    full_because: str
    load: float


def build(store: Path, site: Path) -> Build:
    """Build ``site`` in a process of its own."""
    load, began = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(store), str(site)],
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    if status:
        raise SystemExit(f"the build failed with status {status}")
    return Build(
        cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
        wall_s=round(wall, 2),
        peak_mib=round(usage.ru_maxrss / 1024, 1),
        full_because=json.loads(told)["full_because"],
        load=round(load, 2),
    )


def measure(work: Path, shape: Shape, repeat: int) -> dict[str, Any]:
    """Full and incremental builds, ``repeat`` times each, and the site that they leave."""
    store, before = _stores(work, shape)
    site, base = work / "site", work / "base"
    found: dict[str, Any] = {"shape": asdict(shape), "rows": shape.rows, "full": [], "incremental": []}
    for _ in range(repeat):
        shutil.rmtree(site, ignore_errors=True)
        found["full"].append(asdict(build(store, site)))
    full = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    shutil.rmtree(base, ignore_errors=True)
    build(before, base)
    for _ in range(repeat):
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(base, site, copy_function=os.link)
        found["incremental"].append(asdict(build(store, site)))
    same = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    if reason := found["incremental"][-1]["full_because"]:
        raise SystemExit(f"the incremental build was a full one: {reason}")
    if differing := sorted(str(name) for name in same.keys() | full if same.get(name) != full.get(name)):
        raise SystemExit(f"incremental and full differ in {len(differing)} files, such as {differing[:5]}")
    return found | look(site)


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


def _stores(work: Path, shape: Shape) -> tuple[Path, Path]:
    """The store, and the same without its last night; made where they are not there."""
    if not (work / "planted.json").is_file():
        generate(work, shape)
    if json.loads((work / "planted.json").read_text())["shape"] != asdict(shape):
        raise SystemExit(f"{work} holds a store of another shape: name an empty folder")
    before = work / "before"
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(work / "store", before, copy_function=os.link)
    night = f"{utc(FIRST_NIGHT + (shape.nights - 1) * DAY):%Y%m%d}T"
    for path in [*(before / "tables").glob(f"*/{night}*"), *(before / "runs").glob(f"{night}*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return work / "store", before


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
