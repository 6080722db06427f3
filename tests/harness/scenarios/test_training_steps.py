"""What the check of training looks at: a step that does nothing, or another's, must be in it."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.records import Tolerance

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class HostSeed:
    """The part of a session that an observation needs."""

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        torch.manual_seed(seed)


def observed(norm: Any = None) -> dict[str, Any]:
    """The observation of a small network with a batch norm, or with ``norm`` in its place."""
    from torchgauge.harness.scenarios import training_steps
    from torchgauge.harness.scenarios.scenario import Subject
    from torchgauge.harness.worker.observer import Observer

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), norm or torch.nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    inputs = (torch.randn(8, 4),)
    subject = Subject(module, module, inputs, {}, lambda out: out.square().mean() + out[0, 0], HostSeed(), 0)
    seen = Observer(training_steps, subject).observe()
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    return seen


def test_what_a_step_changed_is_observed() -> None:
    """The change of a parameter is the checked rate times its gradient, that of a buffer what it moved by."""
    seen = observed()
    for iteration in ("iteration0", "iteration1"):
        for name in ("0.weight", "0.bias", "1.weight", "1.bias"):
            expected = -0.01 * seen[f"{iteration}.grad.{name}"]
            assert torch.allclose(seen[f"{iteration}.change.{name}"], expected, atol=1e-7)
    moved = seen["iteration1.buffer.1.running_mean"] - seen["iteration0.buffer.1.running_mean"]
    assert torch.equal(seen["iteration1.change.1.running_mean"], moved)
    assert "iteration0.change.1.num_batches_tracked" not in seen
    assert seen["iteration1.buffer.1.num_batches_tracked"] == 2


class Masked(torch.nn.Module):
    """Attention's mask as a buffer; ``later`` puts infinities there that were not there before."""

    def __init__(self, later: bool = False) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))
        self.later = later

    def forward(self, x: Any) -> Any:
        if self.later:
            self.mask = self.mask - torch.inf
            return x
        return torch.softmax(x[:, None] + self.mask, -1)[:, 2]


def test_infinities_that_were_there_are_no_mistake_of_a_step() -> None:
    """They did not move, and they are where they were; what becomes infinite is not finite."""
    from torchgauge.harness.worker.accuracy import nonfinite

    seen = observed(Masked())
    assert not nonfinite(seen)
    assert not seen["iteration1.change.1.mask"].any()
    assert seen["iteration1.buffer.1.mask.not_finite"].tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert nonfinite(observed(Masked(later=True))) == "iteration0.change.1.mask"


class Frozen(torch.nn.BatchNorm1d):
    """A batch norm whose statistics a faulty compiler left as they were."""

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, training=True)


def test_statistics_that_do_not_move_are_found() -> None:
    """Beside one, a hundredth of a variance lies below the tolerance; as a change it is all zeros."""
    from torchgauge.harness.worker.accuracy import compare

    right, wrong = observed(), observed(Frozen(3))
    counted = [path for path in right if path.endswith("num_batches_tracked")]
    for path in counted:
        wrong[path] = right[path]
    verdict = compare(right, wrong, None, Tolerance(1.0, 1.0, 2.0, "test"))
    failed = {text.partition(":")[0] for text in verdict.failed}
    assert {"iteration0.change.1.running_mean", "iteration0.change.1.running_var"} <= failed
    assert not any(path.startswith("iteration0.grad") for path in failed)
