"""Compiler: capture, backends, dynamic shapes, graphs."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, brief, check

GROUP = "compiler"


class _Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A layer with a residual connection."""
        return torch.nn.functional.gelu(self.linear(x)) + x


def _compiled(bench: Bench, backend: str, *, dynamic: bool | None = None) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    host = _Block()
    there = bench.send(_Block())
    there.load_state_dict(host.state_dict())
    call = torch.compile(there, backend=backend, fullgraph=True, dynamic=dynamic)
    try:
        for rows in (4, 6, 9) if dynamic else (4,):
            bench.same(
                call(bench.send(bench.numbers(rows, 8))), host(bench.numbers(rows, 8)), rtol=1e-4, atol=1e-4
            )
        call(bench.send(bench.numbers(4, 8))).square().sum().backward()
        host(bench.numbers(4, 8)).square().sum().backward()
        bench.same(there.linear.weight.grad, host.linear.weight.grad, rtol=1e-3, atol=1e-3)
    finally:
        torch._dynamo.reset()


@check("torch._dynamo.device_interface")
def device_interface(bench: Bench) -> None:
    """The compiler has an interface to the device."""
    from torch._dynamo.device_interface import get_interface_for_device

    try:
        found = get_interface_for_device(bench.type)
    except NotImplementedError as error:
        bench.unsupported(f"no interface is registered for the compiler: {error}")
    bench.expect(found.is_available(), "the interface says that the device is not available")


@check("torch._subclasses.FakeTensorMode")
def fake_tensors(bench: Bench) -> None:
    """Shapes and devices are inferred without computing."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        made = torch.empty(3, 4, device=bench.device)
        found = (made @ made.t()).relu()
    bench.expect(found.device.type == bench.type, f"the inferred product is on {found.device}")
    bench.expect(tuple(found.shape) == (3, 3), f"its shape is {tuple(found.shape)}")


@check("torch.compile(backend='eager')")
def capture(bench: Bench) -> None:
    """A module is captured in one graph and runs as captured."""
    _compiled(bench, "eager")


@check("torch.compile(backend='aot_eager')", tier="full")
def aot_eager(bench: Bench) -> None:
    """Forward and backward are traced ahead and run as traced."""
    _compiled(bench, "aot_eager")


@check("torch.compile(dynamic=True)", tier="full")
def dynamic_shapes(bench: Bench) -> None:
    """One graph serves several batch sizes."""
    _compiled(bench, "aot_eager", dynamic=True)


@check("torch.compile(backend='inductor')", tier="full")
def inductor(bench: Bench) -> None:
    """The default backend generates code for the device."""
    try:
        from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

        init_backend_registration()
        scheduling = get_scheduling_for_device(bench.type)
    except (AttributeError, ImportError):
        scheduling = True
    if scheduling is None:
        bench.unsupported(f"no code generator is registered with inductor for {bench.type}")
    _compiled(bench, "inductor")


@check("torch.accelerator.Graph")
def graph_capture(bench: Bench) -> None:
    """Operators are captured once and replayed."""
    bench.not_on_host("the host has no graphs of kernels")
    owner = getattr(bench.accelerator, "Graph", None)
    if owner is None:
        bench.unsupported(f"torch {torch.__version__} has no torch.accelerator.Graph")
    there = bench.send(bench.numbers(4))
    result = torch.zeros(4, device=bench.device)
    try:
        captured = owner()
        captured.capture_begin()
        torch.add(there, 1, out=result)
        captured.capture_end()
    except (NotImplementedError, RuntimeError, AttributeError) as error:
        bench.unsupported(f"the device captures no graphs: {brief(error)}")
    there.fill_(5.0)
    captured.replay()
    bench.session.synchronize()
    bench.same(result, torch.full((4,), 6.0))
