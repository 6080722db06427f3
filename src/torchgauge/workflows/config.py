"""``torchgauge.yml``: what a repository measures, on which pools of machines, and what is done about it.

Strict, like every file that a person types: a mistake names its line and what to try. What is in this file
ends in matrices, shells and artifact names, so no text in it may hold an expression of the Git host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchgauge import __version__
from torchgauge.errors import UnknownNameError, UsageError
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
    """Which cases a campaign measures."""

    suites: tuple[str, ...]
    tier: str
    modes: tuple[str, ...]
    configs: tuple[str, ...]
    dtypes: tuple[str, ...]
    models: tuple[str, ...]
    size: str
    config_file: str


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
    """Return the configuration in the file ``path``; raises :class:`torchgauge.errors.UsageError`."""
    if not str(path):
        raise UsageError("--config is empty", hint=f"--config {CONFIG_FILE}")
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
        problem = "an expression of GitHub Actions is not allowed, since GitHub would evaluate it"
        _require(_EXPRESSION not in text, document, path, problem, "write the value itself")
        problem = f"{text!r} contains a character that cannot be printed"
        _require(text.isprintable(), document, path, problem, "one line of plain text")
    fields = convert(document, ConfigFields)
    if fields.version != 1:
        raise refuse(document, "$.version", f"version {fields.version} is not supported", "version: 1")
    budget_s = _seconds(document, "$.campaign.budget", fields.campaign.budget)
    pools = tuple(_pool(document, index, each, fields, budget_s) for index, each in enumerate(fields.pools))
    _check_names(document, pools)
    _check_rest(document, fields)
    chosen = msgspec.structs.asdict(fields.campaign) | {"suites": dict.fromkeys(fields.campaign.suites)}
    del chosen["budget"]
    chosen = {name: value if isinstance(value, str) else tuple(value) for name, value in chosen.items()}
    return Config(
        CampaignChoice(**chosen),
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


def _require(fine: object, document: Document, path: str, problem: str, hint: str) -> None:
    """Raise where what stands at ``path`` is not ``fine``."""
    if not fine:
        raise refuse(document, path, problem, hint)


def _pool(document: Document, index: int, fields: PoolFields, whole: ConfigFields, budget_s: float) -> Pool:
    at, name, device, image = f"$.pools[{index}]", fields.name, fields.device, fields.container
    hint = "at most 40 characters of a-z, 0-9 and -, such as card-a"
    _require(_POOL_NAME.fullmatch(name), document, f"{at}.name", f"pool name {name!r} is not valid", hint)
    hint = "a name that `torchgauge devices` lists, without an index"
    _require(_DEVICE.fullmatch(device), document, f"{at}.device", f"{device!r} is not a device name", hint)
    labels = (fields.runs_on,) if isinstance(fields.runs_on, str) else tuple(fields.runs_on)
    problem = f"pool {name!r} has no runner labels, so no runner would run its jobs"
    hint = f"runs-on: [self-hosted, tg-{name}] for machines of your own, or [{HOSTED[0]}]"
    _require(labels and all(labels), document, f"{at}.runs-on", problem, hint)
    if (trouble := problem_of(labels, whole.labels)) is not None:
        raise refuse(document, f"{at}.runs-on", trouble.problem, trouble.hint)
    problem = f"{image!r} is not pinned to one version, so nightly runs could not be compared"
    hint = "IMAGE:TAG other than latest, or IMAGE@sha256:..."
    _require(not image or _is_pinned(image), document, f"{at}.container", problem, hint)
    own = fields.budget is not None
    where = f"{at}.budget" if own else "$.campaign.budget"
    if fields.budget is not None:
        budget_s = _seconds(document, where, fields.budget)
    problem = f"pool {name!r} is on a hosted runner, where a job cannot have a budget above 4.5 hours"
    hosted = set(labels) <= set(HOSTED)
    hint = "more shards and a smaller budget"
    _require(budget_s <= MAX_HOSTED_S or not hosted, document, where, problem, hint)
    as_written = msgspec.structs.asdict(fields)
    del as_written["budget"]
    return Pool(**as_written | {"runs_on": labels, "budget_s": budget_s})


def _is_pinned(container: str) -> bool:
    found = _IMAGE.fullmatch(container)
    return found is not None and (found["digest"] is not None or found["tag"] not in (None, "latest"))


def _seconds(document: Document, path: str, value: Duration) -> float:
    found = DURATION.fullmatch(str(value).strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    problem = f"{value!r} is not a duration between 30 seconds and 4.5 days"
    fine = Deadlines().exit_s <= seconds <= MAX_BUDGET_S
    _require(fine, document, path, problem, "90s, 30m or 1.5h")
    return seconds


def _check_names(document: Document, pools: tuple[Pool, ...]) -> None:
    first: dict[str, int] = {}
    for index, pool in enumerate(pools):
        earlier = first.setdefault(pool.name, index)
        line = document.line_of(f"$.pools[{earlier}].name")
        problem = f"duplicate pool {pool.name!r}, first on line {line}"
        hint = "give every pool a different name: artifacts and series contain the name"
        _require(earlier == index, document, f"$.pools[{index}].name", problem, hint)
    legs = sum(pool.shards for pool in pools)
    problem = f"the pools have {legs} shards in total, but a GitHub matrix has at most {MAX_SHARDS} jobs"
    hint = "set fewer shards, or move some pools to a second configuration file"
    _require(legs <= MAX_SHARDS, document, "$.pools", problem, hint)


def _check_rest(document: Document, fields: ConfigFields) -> None:
    branch, url = fields.store.branch, fields.dashboard.base_url
    problem = f"{branch!r} is not a valid name of a branch"
    _require(_BRANCH.fullmatch(branch), document, "$.store.branch", problem, "branch: results")
    hint = "https://OWNER.github.io/REPOSITORY"
    fine = not url or _URL.fullmatch(url)
    _require(fine, document, "$.dashboard.base-url", f"{url!r} is not a URL", hint)
    for name, text in (("at", fields.nightly.at), ("expect-by", fields.nightly.expect_by)):
        problem = f"{text!r} is not a time of day"
        _require(_TIME.fullmatch(text), document, f"$.nightly.{name}", problem, '"06:00", in UTC')
