"""Build the models of a user's file in the worker, from what its functions return."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torchgauge.errors import MissingPackageError
from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.called import as_module, set_mode, uncompiled, without_compiled_parts
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.leaves import leaves
from torchgauge.suites.losses import loss_in
from torchgauge.suites.model_code import package_root
from torchgauge.suites.placing import placed, tensors
from torchgauge.suites.suite import HOST, BuiltWorkload, seed_host

STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "recording of gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
    "autocast": (lambda: torch.is_autocast_enabled(HOST), lambda on: torch.set_autocast_enabled(HOST, on)),
    "default device": (torch.get_default_device, lambda _: torch.set_default_device(None)),
}
"""What a file may change for the whole process, and what is put back."""
_NO_DEVICE = re.compile("not compiled with|NVIDIA driver|GPUs are available")
"""What PyTorch says of a device that it was not built for, or that this machine lacks."""
_NOT_THEIRS = {"torchgauge", "__main__", *sys.stdlib_module_names}
TRY = "Try: return module, (x,)"
"""What a function returns; keyword inputs are a mapping in the place of the tuple, or after it."""


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """Return what the function of the user's file returns, on the host, in train or eval mode.

    Raises what the file raises, ``TypeError`` for a result that is not a module with inputs, and
    ``NotImplementedError`` for training without a loss.
    """
    named = f"{Path(recipe['file']).name}: {recipe['function']}()"
    source, returned, notes = _returned(workload, recipe, named)
    model, args, kwargs = _parts(returned, named)
    module, training = as_module(model), LOSS in wanted(workload)
    if without_compiled_parts(module) or uncompiled(model) is not model:
        notes += ("the file's torch.compile is ignored: the configuration selects the compiler",)
    parameters, inputs = [*module.parameters()], [tensor for _, tensor in tensors((args, kwargs), "")]
    if any(tensor.is_meta for tensor in inputs) or (parameters and all(each.is_meta for each in parameters)):
        why = "".join(f" ({note})" for note in notes if "default device" in note)
        raise TypeError(
            f"{named} returned tensors on device meta, without values{why}. Try: build on the host"
        )
    if training and not any(parameter.requires_grad for parameter in parameters):
        lack = "whose parameters all have requires_grad=False" if parameters else "without parameters"
        raise NotImplementedError(f"{named} returned a module {lack}, which cannot be trained")
    set_mode(module, training)
    batch, takes = workload.batch, "batch" in recipe["takes"]
    only_tensors = all(isinstance(each, torch.Tensor) for each in (*args, *kwargs.values()))
    fits = any(each.ndim and (len(each) % batch == 0 or batch in each.shape) for each in inputs)
    if takes and only_tensors and not fits:
        takes = False
        notes += (f"no input has a dimension of the batch size {batch}",)
    return BuiltWorkload(
        module=module,
        args=args,
        kwargs=kwargs,
        loss=_loss_of(source, args, kwargs, named) if training else None,
        items_per_step=batch if takes else _first_size(args, kwargs),
        item="item",
        notes=notes,
    )


def _returned(
    workload: Workload, recipe: dict[str, Any], named: str
) -> tuple[ModuleType, Any, tuple[str, ...]]:
    """Import the file and call its function; return both results, with notes of changes to the process.

    Raises what the file raises, with the name of the file where Python's message lacks it.
    """
    file, running = Path(recipe["file"]), f"{Path(recipe['file']).name}, while it was imported,"
    kept = {name: get() for name, (get, _) in STATE.items()}
    values = {
        "batch": workload.batch,
        "seed": workload.seed,
        "device": HOST,
        "dtype": torch.float32 if workload.dtype.startswith(AUTOCAST) else getattr(torch, workload.dtype),
    }
    try:
        source = _imported(file, recipe.get("tree", ""))
        torch.manual_seed(workload.seed)
        seed_host(workload.seed)
        running = named
        returned = getattr(source, recipe["function"])(**{name: values[name] for name in recipe["takes"]})
        if "tree" in recipe:
            _refuse_elsewhere(Path(recipe["tree"]), Path(recipe["repository"]))
        changed = {name: get() for name, (get, _) in STATE.items()}
    except SystemExit as error:
        hint = (
            ""
            if running is named
            else '. Try: write if __name__ == "__main__": before the code that reads arguments'
        )
        raise RuntimeError(f"{running} called sys.exit({error.code}){hint}") from error
    except ModuleNotFoundError as error:
        frames = traceback.extract_tb(error.__traceback__)
        importer = [frame.filename for frame in frames if not frame.filename.startswith("<")][-1]
        message = f"{Path(importer).name} imports {error.name}, which is neither beside it nor installed"
        raise MissingPackageError(message, hint=f"pip install {str(error.name).partition('.')[0]}") from error
    except (AssertionError, RuntimeError) as error:
        if not _NO_DEVICE.search(str(error)):
            raise
        hint = "leave the device out: the module is built on the host and then moved"
        raise RuntimeError(f"{running} needs a device that is not here ({error}). Try: {hint}") from error
    finally:
        for name, (_, put_back) in STATE.items():
            put_back(kept[name])
    differing = [name for name in STATE if changed[name] != kept[name]]
    return (
        source,
        returned,
        tuple(f"{file.name} sets the {name} to {changed[name]}; reset to {kept[name]}" for name in differing),
    )


def _imported(file: Path, tree: str = "") -> ModuleType:
    """Import ``file`` as ``python FILE`` would find its neighbours, or as a part of its package.

    In the ``tree`` of a revision, packages of the tree take the place of those that are installed.
    """
    root = package_root(file)
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    sys.path[:0] = [str(root), *((str(Path(tree, "src")), tree) if tree else ())]
    sys.path.append(str(file.parent))
    sys.argv = [str(file)]
    if "." in name:
        return importlib.import_module(name.removesuffix(".__init__"))
    if (known := sys.modules.get(name)) is not None and getattr(known, "__file__", None) == str(file):
        return known
    name = f"own_{name}" if name in sys.modules or name in sys.stdlib_module_names else name
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse_elsewhere(tree: Path, repository: Path) -> None:
    """Raise :class:`MissingPackageError` for a module of ``repository`` from outside its ``tree``."""
    for name, module in [*sys.modules.items()]:
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if top in _NOT_THEIRS or not file or not Path(file).is_absolute() or Path(file).is_relative_to(tree):
            continue
        path = Path(file).resolve()
        local = path.is_relative_to(repository) and not {"site-packages", "dist-packages"} & {*path.parts}
        copies = (
            base / part for base in (tree, tree / "src") for part in (f"{top}.py", f"{top}/__init__.py")
        )
        if not path.is_relative_to(tree) and (local or any(copy.is_file() for copy in copies)):
            raise MissingPackageError(
                f"module {name} is imported from {path}, not from the revision in {tree}",
                hint=f"pip uninstall {top}, or import {top} from a folder of the repository",
            )


def _parts(returned: Any, named: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return module, positional and keyword inputs of what a function ``returned``."""
    parts = returned if isinstance(returned, tuple) else (returned,)
    module, inputs = (parts[0] if parts else None), parts[1:]
    if not callable(module) or isinstance(module, (type, torch.Tensor)) or len(inputs) > 2:
        raise TypeError(f"{named} returned {_described(returned)}, not a module with its inputs. {TRY}")
    if not inputs:
        example = getattr(module, "example_inputs", None)
        example = example() if callable(example) else getattr(module, "example_input_array", None)
        if example is None:
            raise TypeError(
                f"{named} returned a module without inputs. {TRY}, or define example_inputs() in the module"
            )
        inputs = (example,)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    for given in inputs:
        if isinstance(given, Mapping):
            kwargs = dict(given)
        else:
            args += tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if any(type(value).__module__ == "numpy" for value in (*args, *kwargs.values())):
        raise TypeError(f"{named} returned arrays of numpy as inputs. Try: torch.from_numpy(array)")
    return module, args, kwargs


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(part).__name__ for part in value)})"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _first_size(args: Any, kwargs: Any) -> int:
    """Return the first dimension of the first input that has one, else 1: the items of a step."""
    tensors = (leaf for _, leaf in leaves((args, kwargs), "") if isinstance(leaf, torch.Tensor) and leaf.ndim)
    return max(1, next((int(tensor.shape[0]) for tensor in tensors), 1))


def _loss_of(source: ModuleType, args: Any, kwargs: Any, named: str) -> Callable[[Any], Any]:
    """Return the loss of an output: by ``loss(output, *inputs)`` of the file, or what the module returns."""
    own = getattr(source, "loss", None)
    inputs: dict[tuple[Any, Any], tuple[Any, Any]] = {}

    def loss(output: Any) -> Any:
        if own is None:
            scalar = loss_in(output)
        else:
            first = next(leaf for _, leaf in leaves(output, "") if isinstance(leaf, torch.Tensor))
            place = first.device, first.dtype
            if place not in inputs:
                inputs[place] = placed(None, args, kwargs, *place)[1:3]
            scalar = loss_in(own(output, *inputs[place][0], **inputs[place][1]))
        if isinstance(scalar, torch.Tensor) and not scalar.ndim:
            return scalar
        if own is not None:
            file = Path(str(source.__file__)).name
            raise TypeError(f"{file}: loss() returned {_described(scalar)}, not a scalar. Try: loss.mean()")
        raise NotImplementedError(
            f"{named} has no loss: training needs a module that returns a scalar or an object with "
            "`.loss`, or a function `loss(output, *inputs)` in the file"
        )

    return loss
