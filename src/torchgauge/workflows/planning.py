"""From ``torchgauge.yml`` to a campaign: its cases, its jobs, its name and the matrix of its jobs.

A campaign is named after its night, its torch and its suites, so that planning the same night again gives the
same name, and results that come twice are recognised.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from torchgauge import registry
from torchgauge.counted import counted
from torchgauge.devices.device import Device, DeviceDescriptor
from torchgauge.devices.discover import GROUP as DEVICES
from torchgauge.devices.discover import find_device
from torchgauge.devices.privateuse1 import SESSION
from torchgauge.errors import NothingSelectedError, UnknownNameError, UsageError
from torchgauge.harness.planning.bin_packing import Bin, Part, pack
from torchgauge.harness.planning.forecast import Forecast, expected_seconds, parameters_of
from torchgauge.harness.planning.plan import check_available, load_suites, select_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import Cause, Group, PlannedCase, Status, digest
from torchgauge.suites.suite import Suite
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan, no_case, terms_of
from torchgauge.workflows.config import CampaignChoice, Config, Pool
from torchgauge.workflows.config_fields import MAX_SHARDS
from torchgauge.workflows.runner_labels import is_hosted

OVER_BUDGET_MINUTES = 20
"""What the measuring step may take beside its budget: to finish the case that runs, to pack."""
BESIDE_STEP_MINUTES = 65
"""What a job may take beside that step: 55 for the time-outs of the others, 10 to spare."""
MAX_ID = 100
_PINNED = re.compile(r"(?<![\w-])torch(?:==|-)(\d[\w.+]*?)(?=-|\s|,|;|'|\"|$)")
_NOT_SLUG = re.compile(r"[^a-z0-9.]+")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,79}")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Occasion:
    """When and for what a campaign is planned: ``created_at`` in seconds since the epoch (UTC).

    ``night`` is a date (ISO 8601), ``torch`` the build under test, empty for what the pools install.
    """

    created_at: float
    night: str
    repository: str = ""
    sha: str = ""
    torch: str = ""

    def __post_init__(self) -> None:
        if self.repository and _REPOSITORY.fullmatch(self.repository) is None:
            raise UsageError(
                f"{self.repository!r} is not of the form OWNER/NAME", hint="--repository OWNER/NAME"
            )
        if self.sha and _SHA.fullmatch(self.sha) is None:
            raise UsageError(f"{self.sha!r} is not a full commit id", hint="--sha with 40 hex digits")
        if self.torch and _BUILD.fullmatch(self.torch) is None:
            raise UsageError(f"{self.torch!r} is not a torch version", hint="--torch 2.13.0")


@dataclass(frozen=True)
class Work:
    """The groups of a campaign by device, and the digest of its suites and selectors.

    ``parameters`` counts those of models by suite and model, as far as the suites say.
    """

    groups: dict[str, tuple[Group, ...]]
    suite_digest: str
    parameters: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def case_ids(self) -> list[str]:
        """Ids of all cases."""
        return [each.case.id for groups in self.groups.values() for group in groups for each in group.cases]


@dataclass(frozen=True)
class Leg:
    """One job of the matrix, with everything that a workflow needs to start it; time in minutes.

    ``artifact`` lacks the number of the attempt, which only the job knows. ``compiled`` names what a hosted
    runner keeps of compiled code until the next night; empty where the pool's own machines keep it.
    """

    pool: str
    shard: int
    of: int
    runs_on: tuple[str, ...]
    container: str
    artifact: str
    install: str
    base: str
    head: str
    budget: str
    step_minutes: int
    job_minutes: int
    compiled: str = ""


def chosen_pools(config: Config, names: Sequence[str] = (), trust: str = "") -> tuple[Pool, ...]:
    """The pools called ``names`` (all where none is named) that have ``trust``, if that is given.

    Raises :class:`torchgauge.errors.UnknownNameError` for a name that the file does not have.
    """
    named = [config.pool(name) for name in dict.fromkeys(names)] if names else list(config.pools)
    return tuple(pool for pool in named if trust in ("", pool.trust))


def plan_campaign(
    pools: Sequence[Pool], occasion: Occasion, work: Work, recorded: Mapping[str, Sequence[float]]
) -> CampaignPlan:
    """The campaign on ``pools``; ``recorded`` maps case ids to the seconds that they took.

    Raises :class:`NothingSelectedError` where no case is left, and :class:`UsageError` for too many jobs.
    """
    usual = {case: float(median(seconds)) for case, seconds in recorded.items() if seconds}
    forecast = Forecast(usual, work.parameters)
    every = [plan_pool(pool, work.groups[pool.device], forecast) for pool in pools]
    planned = tuple(plan for plan in every if plan.shards)
    if not planned:
        raise NothingSelectedError(
            "the campaign is empty: no pool has a case to run",
            hint="check `campaign` and `pools` of torchgauge.yml, and --pool and --trust",
        )
    legs = sum(len(plan.shards) for plan in planned)
    if legs > MAX_SHARDS:
        raise UsageError(f"{legs} jobs, but a matrix has at most {MAX_SHARDS}", hint="plan fewer shards")
    torch = occasion.torch or torch_of(pools)
    return CampaignPlan(
        campaign_id=campaign_id(occasion.night, torch, work.suite_digest),
        created_at=occasion.created_at,
        night=occasion.night,
        repository=occasion.repository,
        sha=occasion.sha,
        torch=torch,
        suite_digest=work.suite_digest,
        pools=planned,
        empty=tuple(plan.name for plan in every if not plan.shards),
    )


def plan_pool(pool: Pool, groups: Sequence[Group], forecast: Forecast) -> PoolPlan:
    """The jobs of one pool; a pool without a case has none."""
    bins = pack(parts_of(groups, expected_seconds(groups, forecast)), pool.shards)
    planned = {each.case.id: each for group in groups for each in group.cases}
    shards = tuple(
        _shard_of(number, len(bins), bin_, {case: planned[case] for case in bin_.cases})
        for number, bin_ in enumerate(bins, start=1)
    )
    total = round(sum(bin_.expected_s for bin_ in bins), 3)
    return PoolPlan(pool.name, pool.device, pool.runs_on, pool.container, total, shards)


def _shard_of(number: int, of: int, bin_: Bin, planned: Mapping[str, PlannedCase]) -> ShardPlan:
    """The job ``number``, with what data files declare of its cases: nobody else's word of that counts."""
    expected = [(case, each.expectation) for case, each in planned.items() if each.expectation]
    refused = [(case, each.refusal) for case, each in planned.items() if each.refusal]
    skipped = [  # a package that this machine lacks may be on the pool's
        case for case, why in refused if why.status is Status.UNSUPPORTED or why.cause is Cause.DECLARED
    ]
    seconds, terms = round(bin_.expected_s, 3), terms_of(planned)
    return ShardPlan(number, of, bin_.cases, seconds, terms, tuple(expected), tuple(skipped))


