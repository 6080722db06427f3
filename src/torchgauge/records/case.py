"""What is measured: workload x configuration x device, the three keys of every number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgauge.records.codec import Scalar, digest, to_plain


@dataclass(frozen=True)
class Workload:
    """The mathematics: what is computed, whatever executes it.

    ``batch`` is in items; ``shape`` holds further sizes such as ``(("seq", 128),)``, sorted by name.
    """

    suite: str
    model: str
    mode: str = "inference"
    dtype: str = "float32"
    batch: int = 1
    size: str = "small"
    shape: tuple[tuple[str, int], ...] = ()
    seed: int = 1234

    @cached_property
    def declared_hash(self) -> str:
        """Sixteen hex digits over every field: the part of the identity known at plan time."""
        return digest(to_plain(self))


@dataclass(frozen=True)
class Configuration:
    """How a workload is executed; ``backend`` is ``"eager"`` or the name of a dynamo backend."""

    name: str
    backend: str
    options: tuple[tuple[str, Scalar], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    threads: int | None = None

    @property
    def compiled(self) -> bool:
        """Whether ``torch.compile`` takes part."""
        return self.backend != "eager"


@dataclass(frozen=True)
class DeviceTarget:
    """A device as a case names it: the plugin's name and the index on this machine."""

    name: str
    index: int = 0

    def __str__(self) -> str:
        return self.name if self.index == 0 else f"{self.name}.{self.index}"


@dataclass(frozen=True)
class Case:
    """Workload x configuration x device: the thing that ends in exactly one result."""

    workload: Workload
    configuration: Configuration
    device: DeviceTarget

    @cached_property
    def id(self) -> str:
        """The one name of this case in logs, files and on the command line."""
        w = self.workload
        extras = dict(w.shape)
        fields = [f"{key}={value}" for key, value in sorted(extras.items())]
        if w.size != "small":
            fields.insert(0, f"size={w.size}")
        if w.seed != Workload.seed:
            fields.append(f"seed={w.seed}")
        suffix = f"[{','.join(fields)}]" if fields else ""
        return (
            f"{w.suite}/{w.model}:{w.mode}:{w.dtype}:b{w.batch}"
            f":{self.configuration.name}@{self.device}{suffix}"
        )

    @cached_property
    def key(self) -> str:
        """Sixteen hex digits that identify the case across runs."""
        return digest(to_plain(self))
