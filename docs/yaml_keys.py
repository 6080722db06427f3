"""The page of YAML keys: every structure that a file is held against, as the loader itself sees it.

Names, types, limits and defaults come from the msgspec structures that refuse a file. ``yaml_meanings.toml``
has what they cannot say; a key without a meaning, and a meaning without a key, end the generator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import get_annotations
from pathlib import Path
from typing import Any

import msgspec
import tomllib
from msgspec import inspect

from torchgauge.devices.verified import VerifiedFile
from torchgauge.harness.bisect.builds import BuildsFields
from torchgauge.harness.planning.configurations import ConfigurationFile
from torchgauge.results.claims.claim_file import ClaimFileFields
from torchgauge.results.comparing.policy import SECTIONS, EntryFields
from torchgauge.results.interchange.upstream_names import UpstreamNames
from torchgauge.results.scorecard.declarations import DeclarationFile
from torchgauge.results.scorecard.scorecard_file import ScorecardFile
from torchgauge.suites.catalog import AnyRecipe, SuiteFields
from torchgauge.suites.conflicts import ConflictFile
from torchgauge.suites.expectations import DeviceFields
from torchgauge.suites.huggingface.suite import HuggingFaceRecipe
from torchgauge.suites.install_needs import InstallFile
from torchgauge.suites.llm.suite import LanguageModelRecipe
from torchgauge.suites.ops.suite import OpsFields
from torchgauge.suites.timm.suite import TimmRecipe
from torchgauge.suites.tolerances import ToleranceFields
from torchgauge.suites.torchbench.suite import TorchBenchRecipe
from torchgauge.workflows.config_fields import ConfigFields

MEANINGS = Path(__file__).with_name("yaml_meanings.toml")
LIMITS = (("gt", ">{}"), ("ge", "≥{}"), ("lt", "<{}"), ("le", "≤{}"))
FORMS = {
    r"^https?:": "URL",
    r"^(never|": "`YYYY-MM-DD` or `never`",
    r"^\d{4}-": "`YYYY-MM-DD`",
    r"^\d{4}(-": "`YYYY`, `YYYY-MM` or `YYYY-MM-DD`",
    r"^[0-9]+\.": "such as `2.13`",
    r"^\d+(\.": "such as `2.13.0`",
}
"""Words for the patterns of text, by their first characters."""
NAMES = {
    inspect.StrType: "text",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "empty",
    inspect.AnyType: "anything",
}


@dataclass(frozen=True)
class Kind:
    """One kind of file: what it is for, who checks it, and its structures, the outermost first."""

    title: str
    purpose: str
    structures: tuple[Any, ...]

    def path(self, top: Any) -> str:
        """Where the structure ``top`` stands in the file: at the top, or in what that one leaves open."""
        if top is EntryFields:
            return "entry"
        return "" if top is self.structures[0] else f"models[].recipe of {RECIPES[top]}"


RECIPES = {
    TimmRecipe: "timm",
    HuggingFaceRecipe: "huggingface",
    LanguageModelRecipe: "llm",
}
KINDS = (
    Kind(
        "torchgauge.yml",
        "Settings of continuous integration for all commands of `torchgauge ci`. See "
        "[set up a nightly run](../how-to/set-up-nightly.md).",
        (ConfigFields,),
    ),
    Kind(
        "Suites",
        "Models of a suite (a named set of models). See "
        "[add a suite](../how-to/write-a-plugin.md#add-a-suite).",
        (SuiteFields[AnyRecipe], *RECIPES),
    ),
    Kind(
        "Expectations",
        "Expected failures of a device. A case is one model in one configuration. See "
        "[declare expected failures](../how-to/triage-failures.md#declare-expected-failures).",
        (DeviceFields,),
    ),
    Kind(
        "Tolerances",
        "Tolerances of the accuracy check. See [method](../method.md#tolerances).",
        (ToleranceFields,),
    ),
    Kind(
        "Configurations",
        "Your own configurations (backend, options and threads) for `--config-file`. See "
        "[name a configuration](../how-to/choose-a-backend.md#name-a-configuration-of-your-own).",
        (ConfigurationFile,),
    ),
    Kind(
        "Builds",
        "Builds of torch for `torchgauge bisect`. See [find a regression](../how-to/find-a-regression.md).",
        (BuildsFields,),
    ),
    Kind(
        "Policy",
        "Tolerances of comparisons, for `--policy`. See "
        "[gate a repository](../how-to/gate-a-repository.md#policy). A case is one model in one "
        "configuration on one device. For each key, the narrowest entry applies.",
        (EntryFields,),
    ),
    Kind(
        "Claims",
        "Claims are published statements that torchgauge checks with results of a store. See "
        "[check a claim](../how-to/read-the-dashboard.md#check-a-published-claim).",
        (ClaimFileFields,),
    ),
    Kind(
        "Declarations",
        "Facts about a device that cannot be measured, for `torchgauge results scorecard`. See "
        "[score a device](../how-to/check-a-device.md#score-by-pytorchs-quality-levels).",
        (DeclarationFile,),
    ),
)
OWN_FILES = {
    "suites/data/torchbench.yaml": TorchBenchRecipe,
    "suites/data/ops.yaml": OpsFields,
    "suites/data/install.yaml": InstallFile,
    "suites/data/conflicts.yaml": ConflictFile,
    "results/scorecard/data/scorecard.yaml": ScorecardFile,
    "results/interchange/data/upstream.yaml": UpstreamNames,
    "devices/verified.yaml": VerifiedFile,
}
"""Files below ``src/torchgauge`` that no user writes: comments at their top describe their keys."""


def yaml_files() -> str:
    """The page; raises :class:`SystemExit` where keys and meanings do not fit each other."""
    page = _Page(tomllib.loads(MEANINGS.read_text(encoding="utf-8")))
    parts = [
        "# YAML files\n",
        "torchgauge refuses a file with an unknown or repeated key or a wrong type. The message contains",
        "file and line. Anchors and tags of YAML are refused too.\n",
        "In the tables:\n",
        "- A key is optional unless it is **required**.",
        "- A boolean is `false` by default.",
        "- In headings, `[]` is an entry of a list, and `NAME` a key of your choice.\n",
        *(text for kind in KINDS for text in page.kind(kind)),
        "## Files of torchgauge itself\n",
        "Users write none of these files. Comments at the top of each file describe its keys.\n",
        *(f"- `src/torchgauge/{path}`" for path in OWN_FILES),
        "",
    ]
    page.refuse_unused()
    return "\n".join(parts)


def structures() -> set[str]:
    """Names of all structures that the page or the comments of a data file describe."""
    pages = (top for kind in KINDS for top in kind.structures)
    tops = (inspect.type_info(top) for top in (*pages, *OWN_FILES.values()))
    return {_name(structure) for top in tops for _, structure in _structures(top)}


def _structures(kind: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and structure for ``kind`` where it has keys, and for every one below it, the outer ones first."""
    if isinstance(kind, inspect.StructType):
        if kind.fields:
            yield path, kind
        for each in kind.fields:
            yield from _structures(each.type, f"{path}.{each.encode_name}".removeprefix("."))
    if hasattr(kind, "item_type"):
        yield from _structures(kind.item_type, f"{path}[]")
    if hasattr(kind, "value_type"):
        yield from _structures(kind.value_type, f"{path}.NAME")
    for each in getattr(kind, "types", ()):
        yield from _structures(each, path)