def parts_of(groups: Sequence[Group], expected: Mapping[str, float]) -> list[Part]:
    """What stays together: the cases of a workload; checks only share a process, so each is a part."""
    parts: list[Part] = []
    for group in groups:
        ids = [planned.case.id for planned in group.cases]
        together = [[each] for each in ids] if group.checks else [ids]
        parts += [Part(tuple(held), sum(expected[case] for case in held)) for held in together]
    return parts


def devices_of(pools: Iterable[Pool], *, ask_torch: bool = True) -> dict[str, Device]:
    """The device of each pool, by name: what is needed of it to plan where the device itself is not.

    A device that no installed package registers is taken where the pool says that PyTorch alone knows it, or
    where the torch of this machine, if there is one and ``ask_torch`` allows the seconds, knows it. Raises
    :class:`UnknownNameError` for any other.
    """
    return {pool.device: _device_of(pool, ask_torch) for pool in pools}


def _device_of(pool: Pool, ask_torch: bool) -> Device:
    known = registry.names(DEVICES)
    if pool.device in known:
        device: Device = registry.load(DEVICES, pool.device)
        return device
    if pool.found_by_probe:
        return DeviceDescriptor(pool.device, pool.device, SESSION, pool.device)
    if ask_torch and importlib.util.find_spec("torch") is not None:
        with contextlib.suppress(UnknownNameError):  # said below, with what helps where campaigns are planned
            return find_device(pool.device, sys.executable)
    hint = (
        "on the planning machine, install the package that registers the device; for a device that only "
        f"PyTorch supports, set `found-by-probe: true` in the pool; registered: {', '.join(known)}"
    )
    raise UnknownNameError("device", pool.device, known, hint=hint)


def select_cases(choice: CampaignChoice, devices: Mapping[str, Device]) -> Work:
    """What the campaign runs on each device.

    A device on which nothing is selected has no groups. Raises what
    :func:`torchgauge.harness.planning.plan.select_groups` raises for names that nothing answers to.
    """
    suites = load_suites(choice.suites)
    check_available(suites, choice.suites)
    found: dict[str, tuple[Group, ...]] = {}
    for name in devices:
        try:
            chosen = {
                **vars(choice),
                "configurations": choice.configs,
                "configuration_file": choice.config_file or None,
            }
            del chosen["configs"], chosen["config_file"]
            found[name] = select_groups(Selection(devices=(name,), **chosen), devices, suites)
        except NothingSelectedError:
            found[name] = ()
    return Work(found, digest_of(choice, suites), parameters_of(suites))


