"""What the campaign benchmark measures, in which order, and the command line that says so."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign_table import PEER, PEER_AGAIN

from torchgauge.harness.planning.plan import load_suites
from torchgauge.suites.catalog import workload_for

MODELS = (
    "convnextv2_nano.fcmae_ft_in22k_in1k",
    "deit_base_distilled_patch16_224",
    "deit_tiny_patch16_224.fb_in1k",
    "ghostnet_100",
    "inception_v3",
    "mobilenetv2_100",
    "mobilenetv3_large_100",
    "mobilevit_s",
    "nfnet_l0",
    "repvgg_a2",
    "tf_efficientnet_b0",
    "visformer_small",
)
"""The twelve smallest architectures of the peer's list (adv_inception_v3 is inception_v3 again)."""

AS_THE_PEER = ("--no-memory-probe", "--no-warm-compile")
ONE_BY_ONE = ("--prefetch", "1", "--compile-cache", "none", "--cold-compile", "all")
VARIANTS: dict[str, tuple[str, ...]] = {
    "default": ONE_BY_ONE,
    "restricted": (*ONE_BY_ONE, *AS_THE_PEER),
    "first-night": AS_THE_PEER,
    "second-night": AS_THE_PEER,
}
"""Our sides. Nights prepare models side by side and share one compile cache, empty before the first."""
NIGHTS = ("first-night", "second-night")


@dataclass(frozen=True)
class Settings:
    """What a work folder was begun with: numbers of other settings are not mixed with these."""

    torchbench: str
    models: tuple[str, ...]
    variants: tuple[str, ...]
    chunk: int
    threads: int
    peer_python: str
    device: str = "cpu"


@dataclass(frozen=True)
class Unit:
    """What runs in one go: a model on the peer's side, a chunk of models on ours."""

    side: str
    models: tuple[str, ...]

    @property
    def key(self) -> str:
        """The unit's name in the records."""
        return f"{self.side}: {', '.join(self.models)}"


def schedule(settings: Settings) -> list[Unit]:
    """All units, sides in turn by chunk of models, in an order that is reversed from chunk to chunk."""
    units: list[Unit] = []
    chunks = [settings.models[i : i + settings.chunk] for i in range(0, len(settings.models), settings.chunk)]
    for number, models in enumerate(chunks):
        sides = [PEER, *settings.variants]
        turned = number % 2 and not {PEER_AGAIN, *NIGHTS} & set(sides)  # a second night comes after the first
        for side in reversed(sides) if turned else sides:
            theirs = side in (PEER, PEER_AGAIN)
            units += [Unit(side, (model,)) for model in models] if theirs else [Unit(side, models)]
    return units


def batches() -> dict[str, int]:
    """Model of the timm suite to torchgauge's small inference batch, which the peer is told to use too."""
    entries = load_suites(["timm"])["timm"].models()
    return {entry.name: workload_for("timm", entry, "inference").batch for entry in entries}


def settings_of(arguments: Sequence[str]) -> tuple[Settings, Path]:
    """Settings and work folder of a command line; ends the process where they make no sense."""
    parser = argparse.ArgumentParser(description="A campaign against PyTorch's own benchmark runner.")
    parser.add_argument("--torchbench", required=True, help="checkout of pytorch/benchmark")
    parser.add_argument("--work", default="campaign-work", help="folder of records, caches and stores")
    parser.add_argument("--models", default=",".join(MODELS), help="names out of the peer's timm list")
    parser.add_argument(
        "--variants", default="default,restricted", help="sides beside the peer, in this order"
    )
    parser.add_argument("--chunk", type=int, default=3, help="models until the sides change")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="OMP_NUM_THREADS")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter of the peer")
    parser.add_argument("--device", default="cpu", help="torch's name of the device of both sides")
    given = parser.parse_args(arguments)
    models, variants = tuple(given.models.split(",")), tuple(given.variants.split(","))
    unknown = [name for name in models if name not in batches()]
    unknown += [name for name in variants if name not in (*VARIANTS, PEER_AGAIN)]
    if unknown or given.chunk < 1 or given.threads < 1:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "--chunk and --threads are 1 or more")
    torchbench = str(Path(given.torchbench).resolve())
    peer_python, device = given.peer_python, given.device
    settings = Settings(torchbench, models, variants, given.chunk, given.threads, peer_python, device)
    return settings, Path(given.work)
