"""A model of TorchBench as upstream runs it, in a process without torchgauge; prints one JSON object.

``torchbench_against_upstream.py`` starts it and gives it the model's recipe on stdin. It builds ``Model`` as
upstream's ``run.py`` does, calls ``invoke()``, and times further calls, short ones in blocks. Where a
compiler is named, ``--part step`` compiles what ``--torchdynamo inductor`` compiles: the whole of ``eval()``
or ``train()``, or ``forward()`` of a model in stages. ``--part module`` compiles the module alone, as
torchgauge does.

Two things are put right that would end most models before their first line, on both sides alike: two schemas
of torchvision are defined where its compiled operators do not load, and weights and configurations of a
network are replaced by random weights in the sizes that the recipe names.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import URLError

PRECISION = ["--precision", "fp32"]
REGION = "Torch-Compiled Region"
"""The event that dynamo's frame evaluation leaves in a profile for each compiled frame that it enters."""
WARM_STEPS, BLOCK_S = 2, 0.01
OFFLINE = {"LocalEntryNotFoundError", "OfflineModeIsEnabled"}
NO_MEMORY = "can't allocate memory"


def main() -> None:
    """Run one model and print how it ended."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("model")
    parser.add_argument("test", choices=("eval", "train"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--compiler", default="", help="back end of torch.compile; empty: eager")
    parser.add_argument("--part", choices=("step", "module"), default="step")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timed steps; three are timed at least")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-gib", type=float, default=0.0)
    given = parser.parse_args()
    recipe = json.loads(sys.stdin.read() or "{}")
    answer = os.fdopen(os.dup(1), "w")  # models print what they like
    os.dup2(2, 1)
    sys.argv = sys.argv[:1]
    if given.memory_gib:
        most = int(given.memory_gib * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    sys.path.insert(0, str(given.checkout.resolve()))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some models make folders where they stand
        try:
            told = run(given, recipe)
        except Exception as error:  # noqa: BLE001  it is the result of the model
            told = ended(error)
        os.chdir("/")
    print(json.dumps(told), file=answer, flush=True)


def run(given: argparse.Namespace, recipe: dict[str, Any]) -> dict[str, Any]:
    """Build the model, step it, and return what was seen."""
    import torch

    torch.set_num_threads(given.threads)
    without_network(recipe)
    folder = "canary_models" if recipe.get("canary") else "models"
    kind = import_module(f"torchbenchmark.{folder}.{given.model}").Model
    model = kind(test=given.test, device="cpu", batch_size=given.batch, extra_args=list(PRECISION))
    if given.compiler:
        compile_part(model, given)
    training = given.test == "train"
    before = sums() if training else {}
    began = time.perf_counter()
    returned = model.invoke()
    first_s = time.perf_counter() - began
    after = sums() if training else {}
    largest, finite = extent(list(parameters()) if training else returned)
    changed = before != after or any(each.grad is not None for each in parameters())
    seconds = timed(model.invoke, given.seconds)
    told = {
        "status": "nothing" if training and not changed else "ok" if finite else "nonfinite",
        "batch": int(model.batch_size),
        "largest": largest,
        "first_s": first_s,
        "seconds": seconds,
        "frames": entered(model.invoke) if given.compiler else 0,
    }
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]  # a frame may hold none
    if given.compiler and told["status"] == "ok" and not (graphs and told["frames"]):
        told["status"] = "uncompiled"
    return told


def compile_part(model: Any, given: argparse.Namespace) -> None:
    """Compile what upstream's ``apply_torchdynamo_args`` compiles without other options, or the module."""
    import torch

    if given.part == "module":
        model.set_module(torch.compile(model.get_module()[0], backend=given.compiler))
        return
    staged = all(hasattr(model, name) for name in ("forward", "backward", "optimizer_step"))
    name = "forward" if given.test == "train" and staged else given.test
    setattr(model, name, torch.compile(getattr(model, name), backend=given.compiler))
    torch._dynamo.reset()


