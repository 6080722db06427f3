"""Build the planted fallbacks and their clean twins; worker side.

Every model computes what its twin computes, by the same operators: what differs is who runs them. A plant may
set what the whole process shares, as real models do: a worker measures one model and ends.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.losses import mean_loss
from torchgauge.suites.suite import BuiltWorkload
from torchgauge_faults.planted import attention, given_up, left_out, out_of_sight
from torchgauge_faults.planted.blocks import Blocks
from torchgauge_faults.planted.bodies import ROWS, WIDTH, Around, Beside, plainly


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # the name says it all
    """The plant or the twin that ``workload`` names."""
    torch.manual_seed(workload.seed)
    module = _MODELS[workload.model]()
    training = LOSS in wanted(workload)
    module.train(training)
    return BuiltWorkload(
        module=module,
        args=(torch.randn(workload.batch, ROWS, WIDTH),),
        loss=mean_loss if training else None,
        items_per_step=workload.batch,
    )


_ANY_NUMBER = 1000
_MODELS: dict[str, Callable[[], nn.Module]] = {
    "clean-layers": Around,
    "clean-training": Around,
    "clean-disabled-log": lambda: Around(out_of_sight.logged),
    "planted-disabled-model": out_of_sight.Disabled,
    "planted-disabled-body": lambda: Around(out_of_sight.disabled),
    "clean-disabled-part": lambda: Beside(out_of_sight.disabled),
    "planted-skipped-file": lambda: Around(out_of_sight.skipped_file()),
    "clean-skipped-part": lambda: Beside(out_of_sight.skipped_file()),
    "planted-scripted-body": lambda: Around(out_of_sight.scripted()),
    "clean-scripted-part": lambda: Beside(out_of_sight.scripted()),
    "planted-other-thread": lambda: Around(out_of_sight.in_a_thread),
    "clean-thread-part": lambda: Beside(out_of_sight.in_a_thread),
    "planted-opaque-operator": lambda: Around(out_of_sight.opaque()),
    "clean-opaque-part": lambda: Beside(out_of_sight.opaque()),
    "planted-backward-in-eager": lambda: Around(out_of_sight.own_backward),
    "clean-backward-part": lambda: Beside(out_of_sight.own_backward),
    "planted-refused-operators": out_of_sight.refused_operators,
    "planted-break-in-loop": lambda: Around(out_of_sight.break_in_loop),
    "clean-graph-break": lambda: Around(out_of_sight.one_break),
    "clean-two-breaks": lambda: Around(out_of_sight.two_breaks),
    "clean-data-dependent": lambda: Around(out_of_sight.data_dependent),
    "planted-recompile-limit": lambda: given_up.Counting(_ANY_NUMBER),
    "clean-few-recompiles": lambda: given_up.Counting(3),
    "planted-eager-on-recompile": lambda: given_up.Staying(_ANY_NUMBER),
    "clean-eager-on-recompile": lambda: given_up.Staying(1),
    "planted-switched-off": given_up.switched_off,
    "planted-forced-eager": given_up.forced_eager,
    "planted-suppressed-errors": lambda: Around(given_up.suppressed(given_up.untraceable())),
    "planted-suppressed-nothing": lambda: Around(given_up.suppressed(plainly)),
    "planted-cache-disabled": given_up.without_cache,
    "planted-autograd-uncaptured": given_up.Uncaptured,
    "planted-tuned-nothing": Around,
    "clean-tuned": Around,
    "planted-no-device-graphs": Around,
    "planted-not-frozen": lambda: Around(given_up.with_gradients),
    "clean-frozen": Around,
    "clean-nothing-to-freeze": lambda: Around(body=nn.GELU()),
    "planted-package-of-python": lambda: Around(out_of_sight.opaque()),
    "clean-package": Around,
    "clean-nothing-to-tune": lambda: Around(body=nn.GELU()),
    "planted-cpp-calls-python": lambda: Around(out_of_sight.half_in_python()),
    "clean-cpp-calls-library": lambda: Around(out_of_sight.of_a_library),
    "planted-regions-apart": lambda: Blocks((0.25, 0.5, 0.75)),
    "planted-regions-inlined": lambda: Blocks((0.25, 0.5, 0.75)),
    "clean-regions": lambda: Blocks((0.5, 0.5, 0.5)),
    "planted-flex-by-sdpa": lambda: attention.TwoForms(attention.fused),
    "planted-flex-half": lambda: attention.TwoForms(attention.by_flex(), attention.fused),
    "clean-flex-twice": lambda: attention.TwoForms(attention.by_flex(), attention.by_flex()),
    "clean-flex": lambda: attention.TwoForms(attention.by_flex()),
    "planted-attention-by-hand": lambda: attention.Attention(attention.by_hand),
    "planted-attention-forced-math": lambda: attention.Attention(attention.forced_math),
    "planted-attention-mixed": lambda: attention.Attention(attention.fused, attention.forced_math),
    "planted-unquantised-products": left_out.products,
    "clean-quantised": Around,
    "planted-undelegated": left_out.Sums,
    "clean-delegated": Around,
    "clean-attention": lambda: attention.Attention(attention.fused, attention.fused),
}
