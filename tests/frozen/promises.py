"""Records what torchgauge promises, as text to be compared; ``python tests/frozen/promises.py`` renews it.

The promises are those of the command line on three stores (exit code, JSON, numbers of its text), the numbers
of each page of their dashboards, the lines of mistakes in YAML, the journal of a run, and the public names.
Words are not among them: of a text only its numbers are kept, and the names of models, which tell where one
stands.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import inspect
import io
import json
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
MOMENTS = {
    "demo": 1_781_150_400.0,  # 2026-06-11 04:00 UTC
    "bringup": 1_795_838_400.0,  # 2026-11-28 04:00 UTC
    "forty_nights": 1_781_150_400.0,
}
"""The stores, and the moment at which commands read each, soon after its last run."""
NOW = MOMENTS["demo"]
"""The moment of all other commands."""
DIGITS = 9
"""Significant digits of a number in JSON: what another order of a sum changes is beyond them."""

MODELS = "resnet18|vit_tiny_patch16_224|efficientnet_b0|bert_base|distilgpt2|mlp|rnn|convnet"
NUMBER = re.compile(
    rf"(?P<model>\b(?:{MODELS})\b)"
    r"|(?<!\w)[A-Za-z_]\w*"  # a word, whatever digits it has
    r"|(?P<number>(?<![\w.)])[-+\u2212]?\d\w*(?:[.,:\-]\d\w*|(?<=e)[-+]\d+)*%?)"
    r"|(?P<inner>\d\w*(?:[.,:\-]\d\w*|(?<=e)[-+]\d+)*%?)"
)
FROM_OUTSIDE = ("GITHUB_", "TORCHGAUGE_", "CRCR_", "SLURM_", "RANK", "WORLD_SIZE")


def numbers_of(text: str) -> str:
    """Return the numbers of ``text`` and its names of models, in order."""
    rows = (match["model"] or match["number"] or match["inner"] for match in NUMBER.finditer(text))
    return " ".join(row for row in rows if row)


def lines_of(text: str) -> list[str]:
    """Return the numbers of each line that has one."""
    return [row for row in map(numbers_of, text.splitlines()) if re.search(r"\d", row)]


def plain(value: Any) -> Any:
    """Return a JSON value without words: of a text with spaces its numbers are kept; floats are rounded."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str) and re.search(r"\s", value):
        return f"words: {numbers_of(value)}".rstrip()
    return value


def json_lines(value: Any, indent: str = "") -> list[str]:
    """Return JSON with a line for each member, but for lists and objects that fit one line."""
    line = json.dumps(value)
    if len(line) + len(indent) <= 120 or not isinstance(value, dict | list) or not value:
        return [indent + line]
    named = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    rows = ["{" if isinstance(value, dict) else "["]
    for name, item in named:
        first, *others = json_lines(item, indent + " ")
        key = f"{json.dumps(name)}: " if name is not None else ""
        rows += [f"{indent} {key}{first.strip()}", *others]
    return [indent + rows[0], *rows[1:], indent + ("}" if isinstance(value, dict) else "]")]


def shown(text: str) -> list[str]:
    """Return what is kept of an output: JSON with all names, or the numbers of a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return lines_of(text)
    return json_lines(plain(value)) if isinstance(value, dict | list) else lines_of(text)


@contextlib.contextmanager
def fixed_surroundings(work: Path) -> Iterator[None]:
    """Fix the folder and the variables of all commands inside."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(FROM_OUTSIDE)}
    given = {
        "XDG_CACHE_HOME": str(work / "cache"),
        "TORCHGAUGE_LEASES": str(work / "leases"),
        "TORCHGAUGE_COMPILE_CACHE": "none",
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "TZ": "WEST12",  # twelve hours behind UTC: a local date would be another day
    }
    try:
        with mock.patch.dict(os.environ, {**kept, **given}, clear=True), contextlib.chdir(work):
            time.tzset()
            yield
    finally:
        time.tzset()


