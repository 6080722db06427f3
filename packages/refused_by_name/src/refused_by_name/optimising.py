"""Whether a branch for named devices only makes things faster or tells more, so others can do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

_CALLS = re.compile(
    r"empty_cache|ipc_collect|reset_peak_memory_stats|reset_max_memory|memory_stats|memory_summary|set_float32"
    r"|nvtx|range_push|range_pop|cudnn|record_stream|warn|warning|info|debug|log|print|tune|prefetch|pin_memory"
)
_TARGETS = re.compile(
    r"allow_tf32|benchmark|pin_memory|non_blocking|fused|foreach|capturable|prefetch|num_stages|num_warps"
    r"|matmul_precision|cache|hint|persistent_workers",
    re.IGNORECASE,
)


def only_optimises(body: Sequence[ast.stmt]) -> bool:
    """Whether every statement of ``body`` frees caches, sets a switch of speed, or tells something."""
    return bool(body) and all(map(_optimises, body))


def _optimises(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return bool(_CALLS.search(ast.unparse(node.value.func)))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(_TARGETS.search(ast.unparse(target)) for target in targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.If, ast.With)):
        return only_optimises([*node.body, *getattr(node, "orelse", [])])
    return False
