"""``torchgauge.yml``: what a repository measures, on which pools of machines, and what is done about it.

Strict, like every file that a person types: a mistake names its line and what to try. What is in this file
ends in matrices, shells and artifact names, so no text in it may hold an expression of the forge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchgauge import __version__
from torchgauge.errors import UnknownNameError
from torchgauge.records import Deadlines
from torchgauge.suites.document import Document, parse_document, read_document
from torchgauge.suites.schema import convert, refuse
from torchgauge.workflows.config_fields import MAX_SHARDS, ConfigFields, Duration, PoolFields, Trust
from torchgauge.workflows.runner_labels import HOSTED, problem_of

CONFIG_FILE = "torchgauge.yml"
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
"""A duration such as ``90``, ``90s``, ``30m`` or ``1.5h``."""
MAX_BUDGET_S = 4.5 * 24 * 3600.0
"""The longest budget of a job: GitHub ends one on a runner of one's own after 5 days."""
MAX_HOSTED_S = 4.5 * 3600.0
"""The longest budget on a hosted runner: GitHub ends its jobs after 6 hours, installing included."""
_POOL_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._-]*(?::[0-9]+(?=/))?(?:/[a-z0-9._-]+)*"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_BRANCH = re.compile(r"(?!-)(?!.*\.\.)[A-Za-z0-9._/-]{1,100}(?<![./])")
_URL = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/-]*)?")
_EXPRESSION = "${{"


@dataclass(frozen=True)
class CampaignChoice:
    """Which cases a campaign measures; ``budget_s`` is the time of one job, in seconds."""

    suites: tuple[str, ...]
    tier: str
    modes: tuple[str, ...]
    configs: tuple[str, ...]
    dtypes: tuple[str, ...]
    models: tuple[str, ...]
    size: str
    config_file: str
    budget_s: float


@dataclass(frozen=True)
class Pool:
    """One pool; ``budget_s`` in seconds, ``container`` empty for a virtual environment.

    ``install`` brings in the torch of a nightly campaign; ``base`` and ``head`` are pip specifications or
    wheel addresses for a comparison of two builds. ``found_by_probe`` says that PyTorch knows the device and
    no package registers it with torchgauge.
    """

    name: str
    device: str
    runs_on: tuple[str, ...]
    container: str
    install: str
    base: str
    head: str
    shards: int
    budget_s: float
    trust: Trust
    found_by_probe: bool = False