def without_network(recipe: dict[str, Any]) -> None:
    """Let ``import torchvision`` succeed, and replace what is fetched by random weights of the same sizes."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    class Nothing(dict):  # type: ignore[type-arg]
        """Stands for weights that nobody fetched."""

    load = torch.nn.Module.load_state_dict

    def load_state_dict(self: Any, weights: Any, *args: Any, **kwargs: Any) -> Any:
        return None if isinstance(weights, Nothing) else load(self, weights, *args, **kwargs)

    torch.nn.Module.load_state_dict = load_state_dict
    torch.hub.load_state_dict_from_url = lambda *_, **__: Nothing()
    try:
        import_module("torchvision")
    except ImportError:
        pass
    except RuntimeError:  # operator torchvision::nms does not exist
        for name in [each for each in sys.modules if each.startswith("torchvision")]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
    if "torchvision" in recipe.get("libraries", ()):
        from torchvision.models._api import WeightsEnum

        WeightsEnum.get_state_dict = lambda *_, **__: Nothing()
    if "timm" in recipe.get("libraries", ()):
        import timm

        create = timm.create_model
        timm.create_model = lambda *args, **kwargs: create(*args, **{**kwargs, "pretrained": False})
    if "transformers" in recipe.get("libraries", ()):
        import transformers

        def from_pretrained(name: str, *_: Any, **__: Any) -> Any:
            fields = dict(recipe.get("configs", {})[name])
            return transformers.AutoConfig.for_model(**fields)

        transformers.AutoConfig.from_pretrained = from_pretrained
        transformers.PretrainedConfig.from_pretrained = from_pretrained
    if "fastNLP" in recipe.get("libraries", ()):
        bert = import_module("fastNLP.modules.encoder.bert")

        def encoder(cls: Any, name: str, *_: Any, **__: Any) -> Any:
            file = bert._get_file_name_base_on_postfix(bert._get_bert_dir(name), ".json")
            return cls(config=bert.BertConfig.from_json_file(file))

        bert.BertModel.from_pretrained = classmethod(encoder)


def timed(step: Callable[[], Any], budget_s: float) -> list[float]:
    """Return the mean seconds of a step in each block; blocks follow warm steps and take ``budget_s`` in all.

    A block is one step or, of shorter ones, as many as take :data:`BLOCK_S`, as in torchgauge: the mean of
    short steps is above their median. There are three blocks at least.
    """
    for _ in range(WARM_STEPS):
        step()
    seconds: list[float] = []
    until = time.perf_counter() + budget_s
    while len(seconds) < 3 or time.perf_counter() < until:
        count, began = 0, time.perf_counter()
        while not count or time.perf_counter() - began < BLOCK_S:
            step()
            count += 1
        seconds.append((time.perf_counter() - began) / count)
    return seconds


def entered(step: Callable[[], Any]) -> int:
    """Return how many compiled frames one step enters, by its profile."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    return sum(event.name.startswith(REGION) for event in profile.events())


def parameters() -> Iterator[Any]:
    """Yield every parameter of this process that holds values."""
    import gc

    import torch

    found = (each for each in gc.get_objects() if issubclass(type(each), torch.nn.Parameter))
    return (each for each in found if not each.is_meta)


def sums() -> dict[int, tuple[float, float]]:
    """Return two sums over each parameter, which a step that trains changes."""
    tensors = [(id(each), each.detach().float()) for each in parameters()]
    return {key: (float(each.sum()), float(each.abs().sum())) for key, each in tensors}


def extent(value: Any) -> tuple[float | None, bool]:
    """Return the largest finite number in ``value``, and whether all of its numbers are finite."""
    import torch
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves(dict(value) if hasattr(value, "to_tuple") else value)
    tensors = [each.detach().float() for each in leaves if isinstance(each, torch.Tensor) and each.numel()]
    finite = all(bool(each.isfinite().all()) for each in tensors)
    most = [float(each.nan_to_num(0.0, 0.0, 0.0).abs().max()) for each in tensors]
    return max(most, default=None), finite


def ended(error: Exception) -> dict[str, Any]:
    """Return how ``error`` ended the model: a package or a download is missing, memory is, or it failed."""
    said = {"type": type(error).__name__, "problem": " ".join(str(error).split())[:400]}
    link: BaseException | None = error
    while link is not None:
        gone = isinstance(link, ModuleNotFoundError) and not str(link.name).startswith("torchbenchmark")
        if gone or isinstance(link, URLError) or type(link).__name__ in OFFLINE:
            return {"status": "skipped", **said}
        if isinstance(link, MemoryError) or NO_MEMORY in str(link):
            return {"status": "memory", **said}
        link = link.__cause__
    return {"status": "raised", **said}


if __name__ == "__main__":
    main()
