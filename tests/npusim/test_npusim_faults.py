"""The simulated device fails in the ways that its environment asks for, and in no other."""

from __future__ import annotations

import pytest


def test_missing_operator_with_its_own_kernel(python):
    """An operator that the device implements itself can be missing, too."""
    code = """
import torch
print(torch.nn.Linear(4, 4).npusim()(torch.ones(1, 4).npusim()).shape)
torch.nn.Conv2d(1, 1, 1).npusim()(torch.ones(1, 1, 2, 2).npusim())
"""
    child = python(code, TORCHGAUGE_NPUSIM_MISSING_OPS="aten::convolution_overrideable")
    assert "torch.Size([1, 4])" in child.stdout
    assert "NotImplementedError: Could not run 'aten::convolution_overrideable'" in child.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TORCHGAUGE_NPUSIM_MISSING_OPS", "aten::no_such_operator"),
        ("TORCHGAUGE_NPUSIM_FAULT", "no_such_fault"),
    ],
)
def test_misspelt_fault_is_an_error(python, variable, value):
    """A fault that does not exist fails the import rather than pass unnoticed."""
    child = python("import torch", **{variable: value})
    assert child.returncode == 1
    assert f"ValueError: {variable}: " in child.stderr
    assert value in child.stderr


@pytest.mark.parametrize(
    ("fault", "kind"), [("", "OutOfMemoryError"), (",oom_is_runtime_error", "RuntimeError")]
)
def test_out_of_memory(python, fault, kind):
    """Too many live bytes raise PyTorch's error, or a plain one; freeing some makes room again."""
    child = python(
        """
import torch
kept = torch.zeros(1500, device='npusim')
try:
    kept * 2
except RuntimeError as error:
    print(type(error).__name__, error)
del kept
print(torch.zeros(1500, device='npusim').sum().item())
""",
        TORCHGAUGE_NPUSIM_FAULT=f"oom_after_bytes=10000{fault}",
    )
    assert child.stdout.splitlines() == [
        f"{kind} npusim out of memory. Tried to allocate 6000 bytes; 6000 of 10000 bytes are in use.",
        "0.0",
    ], child.stderr


def test_fork_while_untouched(python):
    """A process that has not yet touched the device can fork children that use it, autograd included."""
    child = python(
        """
import os, torch
torch.ones(2).sum()
child = os.fork()
if not child:
    x = torch.ones(3, device='npusim', requires_grad=True)
    (x * 2).sum().backward()
    os._exit(int(x.grad.sum().item()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert child.stdout.strip() == "6", child.stderr


def test_unsupported_torch(python):
    """With another torch, `import torch` works without the device, and a warning says why."""
    child = python(
        """
import warnings
from unittest import mock
import torch
from torchgauge_npusim import autoload, registration
registration._libraries.clear()
with warnings.catch_warnings(record=True) as caught, mock.patch.object(torch, '__version__', '2.14.0+cpu'):
    warnings.simplefilter('always')
    autoload()
print(caught[0].message)
"""
    )
    assert "needs torch >=2.13,<2.14" in child.stdout, child.stderr


def test_fallback_to_the_host(python):
    """Chosen operators run on copies, which a profiler sees; results and gradients are right."""
    child = python(
        """
import copy, torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
host = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(144, 8))
there = copy.deepcopy(host).to('npusim')
x = torch.randn(2, 3, 8, 8)
with profile(activities=[ProfilerActivity.CPU]) as found:
    there(x.to('npusim')).softmax(-1).square().sum().backward()
host(x).softmax(-1).square().sum().backward()
for one, other in zip(host.parameters(), there.parameters()):
    torch.testing.assert_close(other.grad.cpu(), one.grad)
print(sorted({each.cpu_parent.name for each in found.events() if each.name == 'aten::_to_cpu'}))
written = torch.ones(3, device='npusim')
written.add_(1)
given = torch.empty(0, device='npusim')
torch.exp(written, out=given)
print(written.cpu().tolist(), torch.equal(given.cpu(), torch.full((3,), 2.0).exp()))
""",
        TORCHGAUGE_NPUSIM_FAULT="fallback_ops=aten::gelu*+aten::*softmax*+aten::convolution*+aten::exp+aten::add_",
    )
    names, results = child.stdout.splitlines()
    assert names == str(
        [
            "aten::_softmax",
            "aten::_softmax_backward_data",
            "aten::convolution_backward_overrideable",
            "aten::convolution_overrideable",
            "aten::gelu",
            "aten::gelu_backward",
        ]
    ), child.stderr
    assert results == "[2.0, 2.0, 2.0] True"


@pytest.mark.parametrize("name", ["aten::linear", "aten::view", "aten::no_such"])
def test_what_cannot_fall_back_is_an_error(python, name):
    """An operator that PyTorch composes of others, a view, and a name that does not exist."""
    child = python("import torch", TORCHGAUGE_NPUSIM_FAULT=f"fallback_ops={name}")
    assert f"ValueError: TORCHGAUGE_NPUSIM_FAULT: '{name}'" in child.stderr


def test_memory_is_counted_by_the_devices_own_module(python):
    """Current and peak bytes follow the tensors; with the fault there is no such function."""
    code = """
import torch
before = torch.npusim.memory_allocated()
held = torch.zeros(1000, device='npusim')
current = torch.npusim.memory_stats()['allocated_bytes.all.current']
print(torch.npusim.memory_allocated() - before, current - before)
del held
print(torch.npusim.memory_allocated() - before, torch.npusim.max_memory_allocated() - before)
torch.npusim.reset_peak_memory_stats()
free, total = torch.npusim.mem_get_info()
print(torch.npusim.max_memory_allocated() - before, 0 < free <= total)
"""
    child = python(code)
    assert child.stdout.splitlines() == ["4000 4000", "0 4000", "0 True"], child.stderr
    child = python(code, TORCHGAUGE_NPUSIM_FAULT="no_memory_stats")
    assert "AttributeError: module 'torchgauge_npusim.device_module' has no attribute" in child.stderr
