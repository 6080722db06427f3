"""Selectors and settings that several verbs share, declared once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from torchgauge.cli.option_values import (
    LEAST_WORKER,
    THREADS,
    Bytes,
    CommaList,
    FiniteRange,
    Seconds,
    named,
    pairs,
)
from torchgauge.errors import UsageError
from torchgauge.harness.planning.selection import Selection, suites_and_models
from torchgauge.records import PRETRAINED, RANDOM_WEIGHTS, Provenance, RunSettings
from torchgauge.records.case import MOST_PROCESSES

Command = TypeVar("Command", bound=Callable[..., Any])


def store_option(what: str) -> Callable[[Command], Command]:
    """The one store of a command; ``what`` says what it is to it."""
    return click.option(
        "--store", default="./torchgauge-results", show_default=True, callback=named, help=what
    )


STORES = click.option(
    "--store",
    "stores",
    multiple=True,
    default=("./torchgauge-results",),
    show_default=True,
    callback=named,
    help="store to read; repeatable",
)
"""The stores that a command reads together."""

PYTHON = click.option(
    "--python",
    metavar="PATH",
    help="Python interpreter or environment that measures (default: torchgauge's own)",
)

NO_FALLBACK_CHECK = click.option(
    "--no-fallback-check",
    is_flag=True,
    help="do not check for operators that fall back to the host CPU",
)


ATTEMPTS = click.option(
    "--attempts",
    type=click.IntRange(1, 100),
    help="attempts per case (default: 1)",
)

MIXED_VERSIONS = click.option(
    "--mixed-versions",
    is_flag=True,
    help="accept parts of one run from different versions of torch or torchgauge",
)

MAX_LAUNCHES = click.option(
    "--max-launches",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="maximum number of launches (process starts)",
)

MAX_TIME = click.option("--max-time", type=Seconds(), help="time limit, such as 30m")

DURATIONS = click.option(
    "--durations",
    metavar="PATH",
    help="earlier durations, to balance shards: a store, or a file of `plan --save-durations`",
)


def _list(name: str, what: str, *default: str) -> Callable[[Command], Command]:
    """An option of words that are separated by commas."""
    return click.option(*name.split(), type=CommaList(), default=default, help=what)


def selectors(command: Command) -> Command:
    """Suites and the filters on their cases."""
    options = [
        click.argument("suite", nargs=-1),
        _list("--suite more_suites", "suites (sets of models), beside SUITE; `all`: every suite"),
        _list("--device", "device names, as NAME or NAME.INDEX; `all`: every device"),
        _list("--models", "model names, globs or /regex/; overrides --tier"),
        _list(
            "--mode",
            "inference,training,... (default: the model's, else inference)",
        ),
        _list(
            "--config",
            "how models run: eager,inductor,... (default: the model's, else eager,inductor)",
        ),
        _list(
            "--dtype",
            "float32,bfloat16,float16,amp (bfloat16),amp_float16 (default: the model's, else float32)",
        ),
        click.option(
            "--tier", default="smoke", help="how many models: smoke, standard or full (default: smoke)"
        ),
        click.option("--size", default="small", help="model size: small or full (default: small)"),
        click.option(
            "--batch-profile",
            help="batch sizes: small or pytorch (default: pytorch with --size full, else small)",
        ),
        click.option(
            "--batch",
            type=click.IntRange(1, (1 << 31) - 1),  # libraries of devices count items in 32 bits
            help="batch size; overrides --batch-profile",
        ),
        click.option(
            "--processes",
            type=click.IntRange(2, MOST_PROCESSES),
            help="processes of distributed models (default: the model's)",
        ),
        click.option("--pretrained", is_flag=True, help="use published weights, which may be downloaded"),
        click.option("--shard", default="1/1", help="i/n: only the i-th of n parts (default: 1/1)"),
    ]
    return _apply(options, command)


def _use_expectations(
    _context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Put files of a person's own before all others, through the environment; they are read first."""
    from pathlib import Path

    from torchgauge.suites.expectations import VARIABLE, load_expectations

    files = [str(_absolute(file)) for file in value]
    for file in files:
        load_expectations(Path(file))
    if files:
        os.environ[VARIABLE] = os.pathsep.join([*files, *filter(None, [os.environ.get(VARIABLE)])])
    return tuple(files)


