"""Build a model of TorchBench from a checkout; worker side, one model per process.

Importing TorchBench changes its process (seeds, flags, ``torch.manual_seed``, a package called ``utils``), so
it happens here and nowhere else. Precision and batch size are always given: what upstream would choose
depends on the device's name.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.errors import MissingDataError, NotOfferedError
from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.suite import HOST, BuiltWorkload
from torchgauge.suites.torchbench.checkout import VARIABLE
from torchgauge.suites.torchvision_schemas import define_missing_schemas

if TYPE_CHECKING:
    from torchgauge.suites.torchbench.steps import TorchBenchWorkload

_FLOAT32 = ("float32", AUTOCAST)
_ENV_CHECK = "torchbenchmark.util.env_check"
UNLISTED = "torchgauge has no data for this model"
"""Fact of the row of a model that only the checkout has: in float32, a step is upstream's own."""


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The model that ``workload`` names, with random weights unless it says ``pretrained``.

    Raises :class:`MissingPackageError`, :class:`MissingDataError`, :class:`NoNetworkError` and
    :class:`NotOfferedError`, each with upstream's true reason.
    """
    notes = define_missing_schemas()
    from torchgauge.suites.torchbench.offline import Offline
    from torchgauge.suites.torchbench.reasons import Facts, explained
    from torchgauge.suites.torchbench.steps import TorchBenchWorkload
    from torchgauge.suites.torchbench.synthetic_data import places_of, provide

    if not os.environ.get(VARIABLE):
        raise MissingDataError("no checkout of pytorch/benchmark was given", hint="--torchbench PATH")
    checkout = Path(os.environ[VARIABLE]).resolve()
    requirements, data = tuple(recipe.get("requirements", ())), recipe.get("data", "")
    facts = Facts(workload.model, checkout, requirements, data, places_of(recipe))
    with explained(facts):
        given = provide(workload, recipe, checkout)
        facts.built_from, facts.inputs = given.root, given.said
        if workload.weights == "random":
            offline = Offline(recipe.get("configs", {}), given.without_weights)
            facts.refused = offline.refused
            offline.install(recipe.get("libraries", ()))
            # upstream requires the token for a download; random weights need none
            if token := recipe.get("variable"):
                os.environ.setdefault(token, "none, since nothing is downloaded")
        elif (token := recipe.get("variable")) and token not in os.environ:
            raise MissingDataError(
                f"{token} is not set in the worker: the hub requires a token for these weights",
                hint=f"export {token}=TOKEN TORCHGAUGE_PASS_ON={token}",
            )
        upstream = Upstream(workload, recipe, given.root)
        model = upstream.construct(HOST)
        module, args, kwargs = _module_of(model)
    built = TorchBenchWorkload(
        module=module,
        args=args,
        kwargs=kwargs,
        items_per_step=int(model.batch_size),
        item="item",
        notes=notes + upstream.notes(model),
        facts={"inputs": given.said} if given.said else {},
        stands_for=given.said if given.synthetic else "",
    )
    if recipe.get("unlisted"):
        built.facts["data"] = UNLISTED
    return _with_steps(built, upstream, model, facts)


class Upstream:
    """One model class of the checkout, and how instances of it are made."""

    def __init__(self, workload: Workload, recipe: Mapping[str, Any], checkout: Path) -> None:
        """Import the class; raises :class:`NotOfferedError` for a test that upstream does not declare."""
        self.workload, self.recipe, self.checkout = workload, recipe, checkout
        self.test = "train" if LOSS in wanted(workload) else "eval"
        enter_checkout(checkout)
        self.kind = load_class(workload.model, canary=bool(recipe.get("canary", False)))
        if self.test == "train" and getattr(self.kind, "DEFAULT_TRAIN_BSIZE", None) is None:
            raise NotOfferedError("upstream declares no training: DEFAULT_TRAIN_BSIZE is None")

    @property
    def needs_gradients(self) -> bool:
        """Whether inference differentiates, as upstream's list says."""
        return self.workload.model in importlib.import_module(_ENV_CHECK).USE_GRAD_IN_INFERENCE

    def construct(self, device: str) -> Any:
        """An instance on ``device`` from the workload's seed, its step not yet taken."""
        with upstream_seed(self.workload.seed), scratch_folder():
            model = self.kind(
                test=self.test,
                device=device,
                batch_size=self.workload.batch,
                extra_args=["--precision", "fp32"],
            )
        step = getattr(model, self.test, None)
        if step is not None and only_refuses(step):
            model.invoke()
        return model

    def notes(self, model: Any) -> tuple[str, ...]:
        """What a reader of the row must know: upstream's own skips, another batch than was asked for."""
        from torchgauge.suites.leaves import nodes

        notes = [f"upstream's {self.test}() with --precision fp32"]
        if int(model.batch_size) != self.workload.batch:
            notes.append(f"upstream uses batch {model.batch_size} instead of {self.workload.batch}")
        inputs = [part for _, part in nodes(_module_of(model)[1:], "inputs")]
        sizes = {size for part in inputs for size in getattr(part, "shape", ())}
        if int(model.batch_size) not in sizes | {len(part) for part in inputs if isinstance(part, list)}:
            notes.append(f"no input has size {model.batch_size}, the batch that the throughput counts")
        notes += [
            f"upstream's CI skips this model: metadata.yaml has {skip}"
            for skip in (model.metadata or {}).get("not_implemented") or ()
            if skip.get("device") in {None, HOST} and skip.get("test") in {None, self.test}
        ]
        return tuple(notes)


def enter_checkout(checkout: Path) -> None:
    """Put ``checkout`` first on this process's path, and hide the process's own arguments from models."""
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    sys.argv = sys.argv[:1]
    importlib.invalidate_caches()


