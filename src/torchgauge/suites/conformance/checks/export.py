"""Export: programs without their Python, on the device."""

from __future__ import annotations

import io

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "export"


_QUICK = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
"""One small program: optimising its wrapper would take longer than the whole check."""


class _Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        return self.linear(x).tanh()


def _exported(context: CheckContext) -> tuple[torch.nn.Module, torch.Tensor, torch.export.ExportedProgram]:
    torch.manual_seed(0)
    module, x = context.send(_Net()).eval(), context.send(context.numbers(4, 6))
    return module, x, torch.export.export(module, (x,))


@check("torch.export.export", tier="full")
def export(context: CheckContext) -> None:
    """A module on the device is exported and its program answers the same."""
    module, x, program = _exported(context)
    context.same(program.module()(x), module(x))


@check("torch.export.save, load", tier="full")
def save_and_load(context: CheckContext) -> None:
    """An exported program goes through a file."""
    module, x, program = _exported(context)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    context.same(torch.export.load(file).module()(x), module(x))


@check("torch._inductor.aoti_compile_and_package", tier="full")
def ahead_of_time(context: CheckContext) -> None:
    """A program is compiled ahead of time into a package that answers the same."""
    import tempfile
    from pathlib import Path

    import torch._inductor

    compile_package = getattr(torch._inductor, "aoti_compile_and_package", None)
    load_package = getattr(torch._inductor, "aoti_load_package", None)
    if compile_package is None or load_package is None:
        context.unsupported(f"torch {torch.__version__} has no ahead-of-time packages")
    try:
        from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

        init_backend_registration()
        if get_scheduling_for_device(context.type) is None:
            context.unsupported(f"inductor has no code generator for {context.type}")
    except (AttributeError, ImportError):
        pass
    module, x, program = _exported(context)
    with tempfile.TemporaryDirectory(prefix="torchgauge-aoti-") as folder:
        path = compile_package(program, package_path=str(Path(folder, "net.pt2")), inductor_configs=_QUICK)
        context.same(load_package(path)(x), module(x), rtol=1e-4, atol=1e-5)
