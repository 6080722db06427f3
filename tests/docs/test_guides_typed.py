"""Every ``torchgauge`` command of the guides is typed in a shell: none is refused, none ends in a traceback.

The commands of a guide are typed in order, in one folder, with :data:`STANDS_FOR` in place of names that the
reader fills in. A command that takes longer than :data:`LONGEST_S` is interrupted: it was accepted and ran.
Commands in :data:`NOT_TYPED` need a machine or a service that a test does not have.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import ROOT, blocks_of

GUIDES = sorted(path for path in (ROOT / "docs" / "how-to").glob("*.md") if path.stem != "write-a-plugin")
"""All guides but the one whose files and commands ``test_seams`` types."""
LONGEST_S = 240
INTERRUPTED = 124
STANDS_FOR = {
    r"\bresults remove RUN\b": 'results remove "$(ls torchgauge-results/runs | head -n 1)"',
    r"\bRUN\b": "latest",
    r"--device (DEVICE|NAME|D)\b": "--device cpu",
    r"\bDEVICE,cpu\b": "cpu",
    r"--(device|devices) npu\b": r"--\1 npusim",
    r"@npu\[": "@npusim[",
    r"--store (nightly|results|history|\./torchgauge-results)\b": "--store torchgauge-results",
    r' --runner-class "[^"]+"': "",
    r"dashboard build nightly\b": "dashboard build torchgauge-results",
}
FIRST = {
    "check-a-device": "torchgauge ops judge --device npusim --ops nn.functional.layer_norm --dtype float32",
    "gate-a-repository": "torchgauge ab --base old/bin/python --head new/bin/python toy/mlp --device cpu "
    "--config eager --measure-seconds 0.1 --max-launches 2 --no-control",
}
"""What a guide's reader has run before, by guide: commands that the guide itself types need its results."""
NOT_TYPED = {
    r"\bcuda\b|--device-a D1|npu-910b": "it needs an accelerator",
    r"--executor slurm|\bworker plan\.json|results merge": "typed by the tests of clusters and machines",
    r"\btorchgauge ci init": "it needs a wheel of torchgauge; test_written_workflows types it",
    r"\btorchgauge ci (?!plan --config)": "it needs a job of GitHub Actions, or files of one",
    r"\bmatrix\b|2\.12|@2\.1|envs/": "it needs another version of torch",
    r"torchbench": "it needs a checkout of pytorch/benchmark",
    r"suites install (?!.*--dry-run)": "it asks before it installs packages",
    r"^(pip|curl|rsync|echo|pytest)\b|--yes": "it is not a command of torchgauge, or it installs packages",
    r"\b(POOL|ID|CASE|PATH|FILE|OWNER)\b|\$|/mnt/|inductor_no_cudagraphs": "it names something of the reader",
    r"--expect-history": "it needs the history of an earlier publication",
    r"\btorchgauge dashboard serve": "it serves until it is stopped",
    r"vendor\.yaml|builds\.yaml|policy\.y|laptop|mine\.json": "it reads a file of the reader",
}


def commands(guide: Path) -> list[tuple[str, str]]:
    """Return the commands of ``guide`` as they are typed, each with the reason why it is not, if any."""
    found = []
    for block in blocks_of(guide, "sh", "bash", "console"):
        for line in re.sub(r"\\\n *", " ", block.text).splitlines():
            text = re.sub(r"^(here|there)?\$ ", "", line)
            if (block.language == "console" and text == line) or "torchgauge" not in text:
                continue
            reasons = (reason for pattern, reason in NOT_TYPED.items() if re.search(pattern, text))
            reason = next(reasons, "")
            for pattern, typed in STANDS_FOR.items():
                text = re.sub(pattern, typed, text)
            found.append((text, reason))
    return found


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("guide", [path for path in GUIDES if commands(path)], ids=lambda path: path.stem)
def test_commands_of_a_guide_are_typed(guide: Path, tmp_path: Path) -> None:
    """Each command ends without a usage error and without a traceback, or is interrupted in time."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    scripts = Path(sys.executable).parent
    for name in ("old", "new", "nightly", "nightly-0901"):
        (work / name).symlink_to(scripts.parent)
    for page in (GUIDES[0].with_name("measure-your-own-model.md"), guide):
        for block in blocks_of(page, "python", "yaml"):
            if name := re.match(r"# ([\w-]+\.(?:py|ya?ml))\n", block.text):
                (work / name[1]).write_text(block.text, encoding="utf-8")
    (work / "acme").mkdir()
    (work / "acme" / "models.py").write_text((work / "mine.py").read_text().replace("model()", "encoder()"))
    environment = {
        **{name: os.environ[name] for name in ("LANG", "TMPDIR", "PYTHONPATH") if name in os.environ},
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "TORCHGAUGE_SIMULATED_DEVICE": "npusim",
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
    }

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        words = ["timeout", "--signal", "INT", "--kill-after", "120", str(LONGEST_S), "bash", "-c", command]
        return subprocess.run(
            words, cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    identity = "git config --global user.email me@example.org && git config --global user.name me"
    repository = "git init -q -b main && git add mine.py && git commit -qm model"
    measured = (
        "torchgauge run toy/mlp timm/resnet18 --device cpu --config eager,inductor --measure-seconds 0.1"
    )
    on_simulated = "torchgauge run toy/mlp --device npusim --config eager --measure-seconds 0.1"
    own = [FIRST[guide.stem]] if guide.stem in FIRST else []
    for first in (f"{identity} && {repository}", on_simulated, measured, measured, *own):
        done = typed(first)
        assert done.returncode in {0, 1, 3, INTERRUPTED}, f"$ {first}\n{done.stdout}\n{done.stderr}"
    wrong = []
    for command, reason in commands(guide):
        if reason:
            continue
        done = typed(command)
        if done.returncode in {2, 126, 127} or "Traceback" in done.stdout + done.stderr:
            wrong.append(f"$ {command}\nexit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    assert not wrong, "\n\n".join(wrong)


def test_most_commands_of_the_guides_are_typed() -> None:
    """A reason in the list above is not a way to leave everything out."""
    every = [pair for guide in GUIDES for pair in commands(guide)]
    assert sum(not reason for _, reason in every) > len(every) / 2