def load_class(name: str, *, canary: bool = False) -> Any:
    """A fresh subclass of the class ``Model`` in the folder called ``name``.

    Fresh, because upstream writes a model's name into its class, and a class may serve several models.
    """
    torchbenchmark: Any = importlib.import_module("torchbenchmark")
    folder = "canary_models" if canary else "models"
    if not canary and (Path(torchbenchmark.__path__[0]) / "models/fb" / name / "__init__.py").is_file():
        folder = "models.fb"
    module = importlib.import_module(f"torchbenchmark.{folder}.{name}")
    base = getattr(module, "Model", None)
    if base is None:
        raise NotOfferedError(f"torchbenchmark/{folder}/{name} defines no class Model")
    return type(base)(base.__name__, (base,), {"name": name, "__module__": base.__module__})


@contextmanager
def upstream_seed(seed: int) -> Iterator[None]:
    """Construct with ``seed``: upstream seeds with its own constant and replaces ``torch.manual_seed``."""
    import torch

    true: Any = torch.manual_seed
    env_check: Any = importlib.import_module(_ENV_CHECK)
    env_check.MAIN_RANDOM_SEED = seed
    try:
        yield
    finally:
        torch.manual_seed = true


@contextmanager
def scratch_folder() -> Iterator[None]:
    """Construct in a temporary working directory: some models make folders where they stand."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def only_refuses(method: Any) -> bool:
    """Whether the body of ``method`` is a single ``raise``, so that calling it costs nothing."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return False
    body = [
        item
        for item in getattr(tree.body[0], "body", ())
        if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
    ]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def _module_of(model: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The module of ``model`` with the arguments of one call, as ``get_module()`` pairs them."""
    module, inputs = model.get_module()
    if isinstance(inputs, Mapping):
        return module, (), dict(inputs)
    return module, tuple(inputs), {}


def _with_steps(built: TorchBenchWorkload, upstream: Upstream, model: Any, facts: Any) -> BuiltWorkload:
    from torch import nn

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.torchbench.step_state import Snapshot
    from torchgauge.suites.torchbench.steps import Instance, InvokeSteps, ModuleSteps, WholeStep

    training, recipe = upstream.test == "train", upstream.recipe
    beyond = recipe.get("beyond", "") if not training else ""
    float32, unlisted = upstream.workload.dtype.startswith(_FLOAT32), recipe.get("unlisted", False)
    default = "invoke" if unlisted and float32 else "module"
    if not training and recipe.get("eval_step", default) == "module":
        if unlisted:
            built.facts["data"] += f": in {upstream.workload.dtype}, a step calls its module, not its eval()"
        built.module.eval()
        built.steps = ModuleSteps(facts)
        if beyond:
            built.facts["step"] = f"the module only: upstream's eval() also {beyond}{_share(recipe)}"
        if dtypes := _cast_from(built, upstream.workload.dtype):
            built.facts["upstream_dtypes"] = f"upstream's {dtypes} is cast to the case's dtype"
        return built
    if not float32:
        raise NotOfferedError(f"upstream's own step requires float32, not {upstream.workload.dtype}")

    def instance(made: Any) -> tuple[Instance, tuple[str, ...]]:
        silenced = silence_modules(nn.ModuleList(Snapshot(made).modules)) if training else ()
        module, args, kwargs = _module_of(made)
        if recipe.get("compiled") == "step" or (unlisted and not _accepts_modules(made)):
            module = WholeStep(made, module, upstream.test)
            if training:  # the first step fills the optimizer, and is other code than those that are timed
                made.invoke()
        return Instance(made, module, Snapshot(made), {"args": args, "kwargs": kwargs}), silenced

    host, silenced = instance(model)
    built.module = host.module
    built.steps = InvokeSteps(
        host,
        lambda device: instance(upstream.construct(device))[0],
        facts,
        training=training,
        gradients=training or upstream.needs_gradients,
    )
    part = f"all of {upstream.test}()" if isinstance(host.module, WholeStep) else "its module"
    built.notes += (
        *silenced,
        f"a step is upstream's invoke(); compiled configurations compile {part}",
        "timed steps go on from block to block",
    )
    if beyond:
        built.facts["step"] = f"upstream's invoke(): it {beyond}"
    built.wrappable = False
    if isinstance(host.module, WholeStep):
        built.args, built.kwargs = (), {}
    return built


def _accepts_modules(model: Any) -> bool:
    """Return whether ``set_module()`` of upstream's object replaces its module, instead of raising."""
    from torch import nn

    from torchgauge.suites.torchbench.steps import has_usual_set_module

    if has_usual_set_module(model):
        return isinstance(getattr(model, "model", None), nn.Module)
    return not only_refuses(type(model).set_module)


def _cast_from(built: TorchBenchWorkload, dtype: str) -> str:
    """Return the floating-point dtypes of upstream's that a case in float32 casts; empty for other cases."""
    from torchgauge.suites.leaves import nodes

    if not dtype.startswith(_FLOAT32):
        return ""
    parts = [part for _, part in nodes((built.args, built.kwargs), "inputs")]
    parts += getattr(built.module, "parameters", list)()
    floating = {part.dtype for part in parts if getattr(part, "is_floating_point", bool)()}
    return ", ".join(sorted({str(each).removeprefix("torch.") for each in floating} - {"float32"}))


def _share(recipe: Mapping[str, Any]) -> str:
    """Return the share of the time of ``eval()`` that a step omits, empty where it was not measured."""
    share = recipe.get("left_out")
    if share is None:
        return ""
    return f" ({f'{share:.0%}' if share else 'less than 1%'} of eval()'s time on a CPU)"
