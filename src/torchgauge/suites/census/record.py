"""What one model asks of a device: the operators that its steps dispatch. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

EAGER, COMPILED = PATHS = ("eager", "compiled")


@dataclass(frozen=True)
class ModelCensus:
    """The operators of one model in one mode, dtype and path.

    ``operators`` holds pairs of an operator with its overload, as the dispatcher names it
    (``aten::add.Tensor``), and a dtype (``bfloat16``): that of the widest floating-point or complex input
    tensor, else of the first tensor input, else of the output. ``received`` holds the pairs that reach a
    backend that brings no composite operator itself, where the recording could see them: parts of what
    ``operators`` names, in the forms that a kernel is registered for. ``problem`` says why nothing could be
    recorded. ``recorded_on`` names the kind of tensors that the recording ran with.
    """

    suite: str
    model: str
    mode: str
    dtype: str
    path: str
    operators: frozenset[tuple[str, str]]
    problem: str = ""
    recorded_on: str = ""
    received: frozenset[tuple[str, str]] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Base names of the operators, sorted."""
        return tuple(sorted({base_name(name) for name, _ in self.operators}))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes of the operators, sorted."""
        return tuple(sorted({dtype for _, dtype in self.operators if dtype}))


def base_name(operator: str) -> str:
    """``aten::add`` of ``aten::add.out``: what the overloads of one operator share.

    Compare by it: an operator is often asked for in one overload and reaches its kernel in another.
    """
    namespace, colons, name = operator.rpartition("::")
    return namespace + colons + name.partition(".")[0]
