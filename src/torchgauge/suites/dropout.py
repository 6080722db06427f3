"""Switch dropout off: accuracy compares executions whose random numbers differ; worker side only."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchgauge.counted import counted

_RATES = ("drop_rate", "drop_prob", "attn_drop_rate", "attn_drop_prob", "layerdrop", "dropout_prob")
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def silence_modules(module: Any) -> tuple[str, ...]:
    """Set every dropout probability of the live ``module`` to 0; a note where one was not 0 already."""
    changed = 0
    for part in module.modules():
        if isinstance(part, _DROPOUTS):
            changed += part.p != 0
            part.p = 0.0
        for name in _RATES:
            if isinstance(part.__dict__.get(name), float):
                changed += part.__dict__[name] != 0
                setattr(part, name, 0.0)
    return (f"dropout is off in {counted(changed, 'module')}",) if changed else ()


def silence_config(config: Any) -> tuple[str, ...]:
    """Set every dropout-like number of a transformers configuration to 0, nested ones too."""
    changed: list[str] = []
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            changed += silence_config(value)
        elif isinstance(value, float) and value != 0 and ("drop" in name or name.endswith("_pdrop")):
            setattr(config, name, 0.0)
            changed.append(name)
    return tuple(changed)