def run(words: list[str], moment: float = NOW) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command, run here at ``moment``."""
    from torchgauge.cli.main import run_command

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with (
        mock.patch("time.time", return_value=moment),
        mock.patch.dict(os.environ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = run_command(words)
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def neutral(text: str, work: Path) -> str:
    """Return ``text`` without the version of torchgauge, paths of this machine and its Python."""
    import torchgauge

    for value, name in (
        (str(work), "WORK"),
        (sys.executable, "PYTHON"),  # before the folder of the project, which may have it in .venv
        (sys.prefix, "PREFIX"),
        (str(HERE.parents[1]), "ROOT"),
        (torchgauge.__version__, "VERSION"),
    ):
        text = text.replace(value, name)
    return re.sub(rf"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(NOW))}-[0-9a-f]{{8}}", "NEW-RUN", text)


def prepare(work: Path) -> None:
    """Copy the stores, and publish all of their runs, since their tables are not committed."""
    for store in MOMENTS:
        shutil.copytree(HERE / "stores" / store, work / store)
        folders = [*(work / store).glob("runs/*"), *(work / store).glob("comparisons/*")]
        code, _, err = run(["results", "publish", *sorted(each.name for each in folders), "--store", store])
        assert code == 0, err
    shutil.copytree(work / "demo", work / "damaged")
    table = min((work / "damaged" / "tables" / "results").iterdir())
    table.write_bytes(table.read_bytes()[:-9])
    shutil.copytree(work / "forty_nights", work / "confirmed")
    shutil.copytree(HERE / "inputs", work, dirs_exist_ok=True)


def commands() -> list[tuple[str, str]]:
    """Return stores and commands of ``commands.txt``: a store, a command, and words of other forms of it."""
    rows = []
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            stores, command, *forms = (part.strip() for part in line.split(" | "))
            for store in MOMENTS if stores == "all" else stores.split():
                rows += [(store, f"{command} {form}".strip()) for form in ("", *forms)]
    return rows


def command_lines(work: Path, store: str) -> list[str]:
    """Return the promises of all commands on ``store``: exit code, output, numbers of messages, files."""
    lines = []
    for number, (_, command) in enumerate(row for row in commands() if row[0] == store):
        out = work / f"out-{store}-{number}"
        out.mkdir()
        words = [word.replace("STORE", store).replace("OUT", out.name) for word in shlex.split(command)]
        code, output, messages = run(words, MOMENTS[store])
        lines += ["", f"$ torchgauge {command}", f"exit {code}"]
        lines += shown(neutral(output, work).replace(out.name, "OUT"))
        lines += [f"stderr: {row}" for row in lines_of(neutral(messages, work).replace(out.name, "OUT"))]
        for file in sorted(path for path in out.rglob("*") if path.is_file()):
            lines.append(f"file {file.relative_to(out)}")
            if file.suffix in (".json", ".csv", ".md", ".xml", ".yaml", ".txt"):
                lines += shown(neutral(file.read_text(), work))
    return lines[1:]


class Page(HTMLParser):
    """Collects the text of a page, with a line for each row of a table and each other block."""

    INLINE = frozenset(
        ("a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "td", "th", "time")
    )
    HIDDEN = frozenset(("script", "style"))

    def __init__(self) -> None:
        """Start with no text."""
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line at a block, and keep the texts that a pointer or a reader of the screen meets."""
        self._hidden += tag in self.HIDDEN
        self.parts.append(" " if tag in self.INLINE else "\n")
        self.parts += [f" {text} " for name, text in attrs if name in ("title", "aria-label") and text]

    def handle_endtag(self, tag: str) -> None:
        """End the line of a block."""
        self._hidden -= tag in self.HIDDEN
        self.parts.append(" " if tag in self.INLINE else "\n")

    def handle_data(self, data: str) -> None:
        """Keep a text that is shown; its own line breaks are spaces."""
        if not self._hidden:
            self.parts.append(data.replace("\n", " "))


def page_lines(text: str) -> list[str]:
    """Return the numbers of a page, of a feed or of a picture."""
    page = Page()
    page.feed(text)
    page.close()
    return lines_of("".join(page.parts))


def site_lines(work: Path, store: str) -> list[str]:
    """Return the numbers of each page, feed, picture and table of a store's site, and of its charts."""
    site = work / f"site-{store}"
    code, output, _ = run(["dashboard", "build", store, "--out", site.name, "--json"], MOMENTS[store])
    lines = [
        "",
        f"= torchgauge dashboard build {store} --json",
        f"exit {code}",
        *shown(neutral(output, work)),
    ]
    for file in sorted(site.rglob("*")):
        name = file.relative_to(site).as_posix()
        if file.suffix in (".html", ".xml", ".svg"):
            rows = page_lines(neutral(file.read_text(), work))
        elif (
            file.is_file()
            and name.endswith((".csv", ".json"))
            and name.startswith(("data/latest.csv", "series/", "badge/"))
        ):
            rows = shown(file.read_text())
        elif name.endswith(".json") and name.startswith(("trends/", "latest/", "cases/")):
            # what scripts draw is long: that a file changed is shown, and not how
            rows = [hashlib.sha256("\n".join(shown(file.read_text())).encode()).hexdigest()]
        else:
            continue
        lines += ["", f"= {name}", *rows]
    return lines[1:]


