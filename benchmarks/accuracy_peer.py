"""The verdict of PyTorch's own benchmark runner on one result: its tolerances, its lists and its function.

The function is ``torch._dynamo.utils.same`` of the installed torch, called and not copied. The tolerances and
the models that PyTorch lists by hand are retold from ``benchmarks/dynamo`` of pytorch/pytorch as of 2026-11
(https://github.com/pytorch/pytorch/tree/main/benchmarks/dynamo), for a device of type CPU without freezing
and without max-autotune. The lists for other devices and for those two modes are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

TIMM_TRAINING = {
    "beit_base_patch16_224": 16e-2,
    "deit_base_distilled_patch16_224": 8e-2,
    "vit_base_patch16_siglip_256": 8e-2,
    "inception_v3": 4e-2,
    "mobilenetv3_large_100": 4e-2,
}
HUGGINGFACE_TRAINING = {"MT5ForConditionalGeneration": 2e-2}
HUGGINGFACE_INFERENCE = {"GPT2ForSequenceClassification": 5e-3}
TORCHBENCH_AUTOCAST = {
    **dict.fromkeys(("doctr_reco_predictor", "drq", "phlippe_resnet"), 1e-2),
    **dict.fromkeys(
        ("soft_actor_critic", "tacotron2", "yolov3", "squeezenet1_1", "shufflenet_v2_x1_0"), 8e-2
    ),
}
TORCHBENCH_BFLOAT16 = {"doctr_reco_predictor": 1e-2, "drq": 1e-2}
LARGER_MULTIPLIER = {
    ("timm", "inception_v3"),
    ("timm", "mobilenetv3_large_100"),
    ("timm", "vit_base_patch14_dinov2.lvd142m"),
    ("torchbench", "yolov3"),
}
NEVER_CHECKED = {("huggingface", "DebertaV2ForMaskedLM"), ("huggingface", "BlenderbotForCausalLM")}
MASKS = {"detectron2_maskrcnn_r_101_fpn", "detectron2_maskrcnn_r_50_c4", "sam", "sam_fast", "vision_maskrcnn"}
LAST_ITERATION = "iteration1."


@dataclass(frozen=True)
class PeerRule:
    """How PyTorch's runner would compare the results of one model: the arguments of ``same``.

    ``checked`` is false where it lists the model as too large and reports ``pass_due_to_skip``.
    """

    tolerance: float
    equal_nan: bool
    larger_multiplier: bool = False
    masks: bool = False
    checked: bool = True


def peer_rule(suite: str, model: str, mode: str, dtype: str) -> PeerRule:
    """The rule for a workload on a CPU; ``suite``, ``mode`` and ``dtype`` as in our case ids."""
    training, key = mode == "training", (suite, model)
    if suite == "timm":
        tolerance = TIMM_TRAINING.get(model, 1e-2) if training else 1e-3
    elif suite == "huggingface":
        tolerance = (
            HUGGINGFACE_TRAINING.get(model, 1e-2) if training else HUGGINGFACE_INFERENCE.get(model, 1e-3)
        )
    elif dtype.startswith("amp") or dtype == "float16":
        tolerance = TORCHBENCH_AUTOCAST.get(model, 1e-3)
    elif dtype == "bfloat16":
        tolerance = TORCHBENCH_BFLOAT16.get(model, 1e-4)
    else:
        tolerance = 1e-4
    return PeerRule(
        tolerance=tolerance,
        equal_nan=dtype != "float32",
        larger_multiplier=key in LARGER_MULTIPLIER,
        masks=model in MASKS,
        checked=key not in NEVER_CHECKED,
    )


def peer_verdict(
    reference: Mapping[str, Any], result: Mapping[str, Any], fp64: Mapping[str, Any] | None, rule: PeerRule
) -> bool:
    """Whether PyTorch's runner would pass ``result``; without float64 it asks for a cosine of 0.99.

    What it raises on results that do not fit together counts as a failure, as in its runner.
    """
    from torch._dynamo.utils import same

    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    try:
        return bool(
            same(
                dict(reference),
                dict(result),
                None if fp64 is None else dict(fp64),
                cos_similarity=fp64 is None,
                tol=rule.tolerance,
                equal_nan=rule.equal_nan,
                use_larger_multiplier_for_smaller_tensor=rule.larger_multiplier,
                use_iou_for_bool=rule.masks,
                log_error=_nobody,
            )
        )
    except (AssertionError, RuntimeError, TypeError, KeyError):
        return False


def peer_scope(observation: Mapping[str, Any], model: str = "") -> dict[str, Any]:
    """The values of one of our observations that PyTorch's runner looks at.

    In training it looks at the second of two iterations; of a model for question answering only at the loss.
    """
    if any(path.startswith(LAST_ITERATION) for path in observation):
        return {path: value for path, value in observation.items() if path.startswith(LAST_ITERATION)}
    if "QuestionAnswering" in model and "out.loss" in observation:
        return {"out.loss": observation["out.loss"]}
    return dict(observation)


def peer_multiplier(result: torch.Tensor, rule: PeerRule) -> float:
    """The RMSE multiplier that ``same`` takes for a tensor like ``result``, to name it in a table."""
    if rule.larger_multiplier and result.numel() <= 500:
        return 10.0 if result.numel() <= 10 else 8.0
    one_by_one = result.ndim == 4 and result.shape[-1] == result.shape[-2] == 1
    small = result.numel() < 1000 or one_by_one or rule.tolerance >= 2e-2
    return 3.0 if small or result.dtype in (torch.float16, torch.bfloat16) else 2.0


def _nobody(*_: object) -> None:
    """Where ``same`` says what failed; the table has its own words for it."""
