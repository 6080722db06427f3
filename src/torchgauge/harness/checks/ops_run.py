"""A campaign over operators: from the options of ``torchgauge ops judge`` to a plan, and back to its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.harness.planning.plan import select_groups
from torchgauge.harness.planning.selection import TIERS, Selection, parse_case_id
from torchgauge.harness.run.absent_devices import refuse_absent
from torchgauge.harness.run.campaigns import expand_devices, find_devices, placed, plan_of, resumed_campaign
from torchgauge.harness.run.defaults import check_settings
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.results.store import RunFolder, Store
from torchgauge.suites.ops.script import Shown, script
from torchgauge.suites.ops.suite import OpsSuite
from torchgauge.suites.ops.upstream import VARIANTS


def ops_campaign(options: Mapping[str, Any], progress: Progress) -> tuple[Campaign, RunFolder | None]:
    """The campaign that ``torchgauge ops judge`` asks for, and the folder of the run that it goes on with.

    Raises :class:`UsageError` for names that nothing answers to, and what :func:`refuse_absent` raises.
    """
    if options["resume"]:
        return resumed_campaign(options["resume"], progress, python=options["python"])
    if not options["device"]:
        raise UsageError("no device was given", hint="--device NAME; torchgauge devices lists them")
    there = interpreter(options["python"])
    targets = expand_devices(options["device"], there)
    devices = find_devices(targets, there)
    if options["tier"] not in TIERS:  # known before torch is asked for its operators, which takes seconds
        raise UnknownNameError("tier", options["tier"], TIERS)
    suite = OpsSuite(python=None if there.own else there.path, samples=options["samples"])
    suite = replace(suite, dtypes=options["dtype"] or suite.dtypes)
    selection = Selection(
        suites=(suite.name,),
        devices=targets,
        models=options["patterns"],
        modes=variants_named(options["variant"]),
        dtypes=options["dtype"] or every_dtype(suite),
        tier=options["tier"],
        shard=options["shard"],
    )
    groups = select_groups(selection, devices, {suite.name: suite})
    refuse_absent(there, groups, devices)
    settings, provenance = check_settings(options, calibrate=False, warm_compile=False)
    plan = placed(plan_of(groups, settings, [suite], selection.shard, provenance), there)
    store = Store.open(options["store"], create=True)
    return Campaign(plan, store, devices, {suite.name: suite}, progress, there.path), None


def variants_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """``names`` with ``all`` standing for every variant; raises :class:`UnknownNameError`."""
    for name in names:
        if name not in (*VARIANTS, "all"):
            raise UnknownNameError("variant", name, (*VARIANTS, "all"))
    return VARIANTS if "all" in names else names


def every_dtype(suite: OpsSuite) -> tuple[str, ...]:
    """All dtypes that any operator lists for any device."""
    listed = (entry.mode_dtypes.values() for entry in suite.models())
    return tuple(sorted({dtype for lists in listed for dtypes in lists for dtype in dtypes}))


def case_script(case: str) -> str:
    """A script that shows sample 0 of the case called ``case``; raises :class:`UsageError`.

    A row that failed holds the script of the sample that failed.
    """
    name = parse_case_id(case)
    if name.suite != OpsSuite.name or name.mode not in VARIANTS:
        raise UsageError(
            f"{case!r} is not a case of suite ops", hint="ops/OPERATOR:VARIANT:DTYPE:b1:eager@DEVICE"
        )
    device, _, index = name.device.partition(".")
    known = find_devices([name.device], interpreter(None))[device]
    place = f"{known.torch_type}:{index}" if index else str(known.torch_type)
    return script(Shown(name.model, name.dtype, name.mode, place, 0))