EXPECTATIONS = click.option(
    "--expectations",
    metavar="FILE",
    multiple=True,
    expose_value=False,
    callback=_use_expectations,
    help="YAML with expected failures (or TORCHGAUGE_EXPECTATIONS); repeatable",
)


def _use_torchbench(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Name the checkout to the suite and to every worker, through the environment."""
    from torchgauge.suites.torchbench.checkout import VARIABLE

    path = _absolute(value)
    if path is not None and not os.path.isdir(path):  # noqa: PTH112  links are kept as typed
        raise UsageError(
            f"--torchbench {value}: no such folder",
            hint="torchgauge suites fetch torchbench --into DIR, then pass --torchbench DIR",
        )
    if path is not None:
        os.environ[VARIABLE] = path
    return os.environ.get(VARIABLE)


TORCHBENCH = click.option(
    "--torchbench",
    metavar="PATH",
    callback=_use_torchbench,
    help="checkout of pytorch/benchmark (or TORCHGAUGE_TORCHBENCH)",
)


def sources(command: Command) -> Command:
    """Add the options that name configurations and models from outside of torchgauge."""
    options = [
        click.option("--config-file", metavar="FILE", help="YAML with your own configurations"),
        TORCHBENCH,
    ]
    return _apply(options, command)


def measuring(command: Command) -> Command:
    """How cases are measured."""
    options = [
        click.option(
            "--threads",
            type=THREADS,
            help="CPU threads of each measuring process (default: torch's, but one CPU stays free)",
        ),
        click.option(
            "--precision",
            type=FiniteRange(0.0001, 1.0),
            help="target half-width of the confidence interval, as a share of the median (default: 0.01)",
        ),
        click.option(
            "--measure-seconds",
            type=FiniteRange(0.01),
            help="seconds of measuring per case (default: 2 in run and ci run, else 3)",
        ),
        click.option(
            "--timeout",
            type=FiniteRange(0.1),
            help="timeout of each phase, such as compilation, in seconds",
        ),
        click.option(
            "--memory-limit",
            type=Bytes(LEAST_WORKER),
            help="memory limit of a measuring process, such as 4G (default: 90 % of free memory)",
        ),
        click.option("--no-accuracy", is_flag=True, help="do not check results"),
        click.option("--no-memory-probe", is_flag=True, help="do not measure peak memory"),
        click.option("--no-warm-compile", is_flag=True, help="do not time compilation with a filled cache"),
        click.option("--no-calibration", is_flag=True, help="do not measure the speed of the device itself"),
    ]
    return _apply(options, command)


QUIET_WAIT = click.option(
    "--quiet-wait",
    metavar="SECONDS",
    type=FiniteRange(0.0),
    help="longest extra wait for a quiet machine, in seconds (default: 10)",
)

PREFETCH = click.option(
    "--prefetch",
    type=click.IntRange(1),
    help="number of models prepared in parallel (default: from cores and memory)",
)


def campaigning(command: Command) -> Command:
    """How a campaign is measured, what of it is compiled cold, and where compiled code is kept."""
    options = [
        QUIET_WAIT,
        click.option(
            "--cold-compile",
            metavar="all|none|1/N",
            help="share of models that are also compiled with an empty cache (default: 1/14)",
        ),
        click.option(
            "--compile-cache",
            metavar="DIR|none",
            help="folder of compiled code (or TORCHGAUGE_COMPILE_CACHE; default: in the user's cache)",
        ),
        NO_FALLBACK_CHECK,
        PREFETCH,
    ]
    return sources(PYTHON(measuring(_apply(options, command))))


def _compilation_of(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of :func:`campaigning`; none for a verb that does not have them."""
    from torchgauge.harness.cold_sampling import NIGHTLY, checked
    from torchgauge.harness.compile_cache import chosen_folder

    if "compile_cache" not in options:
        return {}
    return {
        "cold_compile": checked(options["cold_compile"] or NIGHTLY),
        "compile_cache": chosen_folder(options["compile_cache"]),
    }


def selection_of(suite: tuple[str, ...], options: dict[str, Any]) -> Selection:
    """Return the selection that the shared options describe."""
    if not options["device"]:
        raise UsageError("no device was given", hint="--device NAME; torchgauge devices lists them")
    suites, models = suites_and_models((*suite, *options["more_suites"]))
    return Selection(
        suites=suites,
        devices=options["device"],
        models=(*options["models"], *models),
        modes=options["mode"],
        configurations=options["config"],
        dtypes=options["dtype"],
        tier=options["tier"],
        size=options["size"],
        batch_profile=options["batch_profile"],
        batch=options["batch"],
        weights=PRETRAINED if options["pretrained"] else RANDOM_WEIGHTS,
        configuration_file=options["config_file"],
        shard=options["shard"],
        processes=options.get("processes"),
    )


def settings_of(
    options: dict[str, Any], before: RunSettings | None = None
) -> tuple[RunSettings, tuple[Provenance, ...]]:
    """Run settings, and where each that is no default came from; what is not typed is as ``before``."""
    from dataclasses import fields, replace

    from torchgauge.harness.run.defaults import CAMPAIGN_MEASURE_S, default_prefetch, sources_of
    from torchgauge.records import Deadlines

    flags: dict[str, Any] = {
        "threads": options.get("threads"),
        "precision_target": options.get("precision"),
        "measure_budget_s": options.get("measure_seconds"),
        "quiet_wait_s": options.get("quiet_wait"),
        "memory_limit_bytes": options.get("memory_limit"),
        "prefetch": options.get("prefetch"),
        "budget_s": options.get("budget"),
        "attempts": options.get("attempts"),
        "configuration_file": _absolute(options.get("config_file")),
        "torchbench": _absolute(options.get("torchbench")),
        "accuracy": False if options.get("no_accuracy") else None,
        "memory_probe": False if options.get("no_memory_probe") else None,
        "warm_compile": False if options.get("no_warm_compile") else None,
        "fallback_check": False if options.get("no_fallback_check") else None,
        "calibrate": False if options.get("no_calibration") else None,
    }
    timeout = options.get("timeout")
    if timeout is not None:
        flags["deadlines"] = Deadlines(**{item.name: timeout for item in fields(Deadlines)})
    given = {name: value for name, value in flags.items() if value is not None}
    machine: dict[str, Any] = {"prefetch": default_prefetch()} if options.get("prefetch", 0) is None else {}
    campaign = {"measure_budget_s": CAMPAIGN_MEASURE_S} if "prefetch" in options else {}
    settings = replace(
        before or RunSettings(), **{**campaign, **machine, **_compilation_of(options), **given}
    )
    typed = {*given, *(name for name in ("cold_compile", "compile_cache") if options.get(name))}
    return settings, sources_of(settings, typed, timeout, machine)


def typed_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the command line names, by their names; a variable is not typed."""
    source = click.get_current_context().get_parameter_source("torchbench")
    typed = options if source is click.core.ParameterSource.COMMANDLINE else {**options, "torchbench": None}
    settings, sources = settings_of(typed)
    return {each.name: getattr(settings, each.name) for each in sources if each.source == "flag"}


def _absolute(path: str | None) -> str | None:
    """``path`` from the root, so that a row's command works in any folder."""
    return None if path is None else os.path.abspath(path)  # noqa: PTH100  links are kept as typed


def _apply(options: list[Any], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


EXECUTOR = click.option(
    "--executor",
    envvar="TORCHGAUGE_EXECUTOR",
    default="local",
    help="where to measure, such as local or slurm (default: TORCHGAUGE_EXECUTOR, or local)",
)

EXECUTOR_OPTION = click.option(
    "--executor-option",
    "executor_words",
    metavar="K=V",
    multiple=True,
    callback=pairs,
    help="option of the executor; repeatable",
)
