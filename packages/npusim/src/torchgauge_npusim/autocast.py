"""Mixed precision for the device: PyTorch leaves its autocast key empty, so the cast rules are kernels here.

The lists follow the ones PyTorch uses for its own accelerators
(aten/src/ATen/autocast_mode.h, AT_FORALL_LOWER_PRECISION_FP, AT_FORALL_FP32, AT_FORALL_PROMOTE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from torchgauge_npusim.faults import ACTIVE
from torchgauge_npusim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch._ops import OpOverload

DTYPES: Final = (torch.bfloat16, torch.float16)

_LOWER_PRECISION = """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution prelu
    addmm addmv addr matmul einsum mm mv linalg_vecdot linalg_multi_dot linear addbmm baddbmm bmm
    chain_matmul gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
"""
_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
    native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss
    cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
    mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
    multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp prod softmax
    log_softmax cumprod cumsum sum norm
"""
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"

_AUTOCAST_KEYS: Final = torch._C.DispatchKeySet(torch._C._dispatch_key_parse("AutocastPrivateUse1"))


def kernels() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Each listed operator with a kernel that casts its arguments; not those that write to one."""
    for names, choose in ((_LOWER_PRECISION, _lower), (_FLOAT32, _float32), (_WIDEST, _widest)):
        for op in _overloads(names.split()):
            yield op, _casting(op, choose)
    yield torch.ops.aten.binary_cross_entropy.default, _refuse_binary_cross_entropy


def _overloads(names: Iterable[str]) -> Iterator[OpOverload]:
    for name in names:
        packet = getattr(torch.ops.aten, name)
        for overload_name in packet.overloads():
            op = getattr(packet, overload_name)
            arguments = op._schema.arguments
            if arguments and not any(
                argument.alias_info and argument.alias_info.is_write for argument in arguments
            ):
                yield op


def _casting(op: OpOverload, choose: Callable[[list[torch.dtype]], torch.dtype | None]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        # Without the key, what the operator calls in turn is not cast again.
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST_KEYS):
            target = choose(list(_float_dtypes((args, kwargs))))
            if target is None:
                return op(*args, **kwargs)
            return op(*_cast(args, target), **_cast(kwargs, target))

    return kernel


def _lower(dtypes: list[torch.dtype]) -> torch.dtype | None:
    if not dtypes:
        return None
    asked = torch.get_autocast_dtype(DEVICE_NAME)
    return DTYPES[asked is DTYPES[0]] if ACTIVE.wrong_autocast_dtype else asked


def _float32(dtypes: list[torch.dtype]) -> torch.dtype | None:
    return torch.float32 if any(dtype in DTYPES for dtype in dtypes) else None


def _widest(dtypes: list[torch.dtype]) -> torch.dtype | None:
    if len(set(dtypes)) < 2:
        return None
    return torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype(DEVICE_NAME)


def _eligible(value: Any) -> bool:
    # float64 is never cast: who asked for it meant it.
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == DEVICE_NAME
        and value.is_floating_point()
        and value.dtype is not torch.float64
    )


def _float_dtypes(value: Any) -> Iterator[torch.dtype]:
    if _eligible(value):
        yield value.dtype
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _float_dtypes(item)
    elif isinstance(value, dict):
        yield from _float_dtypes(list(value.values()))


def _cast(value: Any, target: torch.dtype) -> Any:
    if _eligible(value):
        return value.to(target)
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, target) for item in value)
    if isinstance(value, dict):
        return {name: _cast(item, target) for name, item in value.items()}
    return value


def _refuse_binary_cross_entropy(*args: Any, **kwargs: Any) -> Any:
    del args, kwargs
    message = (
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
        "Use binary_cross_entropy_with_logits or BCEWithLogitsLoss, which are safe to autocast."
    )
    raise RuntimeError(message)
