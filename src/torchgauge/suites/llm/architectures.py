"""The architectures of the suite ``llm``: classes of transformers, and their configuration at three scales.

``full`` is what is published under ``checkpoint``; ``small`` keeps its proportions, ``tiny`` hardly those.
Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Architecture:
    """Classes of transformers, and fields of the configuration class; a scale overrides ``full``."""

    model_class: str
    config_class: str
    checkpoint: str
    full: dict[str, Any]
    small: dict[str, Any]
    tiny: dict[str, Any] = field(default_factory=dict)

    def fields(self, scale: str) -> dict[str, Any]:
        """Fields of the configuration at ``tiny``, ``small`` or ``full``."""
        return {**self.full, **({} if scale == "full" else getattr(self, scale))}


def _widths(hidden: int, inner: int, layers: int, heads: tuple[int, int], words: int) -> dict[str, Any]:
    """``heads`` are those of queries and of keys, ``words`` how many ids there are."""
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "vocab_size": words,
    }


_SMALL = {**_widths(512, 1536, 8, (8, 2), 16_384), "head_dim": 64}
_TINY = {**_widths(64, 128, 2, (4, 2), 512), "head_dim": 16}

ARCHITECTURES = {
    "llama": Architecture(
        "LlamaForCausalLM",
        "LlamaConfig",
        "meta-llama/Llama-3.2-1B",
        {
            **_widths(2048, 8192, 16, (32, 8), 128_256),
            "head_dim": 64,
            "max_position_embeddings": 131_072,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500_000.0,
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
            },
            "tie_word_embeddings": True,
        },
        _SMALL,
        _TINY,
    ),
    "qwen": Architecture(
        "Qwen3ForCausalLM",
        "Qwen3Config",
        "Qwen/Qwen3-0.6B",
        {
            **_widths(1024, 3072, 28, (16, 8), 151_936),
            "head_dim": 128,
            "max_position_embeddings": 40_960,
            "tie_word_embeddings": True,
        },
        _SMALL,
        _TINY,
    ),
    "gemma": Architecture(
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        "google/gemma-3-1b-pt",
        {
            **_widths(1152, 6912, 26, (4, 1), 262_144),
            "head_dim": 256,
            "sliding_window": 512,
            "query_pre_attn_scalar": 256,
            "max_position_embeddings": 32_768,
            "tie_word_embeddings": True,
        },
        {**_SMALL, "sliding_window": 128, "query_pre_attn_scalar": 64},
        {**_TINY, "sliding_window": 8, "query_pre_attn_scalar": 16},
    ),
    "mixtral": Architecture(
        "MixtralForCausalLM",
        "MixtralConfig",
        "mistralai/Mixtral-8x7B-v0.1",
        {
            **_widths(4096, 14_336, 32, (32, 8), 32_000),
            "head_dim": 128,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "max_position_embeddings": 32_768,
        },
        {**_SMALL, "intermediate_size": 768},
        {**_TINY, "num_local_experts": 4},
    ),
    "gpt2": Architecture(
        "GPT2LMHeadModel",
        "GPT2Config",
        "openai-community/gpt2",
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50_257},
        {"n_embd": 512, "n_layer": 8, "n_head": 8, "vocab_size": 16_384},
        {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 512},
    ),
}
"""By the word that a recipe says."""
