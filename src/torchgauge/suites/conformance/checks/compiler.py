"""Compiler: capture, backends, dynamic shapes, graphs."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.check_context import CheckContext, brief, check

GROUP = "compiler"


class _Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A layer with a residual connection."""
        return torch.nn.functional.gelu(self.linear(x)) + x


def _compiled(context: CheckContext, backend: str, *, dynamic: bool | None = None) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    host = _Block()
    there = context.send(_Block())
    there.load_state_dict(host.state_dict())
    call = torch.compile(there, backend=backend, fullgraph=True, dynamic=dynamic)
    try:
        for rows in (4, 6, 9) if dynamic else (4,):
            context.same(
                call(context.send(context.numbers(rows, 8))),
                host(context.numbers(rows, 8)),
                rtol=1e-4,
                atol=1e-4,
            )
        call(context.send(context.numbers(4, 8))).square().sum().backward()
        host(context.numbers(4, 8)).square().sum().backward()
        context.same(there.linear.weight.grad, host.linear.weight.grad, rtol=1e-3, atol=1e-3)
    finally:
        torch._dynamo.reset()


@check("torch._dynamo.device_interface")
def device_interface(context: CheckContext) -> None:
    """The compiler has an interface to the device."""
    from torch._dynamo.device_interface import get_interface_for_device

    try:
        found = get_interface_for_device(context.type)
    except NotImplementedError as error:
        context.unsupported(f"the compiler has no device interface: {error}")
    context.expect(found.is_available(), "the interface reports that the device is unavailable")


@check("torch._subclasses.FakeTensorMode")
def fake_tensors(context: CheckContext) -> None:
    """Shapes and devices are inferred without computing."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        made = torch.empty(3, 4, device=context.device)
        found = (made @ made.t()).relu()
    context.expect(found.device.type == context.type, f"the inferred matmul result is on {found.device}")
    context.expect(tuple(found.shape) == (3, 3), f"its shape is {tuple(found.shape)}")


@check("torch.compile(backend='eager')")
def capture(context: CheckContext) -> None:
    """A module is captured in one graph and runs as captured."""
    _compiled(context, "eager")


@check("torch.compile(backend='aot_eager')", tier="full")
def aot_eager(context: CheckContext) -> None:
    """Forward and backward are traced ahead and run as traced."""
    _compiled(context, "aot_eager")


@check("torch.compile(dynamic=True)", tier="full")
def dynamic_shapes(context: CheckContext) -> None:
    """One graph serves several batch sizes."""
    _compiled(context, "aot_eager", dynamic=True)


@check("torch.compile(backend='inductor')", tier="full")
def inductor(context: CheckContext) -> None:
    """The default backend generates code for the device."""
    try:
        from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

        init_backend_registration()
        scheduling = get_scheduling_for_device(context.type)
    except (AttributeError, ImportError):
        scheduling = True
    if scheduling is None:
        context.unsupported(f"inductor has no code generator for {context.type}")
    _compiled(context, "inductor")


@check("torch.accelerator.Graph")
def graph_capture(context: CheckContext) -> None:
    """Operators are captured once and replayed."""
    context.not_on_host("the host has no device graphs")
    owner = getattr(context.accelerator, "Graph", None)
    if owner is None:
        context.unsupported(f"torch {torch.__version__} has no torch.accelerator.Graph")
    there = context.send(context.numbers(4))
    result = torch.zeros(4, device=context.device)
    try:
        captured = owner()
        captured.capture_begin()
        torch.add(there, 1, out=result)
        captured.capture_end()
    except (NotImplementedError, RuntimeError, AttributeError) as error:
        context.unsupported(f"the device cannot capture graphs: {brief(error)}")
    there.fill_(5.0)
    captured.replay()
    context.session.synchronize()
    context.same(result, torch.full((4,), 6.0))