def yaml_lines(work: Path) -> list[str]:
    """Return exit code and places of the mistakes of each file in ``mistakes.txt``."""
    lines = []
    folder = work / "mistakes"
    folder.mkdir()
    documents = re.split(r"^=== (\S+) \| (.+)\n", (HERE / "mistakes.txt").read_text(), flags=re.MULTILINE)[1:]
    for name, command, text in zip(*[iter(documents)] * 3, strict=True):
        (folder / name).write_text(text)
        code, output, messages = run(
            [word.replace("FILE", f"mistakes/{name}") for word in shlex.split(command)]
        )
        places = re.findall(rf"{re.escape(name)}:\d+(?::\d+)?", output + messages)
        lines.append(
            f"{name}: exit {code}: {' '.join(place.partition(':')[2] for place in places)}".rstrip(": ")
        )
    return lines


RUN = (
    "run toy causes --device fake --models noop,sum,loses_kernel,other_signal --config eager,inductor "
    "--measure-seconds 0.1 --no-calibration --threads 1 --prefetch 1 --store seeded --expectations "
    "expected.yaml"
)
NORMALISED = {
    "n": "lines are numbered in the order of groups, and samples in that of time",
    "crc": "it covers fields that are normalised",
    "digest": "it covers the path of the interpreter",
    "run_id": "its last digits are random",
    "samples": "they are measured; whether there are any is kept",
    "median": "it is measured; how it lies to the median of its samples is kept",
    "blocks": "their number follows from measured times",
    "low": "it is measured; whether it lies below the median is kept",
    "high": "it is measured; whether it lies above the median is kept",
    "method": "it follows from the number of blocks",
    "stopped": "it follows from the spread of measured times",
    "modifiers": "whether a series was unsteady follows from what else the machine does; others are kept",
    "duration_s": "it is measured",
    "environment_id": "it is a digest of facts of the machine",
    "identity": "facts of the machine; names that every machine has are kept",
    "conditions": "facts of the machine",
    "facts": "facts of the machine; names that every machine has are kept",
    "log": "it names a process",
    "log_excerpt": "it holds addresses and paths",
    "traceback": "it holds paths and lines of code",
    "notes": "words about the machine",
}
"""The fields of the journal of a run that differ from run to run or between machines, and why."""
KEPT = re.compile(r"(device|python)\.|model_code$|steps_per_block$|warmup$|host\.system$")
"""Names of facts that every machine has."""
BY_CHANCE = ("latency_contended",)
"""Metrics that are there only where others had the machine's cores."""


def journal_lines(work: Path) -> list[str]:
    """Return the journal of a run on the fake device at a fixed moment, without what differs."""
    paths = [str(HERE / "fixed_clock"), str(HERE.parent / "faults_plugin"), str(HERE.parents[1] / "src")]
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *RUN.split()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "FROZEN_NOW": str(NOW)},
        cwd=work, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    (journal,) = (work / "seeded" / "runs").glob("*/journal.jsonl")
    lines = [f"$ torchgauge {RUN}", f"exit {done.returncode}"]
    rows = [json.loads(neutral(line, work)) for line in journal.read_text().splitlines()]
    plan = json.loads(neutral(journal.with_name("plan.json").read_text(), work))
    lines += json_lines(plain(normalised(plan)))
    rows.sort(key=lambda row: (row["kind"] != "plan", row["kind"], row["data"].get("case_id", "")))
    for row in rows:
        if row["kind"] == "result":
            _relate_summaries(row["data"])
        if row["kind"] != "note":  # words about the machine
            lines += json_lines(plain(normalised(row)))
    return lines