@dataclass
class _Page:
    """The page while it is written: meanings, those that were used, and where each structure is described."""

    meanings: Mapping[str, Mapping[str, str]]
    used: set[tuple[str, str]] = field(default_factory=set)
    titles: dict[str, str] = field(default_factory=dict)

    def kind(self, kind: Kind) -> Iterator[str]:
        """The section of one kind of file."""
        yield f"## {kind.title}\n\n{kind.purpose}\n"
        new = []
        for top in kind.structures:
            for path, structure in _structures(inspect.type_info(top), kind.path(top)):
                name = _name(structure)
                if name not in self.titles:
                    self.titles[name] = f"{kind.title}: {path or 'top level'}"
                    new.append(structure)
        if EntryFields in kind.structures:
            yield self._table(f"{kind.title}: top level", self._policy_rows())
        for structure in new:
            rows = [
                (
                    f"`{each.encode_name}`",
                    f"{self.type(each.type)}{_default(each)}",
                    self.meaning(_home(structure.cls, each.name), each.encode_name),
                )
                for each in structure.fields
            ]
            yield self._table(self.titles[_name(structure)], rows)

    def meaning(self, structure: str, key: str) -> str:
        """What ``key`` means; raises :class:`SystemExit` where nothing says it."""
        self.used.add((structure, key))
        try:
            return self.meanings[structure][key]
        except KeyError:
            raise SystemExit(f"{MEANINGS.name}: say what {key!r} of [{structure}] means") from None

    def refuse_unused(self) -> None:
        """Raise :class:`SystemExit` for meanings of keys that the code does not have."""
        said = {(name, key) for name, keys in self.meanings.items() for key in keys}
        if extra := sorted(said - self.used):
            shown = ", ".join(f"[{name}] {key}" for name, key in extra)
            raise SystemExit(f"{MEANINGS.name} has keys that the code does not have: {shown}")

    def type(self, kind: Any) -> str:
        """The type in words; a structure is a link to its table."""
        if isinstance(kind, inspect.StructType):
            return f"[mapping](#{_anchor(self.titles[_name(kind)])})" if kind.fields else "mapping"
        if isinstance(kind, inspect.UnionType):
            options = [self.type(each) for each in kind.types if not isinstance(each, inspect.NoneType)]
            if "number" in options and "integer" in options:
                options.remove("integer")
            return "anything" if any("anything" in each for each in options) else " or ".join(options)
        if isinstance(kind, inspect.LiteralType):
            return "/".join(_code(value) for value in kind.values)
        if isinstance(kind, inspect.EnumType):
            return "/".join(_code(member.value) for member in kind.cls)
        if isinstance(kind, inspect.DictType):
            words = self.type(kind.value_type).replace("[mapping]", "[mappings]")
            return f"mapping of names to {words}"
        if hasattr(kind, "item_type"):
            words = self.type(kind.item_type).replace("[mapping]", "[mappings]")
            return f"list of {words}"
        return (NAMES[type(kind)] + _limits(kind)).replace("text, URL", "URL")

    def _policy_rows(self) -> Iterator[tuple[str, ...]]:
        """The outline of a policy, which its loader walks by hand: entries, or names with entries."""
        entry = f"[mapping](#{_anchor(self.titles[EntryFields.__name__])})"
        for section in SECTIONS:
            many = f"mapping of names to {entry.replace('[mapping]', '[mappings]')}"
            yield (
                f"`{section}`",
                entry if section == "defaults" else many,
                self.meaning("policy", section),
            )

    def _table(self, title: str, rows: Iterable[Sequence[str]]) -> str:
        lines = [f"### {title}\n", "| key | type | meaning |", "|---|---|---|"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _anchor(title: str) -> str:
    """The anchor of a heading, as Git hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _home(kind: type, key: str) -> str:
    """The structure that declares ``key``: what is inherited has one meaning."""
    kind = getattr(kind, "__origin__", kind)
    homes = [each.__name__ for each in kind.__mro__ if key in get_annotations(each)]
    return homes[-1]


def _name(structure: Any) -> str:
    return str(getattr(structure.cls, "__origin__", structure.cls).__name__)


def _limits(kind: Any) -> str:
    numbers = [(words, getattr(kind, name, None)) for name, words in LIMITS]
    said = [words.format(f"{value:g}") for words, value in numbers if value is not None]
    longest, shortest = getattr(kind, "max_length", None), getattr(kind, "min_length", None)
    if shortest:
        said += [f"≥{shortest} characters"] if shortest > 1 else []
    if longest:
        said.append(f"≤{longest} characters")
    if pattern := getattr(kind, "pattern", None):
        shown = f"matches `{pattern}`".replace("|", "\\|")
        said.append(next((words for start, words in FORMS.items() if pattern.startswith(start)), shown))
    return f", {', '.join(said)}" if said else ""


def _default(key: Any) -> str:
    if key.required:
        return ", **required**"
    value = key.default
    if key.default_factory is not msgspec.NODEFAULT:
        value = key.default_factory()
    if value is None or value is False or value in ("", (), [], {}) or isinstance(value, msgspec.Struct):
        return ""
    return f", default {_code(value)}"


def _code(value: Any) -> str:
    if hasattr(value, "value"):  # a member of an enumeration
        value = value.value
    if isinstance(value, tuple):
        value = list(value)
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"
