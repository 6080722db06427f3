"""Attestations that a Git host keeps of what its workflows made, verified by the Git host's own tool ``gh``.

An attestation says which workflow of which repository made a file, with a certificate that lived for minutes.
``gh`` checks it against sigstore's log; nothing of that is done again here.
Source: cli.github.com/manual/gh_attestation_verify, gh_help_exit-codes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from torchgauge.errors import InfrastructureError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.result_set import MANIFEST

WORKFLOW = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})/\.github/workflows/[A-Za-z0-9._-]{1,100}\.ya?ml"
)
"""A workflow file with its repository, as ``contributors.yml`` names it."""
NOT_VERIFIED = 1
"""Exit code of ``gh`` for what is not attested so; 2 and 4 are a cancel and a missing login."""
LOGIN = ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_CONFIG_DIR")
"""Variables that ``gh``, and nothing else that torchgauge starts, needs of a person's own."""
WAIT_S = 120.0


def check_attestation(manifest: bytes, workflow: str, program: str = "gh") -> None:
    """Raise ``RefusedSetError`` unless ``workflow`` attested the bytes of ``manifest``.

    Raises :class:`InfrastructureError` where ``gh`` cannot say.
    """
    found = WORKFLOW.fullmatch(workflow)
    if found is None:
        raise RefusedSetError(Reason.UNATTESTED, "no workflow is named that could have made it")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, MANIFEST)
        file.write_bytes(manifest)
        words = [program, "attestation", "verify", str(file), "--repo", found[1]]
        words += ["--signer-workflow", workflow, "--format", "json"]
        try:
            login = {name: os.environ[name] for name in LOGIN if name in os.environ}
            done = run(words, passed(Purpose.GIT) | login, timeout=WAIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfrastructureError(
                f"an attestation cannot be checked: {type(error).__name__}",
                hint="install GitHub's tool gh and set GH_TOKEN for it",
            ) from error
    if done.returncode == NOT_VERIFIED:
        raise RefusedSetError(Reason.UNATTESTED, "the workflow of its contributor did not attest it")
    if done.returncode != 0 or not _is_proof(done.stdout):
        raise InfrastructureError(
            f"gh attestation verify ended with {done.returncode} and no answer",
            hint="set GH_TOKEN; `gh attestation verify FILE --repo OWNER/NAME` says more",
        )


def _is_proof(answer: str) -> bool:
    """Whether ``gh`` listed at least one attestation that it verified: an empty answer proves nothing."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and any(
        isinstance(each, dict) and each.get("verificationResult") for each in found
    )
