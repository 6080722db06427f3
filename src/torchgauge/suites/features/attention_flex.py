"""Networks of ``attention.flex``: one attention call, with a second form that ``flex_attention`` runs."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.features import attention
from torchgauge.suites.features.attention import Attention, scores, sees
from torchgauge.suites.suite import BuiltWorkload


class FlexForm(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """``of`` as a call of ``flex_attention``; ``block_mask`` says which blocks it may skip, None for none."""

    def __init__(self, of: Attention, device: Any) -> None:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        super().__init__()
        self.attend, self.of, size = flex_attention, of, of.sizes
        self.grouped = size.kv_heads != size.heads
        self.score_mod = scores(of.mask, size, of.table)
        seen = sees(of.mask, size, of.table)
        self.block_mask = (
            create_block_mask(seen, None, None, size.queries, size.seq, device=device) if seen else None
        )

    def forward(self, *args: Any) -> Any:
        """What the call that it is made of returns."""
        query, key, value = self.of.given(*args)
        return self.attend(
            query,
            key,
            value,
            score_mod=self.score_mod,
            block_mask=self.block_mask,
            enable_gqa=self.grouped,
        )


class FlexibleAttention(Attention):
    """A call that can be written with ``flex_attention`` as well."""

    def flex_form(self, device: Any) -> FlexForm:
        """That form of it, on ``device``, where the module is."""
        return FlexForm(self, device)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  sizes are the shape
    """A call with the mask that the shape of ``workload`` says."""
    return attention.build(workload, str(dict(workload.shape)["mask"]), FlexibleAttention)
