"""Code of a kept cache is used only with the lowerings, passes and generators that made it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge.records import Result, Status

pytestmark = pytest.mark.torch
SUITE = """
from pathlib import Path
from torchgauge.suites.catalog import YamlSuite

SUITE = YamlSuite("extended", "for tests only", Path(__file__).parent / "suite.yaml", "extended.models:build")
"""
MODELS = """
import torch
from torchgauge.suites.suite import BuiltWorkload
from extended import part

def build(workload, recipe):
    module = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()).eval()
    return BuiltWorkload(module=module, args=(torch.randn(4, 32),), items_per_step=4)
"""
LOWERING = """
import torch
from torch._inductor.lowering import lowerings, register_lowering
from extended.factor import FACTOR

relu = torch.ops.aten.relu.default
plain, times = lowerings[relu], lowerings[torch.ops.aten.mul.Tensor]

@register_lowering(relu, type_promotion_kind=None)
def scaled(x):
    return times(plain(x), FACTOR)
"""
PASS = """
import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from extended.factor import FACTOR

class Pass(CustomGraphPass):
    def __call__(self, graph):
        for node in graph.nodes if FACTOR != 1.0 else ():
            if node.target is torch.ops.aten.relu.default:
                node.target = torch.ops.aten.sigmoid.default

    def uuid(self):
        return "always the same"

config.post_grad_custom_post_pass = Pass()
"""
NO_FILE = """
from torch._inductor import lowering
exec("def scaled(x): return x", {"__name__": "nowhere"}, space := {})
lowering.lowerings["an operator"] = space["scaled"]
"""


def write(folder: Path, part: str, factor: float) -> None:
    """Write a suite in whose process ``part`` extends inductor, with ``factor`` as its only number."""
    package, about = folder / "extended", folder / "extended-1.0.dist-info"
    files = {
        package / "__init__.py": SUITE,
        package / "models.py": MODELS,
        package
        / "suite.yaml": "suite: extended\nmodels:\n  - {name: relu, tiers: [smoke], batch: {inference: 4}}\n",
        package / "part.py": part,
        package / "factor.py": f"FACTOR = {factor}\n",
        about / "METADATA": "Metadata-Version: 2.1\nName: extended\nVersion: 1.0\n",
        about / "entry_points.txt": "[torchgauge.suites]\nextended = extended:SUITE\n",
    }
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def measured(box: Any, folder: Path) -> Result:
    """Run the suite in ``folder`` with a cache that outlives the run; return the row of inductor."""
    box.measure(
        *("extended", "--device", "cpu", "--config", "eager,inductor", "--measure-seconds", "0.1"),
        *("--cold-compile", "none", "--compile-cache", str(folder / "kept")),
        PYTHONPATH=f"{box.environment['PYTHONPATH']}:{folder}",
    )
    return next(row for row in box.rows() if row.case.configuration.compiled)


@pytest.mark.parametrize("part", [LOWERING, PASS], ids=["lowering", "pass"])
def test_code_of_a_former_version_is_not_used(
    make_sandbox: Callable[[], Any], tmp_path: Path, part: str
) -> None:
    """A part that has become wrong, though neither graph, torch nor version changed, is found."""
    write(tmp_path, part, 1.0)
    first, second = (measured(make_sandbox(), tmp_path) for _ in range(2))
    write(tmp_path, part, 1.5)
    third = measured(make_sandbox(), tmp_path)
    facts = [dict(row.facts) for row in (first, second, third)]
    assert [row.status for row in (first, second)] == [Status.PASS, Status.PASS]
    assert [each["compile_cache"] for each in facts[:2]] == ["kept, new to it", "kept"]
    assert third.status is Status.FAIL_ACCURACY
    assert facts[0]["compiler_parts"] == facts[1]["compiler_parts"] != facts[2]["compiler_parts"]
    assert facts[0]["compiler_parts"].startswith("extended 1.0 ")


def test_without_a_file_no_code_is_kept(make_sandbox: Callable[[], Any], tmp_path: Path) -> None:
    """The row names the module, and the second run finds nothing of the first."""
    write(tmp_path, NO_FILE, 1.0)
    for row in [measured(make_sandbox(), tmp_path) for _ in range(2)]:
        assert row.status is Status.PASS
        why = "not known: module nowhere has no file"
        assert dict(row.facts)["compile_cache"] == f"empty: compiler parts {why}"
    assert not list((tmp_path / "kept").rglob("*.so"))


PARTS = {
    "decomposition": "decomposition.decompositions['x'] = part.function",
    "generator": "common.register_backend_for_device('cpu', part.Scheduling, part.Scheduling)",
    "closure": "lowering.lowerings['x'] = lowering.make_pointwise(part.function)",
    "setting": "config.custom_partitioner_fn = part.Scheduling()",
    "back end": "torch._dynamo.register_backend(part.function, name='mine')",
}
CHILD = """
import json, sys
import torch, torch._inductor.compile_fx, torch._dynamo
from torch._inductor import config, decomposition, lowering
from torch._inductor.codegen import common
from torchgauge.harness.worker.compiler_parts import compiler_parts
import part
common.init_backend_registration()
backend, code = sys.argv[1:]
before = compiler_parts(backend if backend == "inductor" else "inductor")
exec(code)
print(json.dumps([before, compiler_parts(backend)]))
"""


@pytest.mark.parametrize("kind", PARTS)
def test_each_way_of_taking_part_is_seen(tmp_path: Path, kind: str) -> None:
    """The fact names a package as soon as it registers a function or class."""
    (tmp_path / "part.py").write_text("def function(*_): ...\nclass Scheduling: ...\n", encoding="utf-8")
    backend = "mine" if kind == "back end" else "inductor"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}){CHILD}",
            backend,
            PARTS[kind],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    before, after = json.loads(done.stdout)
    assert before == ""
    assert after.startswith("part ")