def digest_of(choice: CampaignChoice, suites: Mapping[str, Suite]) -> str:
    """Sixteen hex digits over the suites' data and what is selected of them."""
    data = sorted((name, suite.digest) for name, suite in suites.items())
    selectors = [choice.tier, choice.size, choice.config_file]
    lists = [choice.modes, choice.configs, choice.dtypes, choice.models]
    return digest([data, selectors, [list(each) for each in lists]])


def torch_of(pools: Sequence[Pool]) -> str:
    """The torch that ``pools`` install, as far as their commands pin it; ``as-installed`` where none does."""
    pinned = sorted({found[1] for pool in pools if (found := _PINNED.search(pool.install))})
    return "-".join(pinned) or "as-installed"


def campaign_id(night: str, torch: str, suite_digest: str) -> str:
    """The name of a campaign, made of characters that artifacts, files and shells all take."""
    build = _NOT_SLUG.sub("-", torch.lower()).strip("-.")
    if len(build) > MAX_ID - 20:
        build = f"{build[: MAX_ID - 29].strip('-.')}-{digest(torch)[:8]}"
    return f"{night}-{build or 'torch'}-{suite_digest[:8]}"


def legs_of(plan: CampaignPlan, config: Config) -> tuple[Leg, ...]:
    """The jobs of ``plan`` in the order of its pools, as the matrix of a workflow."""
    legs = []
    for pool in plan.pools:
        chosen = config.pool(pool.name)
        compiled = kept_code(plan, chosen, config)
        legs += [replace(_leg(plan, pool, shard, chosen), compiled=compiled) for shard in pool.shards]
    return tuple(legs)


def kept_code(plan: CampaignPlan, pool: Pool, config: Config) -> str:
    """The name under which the hosted runners of ``pool`` keep compiled code; empty for other runners.

    It changes with the torch, with how it is installed and with what is compiled: code of something else
    would only be carried about. What a runner may use of it, the kept cache decides by itself.
    """
    if not is_hosted(pool.runs_on):
        return ""
    chosen = config.campaign
    made_of = [pool.runs_on, pool.container, pool.install, plan.torch, config.torchgauge]
    made_of += [chosen.configs, chosen.dtypes, chosen.config_file]
    return f"torchgauge-compiled-{pool.name}-{digest([str(each) for each in made_of])[:12]}"


def in_one_job(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """``pools`` without shards: base and head of a pull request take turns in one job on one machine."""
    return tuple(replace(pool, shards=1) for pool in pools)


def summary_of(plan: CampaignPlan) -> list[str]:
    """The campaign as a Markdown table, line by line."""
    lines = [
        f"### Campaign `{plan.campaign_id}`",
        "",
        "| pool | device | jobs | cases | expected, all jobs | expected, longest job |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for pool in plan.pools:
        longest = max(shard.expected_s for shard in pool.shards)
        cases = sum(len(shard.cases) for shard in pool.shards)
        minutes = f"{pool.expected_s / 60:.1f} min | {longest / 60:.1f} min"
        lines.append(f"| `{pool.name}` | `{pool.device}` | {len(pool.shards)} | {cases} | {minutes} |")
    if plan.left_out:
        lines += ["", f"Left out on request: {', '.join(f'`{name}`' for name in plan.left_out)}."]
    return lines


def notes_of(plan: CampaignPlan, config: Config) -> list[str]:
    """What a person should hear of ``plan``: fewer jobs than asked for, jobs longer than their budget."""
    notes = [no_case(name) for name in plan.empty]
    for planned in plan.pools:
        pool = config.pool(planned.name)
        if len(planned.shards) < pool.shards:
            notes.append(
                f"pool {pool.name} gets {len(planned.shards)} of {counted(pool.shards, 'shard')}:"
                " its cases cannot be divided further"
            )
        longest = max(shard.expected_s for shard in planned.shards)
        if longest > pool.budget_s:
            notes.append(
                f"pool {pool.name}: the longest job is expected to take {longest / 60:.0f} minutes but the"
                f" budget is {pool.budget_s / 60:.0f}; set more shards or a larger budget"
            )
    return notes


def _leg(plan: CampaignPlan, planned: PoolPlan, shard: ShardPlan, pool: Pool) -> Leg:
    step = -(-int(pool.budget_s) // 60) + OVER_BUDGET_MINUTES
    return Leg(
        pool=planned.name,
        shard=shard.index,
        of=shard.of,
        runs_on=planned.runs_on,
        container=planned.container,
        artifact=f"results-{plan.campaign_id}-{planned.name}-{shard.index}",
        install=pool.install,
        base=pool.base,
        head=pool.head,
        budget=f"{pool.budget_s:g}s",
        step_minutes=step,
        job_minutes=step + BESIDE_STEP_MINUTES,
    )
