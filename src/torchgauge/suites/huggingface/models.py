"""Build transformers' models in the worker: from their configuration class, or from a checkpoint if asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.records import PRETRAINED, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.hub import reaching_hub
from torchgauge.suites.lacking import without_model
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchvision_schemas import define_missing_schemas

# Read once by huggingface_hub when it is imported, hence before transformers is. A run with pretrained
# weights has set it to 0 already.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

_BEHAVIOUR = ("pad_token_id", "apply_spec_augment", "is_decoder", "hash_seed")
"""Fields of a recipe that change no tensor of a model: they overrule a checkpoint's configuration too."""

_SMALL = {
    **dict.fromkeys(("num_hidden_layers", "num_decoder_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"), 512),
    "hidden_size": 256,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "moe_intermediate_size": 128,
}
"""Depth and width of a model at size ``small`` that no data file describes."""


_BY_CLASS = {
    "ForMaskedLM": "masked_lm",
    "ForCausalLM": "causal_lm",
    "LMHeadModel": "causal_lm",
    "ForQuestionAnswering": "question_answering",
    "ForSequenceClassification": "sequence_classification",
}
_BY_INPUT = {
    "input_features": "speech_seq2seq",
    "input_values": "speech_ctc",
    "pixel_values": "image_classification",
}
"""Inputs of a class that no data file describes: by the end of its name, else by its first input."""


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The model that ``recipe`` describes (see ``HuggingFaceRecipe``), with inputs of its kind.

    Inference returns the model's output without a loss; training passes labels, and the loss is the
    model's own. Pretrained weights come with the checkpoint's configuration, at both sizes. Raises
    ``ImportError`` without transformers and :class:`MissingPackageError` where it lacks the class. Where
    published weights are asked for: ``NotImplementedError`` where none are known, :class:`NoNetworkError` and
    :class:`MissingDataError`.
    """
    notes = define_missing_schemas()
    import torch

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.huggingface.inputs import make_inputs
    from torchgauge.suites.losses import model_loss

    training = LOSS in wanted(workload)
    torch.manual_seed(workload.seed)
    make = _pretrained if workload.weights == PRETRAINED else _random
    module, made = make(workload, recipe)
    notes += made + silence_modules(module)
    inputs = make_inputs(
        recipe["inputs"] or _inputs_of(module, training), module.config, workload, labels=training
    )
    return BuiltWorkload(
        module=module.train(training),
        kwargs=inputs,
        loss=model_loss if training else None,
        items_per_step=workload.batch,
        item="image" if "pixel_values" in inputs else "sequence",
        notes=notes,
    )


def _random(workload: Workload, recipe: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    fields = dict(recipe.get("config", {}))
    kind = model_class(recipe["model_class"])
    config_class = model_class(recipe["config_class"]) if recipe["config_class"] else kind.config_class
    if workload.size == "small":
        fields.update(recipe.get("small", {}))
        if "word" in recipe:  # a class that no data file describes
            fields = _smaller(config_class, fields)
    config = config_class(**fields)
    notes = settled(config)
    return kind(config), notes


def _inputs_of(module: Any, training: bool) -> str:
    """Return the kind of inputs that ``module`` takes.

    Raises :class:`NotOfferedError` for other inputs, and for training of a class that takes no labels.
    """
    from inspect import signature

    name, first = type(module).__name__, module.main_input_name
    if training and "labels" not in signature(module.forward).parameters:
        raise NotOfferedError(f"{name} has no loss", hint="--mode inference, or use a class with a head")
    kinds = (kind for end, kind in _BY_CLASS.items() if name.endswith(end))
    text = "seq2seq" if module.config.is_encoder_decoder else "causal_lm"
    kind = next(kinds, text if first == "input_ids" else _BY_INPUT.get(first, ""))
    if not kind:
        hint = "write a file with def model(): return module, {'input': tensor}"
        raise NotOfferedError(f"{name} takes {first}, which torchgauge cannot generate", hint=hint)
    return kind


def _smaller(config_class: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``fields`` with those that ``config_class`` takes of a model of a few million parameters."""
    from inspect import signature

    taken, named = signature(config_class.__init__).parameters, config_class.attribute_map
    small = {named.get(name, name): value for name, value in _SMALL.items()}
    kept = {name: value for name, value in fields.items() if name != "layer_types"}  # one for each layer
    return kept | {name: value for name, value in small.items() if name in taken}


def _pretrained(workload: Workload, recipe: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    checkpoint = recipe.get("checkpoint")
    if not checkpoint:
        raise NotImplementedError(f"{workload.model} has no known pretrained weights")
    config = recipe.get("config", {})
    behaviour = {name: config[name] for name in _BEHAVIOUR if name in config}
    return pretrained(recipe["model_class"], recipe["config_class"], checkpoint, behaviour)


def pretrained(
    model: str, config_kind: str, checkpoint: str, behaviour: Mapping[str, Any] | None = None
) -> tuple[Any, tuple[str, ...]]:
    """The model that is published as ``checkpoint``, in float32, with notes.

    ``behaviour`` overrules fields of its configuration. Raises :class:`NoNetworkError`,
    :class:`MissingDataError` and, where transformers lacks a class, :class:`MissingPackageError`.
    """
    with reaching_hub(checkpoint):
        config = model_class(config_kind).from_pretrained(checkpoint)
        for name, value in (behaviour or {}).items():
            setattr(config, name, value)
        notes = settled(config)
        kind = model_class(model)
        module, loaded = kind.from_pretrained(checkpoint, config=config, output_loading_info=True)
    notes += (f"weights and configuration: {checkpoint}",)
    if missing := len(loaded["missing_keys"]):
        notes += (f"{missing} tensors are not in {checkpoint} and have random weights",)
    return module.float(), notes


def settled(config: Any) -> tuple[str, ...]:
    """Switch off in ``config`` what makes two executions differ; notes of what was changed."""
    from torchgauge.suites.dropout import silence_config

    silenced = silence_config(config)
    config.use_cache = False
    return (f"dropout is off: {', '.join(silenced)}",) if silenced else ()


def model_class(name: str) -> Any:
    """A class of transformers; raises :class:`MissingPackageError` where this version lacks it."""
    import transformers

    try:
        return getattr(transformers, name)
    except AttributeError:
        raise without_model(transformers, name, dir(transformers)) from None
