"""Lists the operators that get a kernel of the device, for src/torchgauge_asyncsim/operators.txt.

Those that the host computes itself and of which PyTorch can tell the shape of the result beforehand. What
makes views, what only another device has, what walks over lists of tensors and what the device's C++ half
implements by itself are left out; the host's fallback or PyTorch's own composition serves them.
"""

from __future__ import annotations

import re

import torch

OTHERS = re.compile(
    r"_for_cpu|mkldnn|quantiz|fbgemm|cudnn|cuda|miopen|sparse|nested|jagged|_foreach|_fused|xnnpack|nnpack|"
    r"_indices$|_values$|to_dense|_coalesce|_test_|_dirichlet|segment_reduce|_cslt|spmm|sspaddmm|hspmm|_sobol|"
    r"qnnpack|_histogramdd|_assert|_transformer|_native_multi_head|_linalg_check|_make_per|_make_dep|nonzero_static|"
    r"nonzero\.out|masked_select\.out|unique\w*\.out|_ctc_loss|bincount|repeat_interleave|lstm|gru_cell|rnn"
)
OWN = {
    "aten::_local_scalar_dense", "aten::equal", "aten::resize_", "aten::set_", "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset", "aten::set_.source_Tensor", "aten::empty.memory_format",
    "aten::empty_strided", "aten::as_strided", "aten::view", "aten::_reshape_alias", "aten::unfold",
    "aten::view_as_real", "aten::view_as_complex", "aten::record_stream", "aten::native_dropout",
    "aten::native_dropout_backward",
    "aten::_fused_sdp_choice", "aten::_copy_from", "aten::_copy_from_and_resize", "aten::is_set_to",
}  # fmt: skip
OF_VALUES = ("aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive")
CONVOLUTIONS = ("aten::convolution_overrideable", "aten::convolution_backward_overrideable")


def makes_view(name: str) -> bool:
    """Whether a result shares memory with an argument that the operator does not write to."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    schema = torch._C._get_schema(f"aten::{base}", overload)
    return any(result.alias_info is not None and not result.alias_info.is_write for result in schema.returns)


def main() -> None:
    """Print the names with their overloads, sorted."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    found = {*CONVOLUTIONS, *OF_VALUES}
    for name in torch._C._dispatch_get_all_op_names():
        known = name.startswith("aten::") and has(name, "CPU") and has(name, "Meta")
        if known and name not in OWN and not OTHERS.search(name) and not makes_view(name):
            found.add(name)
    print("\n".join(sorted(found)))  # noqa: T201


if __name__ == "__main__":
    main()
