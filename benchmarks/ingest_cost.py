"""What the worst result sets cost at the door: CPU seconds for each MB and peak memory of a fresh process.

Every set is built for one weakness (facts, texts, nesting, samples, rows, containers), sealed with right
hashes and checksums, and handed to ``import_sets``, as ``torchgauge ci collect`` does, by a process of its
own. A MB is 10^6 bytes of what lies in the artifact, unpacked; of a zip that is refused by its list of
contents, packed. CPU is that of the import, without the start of the interpreter and its modules, and less
what a set of one case takes (``start``). Asked are 2 s for each MB and 400 MB. ``--only NAME`` builds one
set; ``--out FILE`` writes the table as Markdown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "workflows"))

from campaign_sets import import_sets
from child_run import run_child
from ci_ingest import artifact, journal

from torchgauge.records import digest
from torchgauge.results.journal_record import split_line
from torchgauge.results.store import RunFolder, Store
from torchgauge.workflows.campaign import CampaignPlan, campaign_json, read_campaign
from torchgauge.workflows.ingest.validator import Expected

MB = 1e6
CPU_PER_MB, PEAK_MB = 2.0, 400.0
"""What is asked."""
Row = dict[str, Any]
Files = dict[str, bytes]
Edit = Callable[[Row, int], object]
JOURNAL, PLAN, MANIFEST = "journal.jsonl", "plan.json", "manifest.json"


class Base:
    """An honest set of ``count`` cases, to be spoilt."""

    def __init__(self, folder: Path, shape: str, count: int) -> None:
        run: RunFolder = journal(folder / "store", shape, count)
        path, expected, _ = artifact(run, folder)
        self.folder = folder
        self.campaign: CampaignPlan = expected.campaign
        with zipfile.ZipFile(path) as archive:
            self.files: Files = {name: archive.read(name) for name in archive.namelist()}

    def lines(self) -> Iterator[tuple[str, Row]]:
        """Kind and record of every line of the journal."""
        for line in self.files[JOURNAL].splitlines(keepends=True):
            parts = split_line(line)
            assert parts is not None
            yield parts[1].decode(), json.loads(parts[2])

    def rows(self, edit: Edit, most: int = 10**9) -> Files:
        """The set with its rows as ``edit`` leaves them, until the journal has ``most`` bytes."""
        written, size = [], 0
        for number, (kind, record) in enumerate(self.lines()):
            if kind == "result" and size < most:
                edit(record, number)
            body = json.dumps(record, separators=(",", ":")).encode()
            written.append((kind, body))
            size += len(body)
        return self.with_journal(written)

    def before_rows(self, more: list[tuple[str, bytes]]) -> Files:
        """The set with ``more`` lines behind the first one."""
        first, *others = [(k, json.dumps(r, separators=(",", ":")).encode()) for k, r in self.lines()]
        return self.with_journal([first, *more, *others])

    def with_journal(self, lines: list[tuple[str, bytes]]) -> Files:
        """The set with a journal of ``lines``, sealed."""
        found = b"".join(line(number, kind, body) for number, (kind, body) in enumerate(lines, start=1))
        return self.sealed({**self.files, JOURNAL: found})

    def with_plan(self, plan: bytes) -> Files:
        """The set with another plan, sealed."""
        return self.sealed({**self.files, PLAN: plan})

    def sealed(self, files: Files) -> Files:
        """``files`` with a manifest that fits them."""
        manifest = json.loads(files[MANIFEST])
        manifest["files"] = [
            {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for name, data in sorted(files.items())
            if name != MANIFEST
        ]
        return {**files, MANIFEST: json.dumps(manifest).encode()}


def line(number: int, kind: str, body: bytes) -> bytes:
    """A line of a journal with a right checksum, whatever its body."""
    crc = zlib.crc32(body, zlib.crc32(b"%d:%s:" % (number, kind.encode())))
    return b'{"n":%d,"kind":"%s","crc":"%08x","data":%s}\n' % (number, kind.encode(), crc, body)


def compact_samples(row: Row, number: int) -> None:
    """Two thousand samples of two bytes that drift, so that every lag of their autocorrelation counts."""
    for place, (one, summary) in enumerate(zip(row["measurements"], row["summaries"], strict=True)):
        samples = [1 + i // (200 + place + number % 50) for i in range(2000)]
        one.update(samples=samples, blocks=[])
        ordered = sorted(samples)
        summary.update(n=2000, median=(ordered[999] + ordered[1000]) / 2, low=None, high=None)


def texts(char: str) -> Edit:
    """Fills the free texts of a row as far as a line may go."""
    bytes_each = (len(json.dumps(char)) - 2) / len(char)
    text = (char * 65_000)[: min(65_000, int(250_000 / bytes_each))]
    return lambda row, _: row.update(reason=text, log_excerpt=text, teardown=text, exit=text)


def kilobytes(row: Row, number: int) -> None:
    """A log as failing checks have it."""
    row["log_excerpt"] = f"{number:08d} " + "the quick brown fox " * 148


def put_right(row: Row, number: int) -> None:
    """The same, in a row that says something else than we do."""
    kilobytes(row, number)
    row["expected"] = "error"


def failing(row: Row, number: int) -> None:
    """A row with little in it."""
    row.update(status="error", phase="check", reason=str(number), facts=[], log="", exit="", reproduce="")
    row["reproduce"] = f"torchgauge repro {row['case_id']}"


def facts(count: int) -> list[tuple[str, bytes]]:
    """Environments of ``count`` short facts each, the most of them that a set may have."""
    pairs = ",".join(f'["{i:x}",0]' for i in sorted(range(count), key=lambda i: f"{i:x}"))
    found = []
    for number in range(63):
        body = f'{{"device":"fake","identity":[["!",{number}],{pairs}],"conditions":[],"notes":[]}}'
        found.append(("environment", body.encode()))
    return found


def conditions(count: int) -> list[tuple[str, bytes]]:
    """The shortest conditions there are."""
    body = '{"device":"fake","identity":[],"conditions":[' + ",".join(['["",0]'] * count) + '],"notes":[]}'
    return [("environment", body.encode())] * 63


def notes(count: int) -> list[tuple[str, bytes]]:
    """Lines that say nothing."""
    return [("note", b'{"text":"","at":1780000001.0}')] * count


def nested(levels: int) -> bytes:
    """Lists within lists."""
    return b"[" * levels + b"]" * levels


def recipe(base: Base, text: bytes) -> Files:
    """The plan with ``text`` as the recipe of its first group, and a journal that belongs to it."""
    plan = base.files[PLAN].replace(b'"recipe": {}', b'"recipe": {"a": ' + text + b"}", 1)
    (_, stamp), *others = base.lines()
    with suppress(RecursionError):
        stamp["digest"] = digest(json.loads(plan)["groups"])
    lines = [("plan", stamp), *others]
    written = [(kind, json.dumps(record, separators=(",", ":")).encode()) for kind, record in lines]
    return base.sealed({**base.with_journal(written), PLAN: plan})


def padded(base: Base, piece: bytes, size: int) -> Files:
    """The plan with a command of ``size`` bytes, made of ``piece``."""
    command = b",".join([piece] * (size // (len(piece) + 1)))
    return base.with_plan(base.files[PLAN].replace(b'"command": [', b'"command": [' + command + b",", 1))


SETS: dict[str, tuple[str, int, Callable[[Base], Files]]] = {
    "start: one honest case": ("checks", 1, lambda b: b.files),
    "honest rows of models": ("models", 2000, lambda b: b.files),
    "honest rows of checks": ("checks", 20_000, lambda b: b.files),
    "many facts in each environment": ("checks", 1, lambda b: b.before_rows(facts(18_000))),
    "many conditions": ("checks", 1, lambda b: b.before_rows(conditions(35_000))),
    "facts above the limit": ("checks", 1, lambda b: b.before_rows(facts(100_000))),
    "20,000 notes": ("checks", 1, lambda b: b.before_rows(notes(19_990))),
    "more lines than allowed": ("checks", 1, lambda b: b.before_rows(notes(200_000))),
    "many small rows": ("checks", 20_000, lambda b: b.rows(failing)),
    "a journal of 80 MiB": ("checks", 20_800, lambda b: b.rows(kilobytes, 80 << 20)),
    "the same, all rows put right": ("checks", 20_600, lambda b: b.rows(put_right, 80 << 20)),
    "a journal above the limit": ("checks", 22_000, lambda b: b.rows(kilobytes)),
    "samples of two bytes that drift": ("models", 400, lambda b: b.rows(compact_samples)),
    "long texts": ("checks", 300, lambda b: b.rows(texts("a"))),
    "long texts of escapes": ("checks", 75, lambda b: b.rows(texts("\n"))),
    "long texts of foreign letters": ("checks", 40, lambda b: b.rows(texts("\u3042"))),
    "long texts of marks out of order": ("checks", 40, lambda b: b.rows(texts("\u0301\u0316"))),
    "a plan of lists in a recipe": ("checks", 1, lambda b: recipe(b, b"[" + b"[]," * 5_000_000 + b"0]")),
    "a recipe just allowed": ("checks", 1, lambda b: recipe(b, b"[" + b"[]," * 340_000 + b"0]")),
    "a plan of empty words": ("checks", 1, lambda b: padded(b, b'""', 16_000_000)),
    "a plan of backslashes": ("checks", 1, lambda b: padded(b, b'"' + b"\\\\" * 30_000 + b'"', 16_000_000)),
    "a plan above the limit": ("checks", 1, lambda b: padded(b, b'"aaaaaaa"', 20_000_000)),
    "nesting in a recipe": ("checks", 1, lambda b: recipe(b, nested(400_000))),
    "nesting in a row": ("checks", 1, lambda b: b.before_rows([("result", nested(400_000))])),
}


def packed(files: Files, path: Path) -> Path:
    """``files`` as a zip at ``path``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def crowded(folder: Path, base: Base) -> Path:
    """A zip with sixty thousand files beside those of a set."""
    path = packed(base.files, folder / "crowded.zip")
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(60_000):
            archive.writestr(f"{number}", b"")
    return path