def _relate_summaries(row: dict[str, Any]) -> None:
    """Put into the summaries of a row how their numbers lie to the samples, in their place."""
    for measured, summary in zip(row["measurements"], row["summaries"], strict=True):
        low, middle, high = (summary.pop(name) for name in ("low", "median", "high"))
        if middle is not None:
            expected = statistics.median(measured["samples"])
            summary["median"] = f"{middle / expected if expected else 1 + middle:.6g} of its samples'"
        summary["interval"] = low is not None and low <= middle <= high


def normalised(value: Any, name: str = "") -> Any:
    """Return a JSON value of a journal without what :data:`NORMALISED` names."""
    if name in ("identity", "facts"):
        return sorted(key for key, _ in value if KEPT.match(key))
    if name == "samples":
        return "..." if value else value
    if name == "modifiers":
        return [each for each in value if each != "unsteady"]
    if name in NORMALISED and name not in ("median", "low", "high"):
        return "..."
    if isinstance(value, dict):
        return {key: normalised(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [normalised(item) for item in value if not _by_chance(item)]
    return value


def _by_chance(row: Any) -> bool:
    return isinstance(row, dict) and row.get("metric") in BY_CHANCE


def verdict_lines(work: Path) -> list[str]:
    """Return the verdicts of an A/B run of three models, judged anew; a store keeps old ones."""
    from make_stores import write_comparison

    from torchgauge.results.store import Store

    store = Store.open(work / "judged", create=True)
    models = ("mlp", "convnet", "tinyformer")
    write_comparison(store, "20260606T140000Z-0000cccc", 42, 0.09, random.Random(13), models=models)
    (journal,) = (work / "judged" / "comparisons").glob("*/journal.jsonl")
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for row in rows if row["kind"] == "verdict" for line in json_lines(plain(row["data"]))]


def name_lines() -> list[str]:
    """Return the public names of the library and of plugins, with parameters and public members."""
    lines = []
    for module in ("torchgauge", "torchgauge.plugin"):
        public = importlib.import_module(module)
        for name in sorted(public.__all__):
            value = getattr(public, name)
            lines.append(f"{module}.{name}{_parameters(value)}")
            if inspect.isclass(value):
                plain_names = {
                    name for base in value.__mro__ if base.__module__ == "builtins" for name in dir(base)
                }
                lines += [
                    f"  .{member}" for member in dir(value) if member[0] != "_" and member not in plain_names
                ]
    return lines


def _parameters(value: Any) -> str:
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "()"
    names = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    rows = [
        f"{names.get(each.kind, '')}{each.name}{_default(each.default)}"
        for each in signature.parameters.values()
    ]
    return f"({', '.join(rows)})"


def _default(value: Any) -> str:
    """Return a default with its value where that is plain."""
    if value is inspect.Parameter.empty:
        return ""
    return f"={value!r}" if value is None or type(value) in (bool, int, float, str, tuple) else "="


def recorders(work: Path) -> dict[str, Callable[[], list[str]]]:
    """Return what records each file, by its name; a site follows the commands, which keep trends for it."""
    parts: dict[str, Callable[[], list[str]]] = {}
    for store in MOMENTS:
        parts[f"{store}.commands.txt"] = lambda store=store: command_lines(work, store)
        parts[f"{store}.site.txt"] = lambda store=store: site_lines(work, store)
    return {
        **parts,
        "yaml.txt": lambda: yaml_lines(work),
        "journal.txt": lambda: journal_lines(work),
        "names.txt": name_lines,
        "verdicts.txt": lambda: verdict_lines(work),
    }


def record() -> dict[str, str]:
    """Return the texts of all files of promises, as the code keeps them now."""
    with tempfile.TemporaryDirectory(prefix="frozen-") as temporary:
        work = Path(temporary).resolve()
        with fixed_surroundings(work):
            prepare(work)
            parts = recorders(work).items()
            return {name: "".join(f"{line}\n" for line in lines()) for name, lines in parts}


def difference(name: str, now: str) -> str:
    """Return the difference between a recorded file and its text ``now``; empty where they are equal."""
    file = RECORDED / name
    before = file.read_text() if file.is_file() else ""
    rows = difflib.unified_diff(before.splitlines(True), now.splitlines(True), f"a/{name}", f"b/{name}", n=4)
    return "".join(rows)


def main() -> None:
    """Renew the files of promises, and print how they differ."""
    for name, text in record().items():
        print(difference(name, text), end="")
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / name).write_text(text)


if __name__ == "__main__":
    main()
