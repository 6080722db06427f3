"""A dispatch mode that notes which operators a device is asked for. Worker side: standard library and torch.

Two things are noted of each call. ``operators``: what arrives below autograd, where composite-implicit
operators are gone and the rest is what a device may bring a kernel for. ``received``: what is left when
every operator that PyTorch can make of others (it has a ``Composite...`` kernel) is made of them, as on
a backend that brings none of those; ``parts`` keeps which operator became which. A vendor who has a kernel
for ``native_layer_norm`` is asked for that one, a vendor who has none for its parts.

Which device to record on was decided by measurement with torch 2.13 on the toy models. On the host the
choices above the dispatcher are the host's: attention is
``_scaled_dot_product_flash_attention_for_cpu`` instead of ``bmm`` and ``_safe_softmax``, optimizers loop
over ``add_`` instead of one ``_foreach_add_``, and some recurrent networks become ``mkldnn_rnn_layer``. On
meta and fake tensors whatever reads a value cannot run. So the census that ships was recorded on a simulated
PrivateUse1 device, which takes the path of a device that PyTorch knows nothing of and computes real values.
Its fallback was logged beside: what it is called with is what ``received`` holds, by base name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchgauge.suites.ops.samples import tensors_of

Pair = tuple[str, str]
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
_BOOKKEEPING = ("profiler::",)
"""Operators that run on no device whatever the device."""


class Recorder(TorchDispatchMode):  # type: ignore[misc]  # torch is not seen by mypy
    """Notes the operators of everything that runs while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[Pair] = set()
        self.received: set[Pair] = set()
        self.parts: dict[str, set[str]] = {}
        self._above: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """Run the operator, made of its parts where it can be, and note it."""
        given = kwargs or {}
        name = operator_name(func)
        if name.startswith(_BOOKKEEPING) or name in self._above:  # some composite kernels call themselves
            return func(*args, **given)
        composite = _composite_key(name)
        if composite is not None:
            result, done = self._by_parts(name, func, composite, args, given)
            if done:
                self._note(name, (args, given), result, leaf=False)
                return result
        result = func(*args, **given)
        self._note(name, (args, given), result, leaf=True)
        return result

    def _by_parts(
        self, name: str, func: Any, composite: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, bool]:
        """The result by the composite kernel, and whether there is one: some kernels only refuse."""
        self._above.append(name)
        try:
            with self:
                return func._op_dk(composite, *args, **kwargs), True
        except (RuntimeError, TypeError, NotImplementedError):
            return None, False
        finally:
            self._above.pop()

    def _note(self, name: str, inputs: Any, result: Any, *, leaf: bool) -> None:
        pair = (name, dtype_of(inputs, result))
        if not self._above:
            self.operators.add(pair)
        if leaf:
            self.received.add(pair)
            for above in self._above:
                self.parts.setdefault(above, set()).add(name)


def operator_name(func: Any) -> str:
    """``aten::add.Tensor``, as the dispatcher names it."""
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def dtype_of(inputs: Any, result: Any = None) -> str:
    """The dtype that a call is counted under; ``""`` where no tensor takes part.

    Of floating-point and complex inputs the widest (complex above real, then by bytes, then the first), else
    that of the first tensor input, else that of the first tensor of ``result``.
    """
    dtypes = [tensor.dtype for tensor in tensors_of(inputs)]
    wide = [each for each in dtypes if each.is_floating_point or each.is_complex]
    if wide:
        return _plain(max(wide, key=lambda each: (each.is_complex, each.itemsize)))
    found = dtypes or [tensor.dtype for tensor in tensors_of(result)]
    return _plain(found[0]) if found else ""


def _plain(dtype: Any) -> str:
    return str(dtype).replace("torch.", "", 1)


@cache
def _composite_key(name: str) -> Any:
    """The key of the kernel that makes ``name`` of other operators; None where PyTorch has none."""
    has: Callable[[str, str], bool] = torch._C._dispatch_has_kernel_for_dispatch_key
    for key in _COMPOSITE:
        if has(name, key):
            return getattr(torch._C.DispatchKey, key)
    return None