@dataclass(frozen=True)
class Config:
    """``torchgauge.yml``, checked; ``at`` and ``expect_by`` are ``HH:MM`` in UTC."""

    campaign: CampaignChoice
    pools: tuple[Pool, ...]
    torchgauge: str
    policy: str
    undecided: str
    branch: str
    base_url: str
    at: str
    expect_by: str

    def pool(self, name: str) -> Pool:
        """The pool called ``name``; raises :class:`UnknownNameError` with suggestions."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise UnknownNameError("pool", name, [pool.name for pool in self.pools])


def read_config(path: Path | str = CONFIG_FILE) -> Config:
    """The configuration in the file ``path``; raises :class:`torchgauge.errors.DataFileError`."""
    return config_of(read_document(Path(path)))


def policy_file(named: str | None, config: str | None = None) -> str:
    """The policy that is ``named``, else that of the file ``config``, else of the ``torchgauge.yml`` here.

    Empty where none of them names one. Raises :class:`torchgauge.errors.DataFileError`.
    """
    if named or not (config or Path(CONFIG_FILE).is_file()):
        return named or ""
    return read_config(config or CONFIG_FILE).policy


def configured_pools(config: str | None = None) -> tuple[str, ...]:
    """The names of the pools of the file ``config``, else of the ``torchgauge.yml`` here, if there is one."""
    there = config or Path(CONFIG_FILE).is_file()
    return tuple(pool.name for pool in read_config(config or CONFIG_FILE).pools) if there else ()


def parse_config(text: str, file: str = CONFIG_FILE) -> Config:
    """The configuration in ``text``, called ``file`` in messages."""
    return config_of(parse_document(text, file))


def config_of(document: Document) -> Config:
    """The configuration that ``document`` holds; raises :class:`torchgauge.errors.DataFileError`."""
    for path, text in _texts(document.value, "$"):
        _check_text(document, path, text)
    fields = convert(document, ConfigFields)
    if fields.version != 1:
        raise refuse(document, "$.version", f"version {fields.version} is not known", "version: 1")
    budget_s = _seconds(document, "$.campaign.budget", fields.campaign.budget)
    pools = tuple(_pool(document, index, each, fields, budget_s) for index, each in enumerate(fields.pools))
    _check_names(document, pools)
    _check_rest(document, fields)
    chosen = fields.campaign
    return Config(
        CampaignChoice(
            suites=tuple(dict.fromkeys(chosen.suites)),
            tier=chosen.tier,
            modes=tuple(chosen.modes),
            configs=tuple(chosen.configs),
            dtypes=tuple(chosen.dtypes),
            models=tuple(chosen.models),
            size=chosen.size,
            config_file=chosen.config_file,
            budget_s=budget_s,
        ),
        pools,
        fields.torchgauge or f"torchgauge=={__version__}",
        fields.gate.policy,
        fields.gate.undecided,
        fields.store.branch,
        fields.dashboard.base_url,
        fields.nightly.at,
        fields.nightly.expect_by,
    )


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Every text in ``value`` with its path; keys count too."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", key
            yield from _texts(item, f"{path}.{key}")


def _check_text(document: Document, path: str, text: str) -> None:
    if _EXPRESSION in text:
        raise refuse(
            document,
            path,
            "an expression of GitHub Actions is not allowed: it would be run where the text is used",
            "write the value itself",
        )
    if not text.isprintable():
        raise refuse(
            document, path, f"a character that cannot be seen is in {text!r}", "one line of plain text"
        )


def _pool(document: Document, index: int, fields: PoolFields, whole: ConfigFields, budget_s: float) -> Pool:
    path = f"$.pools[{index}]"
    if _POOL_NAME.fullmatch(fields.name) is None:
        raise refuse(
            document,
            f"{path}.name",
            f"{fields.name!r} is no name of a pool",
            "at most 40 of a-z, 0-9 and -, such as card-a",
        )
    if _DEVICE.fullmatch(fields.device) is None:
        raise refuse(
            document,
            f"{path}.device",
            f"{fields.device!r} names no device",
            "one name as torchgauge devices lists it, without an index",
        )
    labels = (fields.runs_on,) if isinstance(fields.runs_on, str) else tuple(fields.runs_on)
    if not all(labels) or not labels:
        raise refuse(
            document,
            f"{path}.runs-on",
            f"pool {fields.name!r} has no runner labels, so no machine would ever take its jobs",
            f"runs-on: [self-hosted, tg-{fields.name}] for machines of your own, or [{HOSTED[0]}]",
        )
    if (trouble := problem_of(labels, whole.labels)) is not None:
        raise refuse(document, f"{path}.runs-on", trouble.problem, trouble.hint)
    if fields.container and not _is_pinned(fields.container):
        raise refuse(
            document,
            f"{path}.container",
            f"{fields.container!r} names no image of one version, so nights could not be compared",
            "IMAGE:TAG other than latest, or IMAGE@sha256:...",
        )
    own_budget_s = budget_s if fields.budget is None else _seconds(document, f"{path}.budget", fields.budget)
    if own_budget_s > MAX_HOSTED_S and set(labels) <= set(HOSTED):
        raise refuse(
            document,
            f"{path}.budget" if fields.budget is not None else "$.campaign.budget",
            f"pool {fields.name!r} is on a hosted runner, where a budget above 4.5 hours cannot be kept",
            "more shards and a smaller budget",
        )
    return Pool(
        name=fields.name,
        device=fields.device,
        runs_on=labels,
        container=fields.container,
        install=fields.install,
        base=fields.base,
        head=fields.head,
        shards=fields.shards,
        budget_s=own_budget_s,
        trust=fields.trust,
        found_by_probe=fields.found_by_probe,
    )


def _is_pinned(container: str) -> bool:
    found = _IMAGE.fullmatch(container)
    return found is not None and (found["digest"] is not None or found["tag"] not in (None, "latest"))


def _seconds(document: Document, path: str, value: Duration) -> float:
    found = DURATION.fullmatch(str(value).strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not Deadlines().exit_s <= seconds <= MAX_BUDGET_S:
        raise refuse(
            document, path, f"{value!r} is no duration between 30 seconds and 4.5 days", "90s, 30m or 1.5h"
        )
    return seconds


def _check_names(document: Document, pools: tuple[Pool, ...]) -> None:
    first: dict[str, int] = {}
    for index, pool in enumerate(pools):
        if pool.name in first:
            line = document.line_of(f"$.pools[{first[pool.name]}].name")
            raise refuse(
                document,
                f"$.pools[{index}].name",
                f"duplicate pool {pool.name!r}, first on line {line}",
                "give every pool a name of its own: artifacts and series are named after it",
            )
        first[pool.name] = index
    legs = sum(pool.shards for pool in pools)
    if legs > MAX_SHARDS:
        raise refuse(
            document,
            "$.pools",
            f"the pools have {legs} shards together, and a matrix holds at most {MAX_SHARDS} jobs",
            "fewer shards, or a second file for some of the pools",
        )


def _check_rest(document: Document, fields: ConfigFields) -> None:
    if _BRANCH.fullmatch(fields.store.branch) is None:
        raise refuse(
            document, "$.store.branch", f"{fields.store.branch!r} is no name of a branch", "branch: results"
        )
    url = fields.dashboard.base_url
    if url and _URL.fullmatch(url) is None:
        raise refuse(
            document, "$.dashboard.base-url", f"{url!r} is no address", "https://OWNER.github.io/REPOSITORY"
        )
    for name, text in (("at", fields.nightly.at), ("expect-by", fields.nightly.expect_by)):
        if _TIME.fullmatch(text) is None:
            raise refuse(document, f"$.nightly.{name}", f"{text!r} is no time of day", '"06:00", in UTC')