def bomb(folder: Path, base: Base) -> Path:
    """A journal of 80 MiB that packs two hundred fold."""
    return packed({**base.files, JOURNAL: b" " * (80 << 20)}, folder / "bomb.zip")


def swarm(folder: Path, _: Base) -> Path:
    """A folder of twenty thousand files."""
    path = folder / "swarm"
    path.mkdir()
    for number in range(20_000):
        (path / str(number)).write_bytes(b"")
    return path


CONTAINERS = {"60,000 files in a zip": crowded, "a bomb": bomb, "20,000 files in a folder": swarm}


def peak_kib() -> int:
    """The most memory that this process had; getrusage would count that of the one that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def child(path: Path, campaign: Path, store: Path) -> None:
    """Import the set at ``path`` and print what that took."""
    expected = Expected(read_campaign(campaign), time.time())
    begun = time.process_time()
    taken, refused = import_sets(Store.open(store, create=True), [path], expected)
    said = {
        "cpu_s": time.process_time() - begun,
        "peak_mb": peak_kib() * 1024 / MB,
        "answer": "taken" if taken else f"refused: {refused[0].reason.value}",
    }
    print(json.dumps(said))


def cost(path: Path, campaign: CampaignPlan, folder: Path) -> dict[str, Any]:
    """What a fresh process needs for the set at ``path``."""
    file = folder / "campaign.json"
    file.write_text(campaign_json(campaign))
    words = [sys.executable, __file__, "--child", str(path), str(file), str(folder / "ingested")]
    return run_child(words, json.loads).results


def figures(name: str) -> dict[str, Any]:
    """The cost of the set called ``name``."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        if name in CONTAINERS:
            base = Base(folder, "checks", 1)
            path = CONTAINERS[name](folder, base)
            size = path.stat().st_size if path.is_file() else 20_000 * 100
        else:
            shape, count, make = SETS[name]
            base = Base(folder, shape, count)
            files = make(base)
            path, size = folder / "attack", sum(map(len, files.values()))
            path.mkdir()
            for file, data in files.items():
                (path / file).write_bytes(data)
        found = cost(path, base.campaign, folder)
    return {"set": name, "mb": size / MB, **found}


def table(found: list[dict[str, Any]]) -> str:
    """``found`` as Markdown."""
    lines = ["| set | MB | answer | CPU s | CPU s for each MB | peak, MB |", "|---|---:|---|---:|---:|---:|"]
    for each in found:
        rate = max(0.0, each["cpu_s"] - found[0]["cpu_s"]) / each["mb"]
        numbers = f"{each['cpu_s']:.2f} | {rate:.2f} | {each['peak_mb']:.0f}"
        lines.append(f"| {each['set']} | {each['mb']:.1f} | {each['answer']} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print a line for each set, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*SETS, *CONTAINERS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=3, type=Path, metavar=("SET", "CAMPAIGN", "STORE"))
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    found = []
    first, *others = [*SETS, *CONTAINERS]
    for name in [first, given.only] if given.only else [first, *others]:
        found.append(figures(name))
        print(json.dumps(found[-1]), flush=True)
    text = table(found)
    if given.out:
        given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
