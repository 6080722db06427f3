"""What actions/attest says about files, into ``ACT_ATTESTATIONS/KIND.json``: nothing is signed here."""

import glob
import hashlib
import json
import os
import sys
from pathlib import Path

PREDICATES = {"provenance": "https://slsa.dev/provenance/v1", "sbom": "https://cyclonedx.org/bom"}


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def main():
    """Write down subject and predicate of every file that the patterns find."""
    lines = [line.strip() for line in os.environ["SUBJECTS"].splitlines() if line.strip()]
    if not lines:
        fail("One of subject-path, subject-digest, or subject-checksums must be provided")
    files = sorted({path for line in lines for path in glob.glob(line) if Path(path).is_file()})  # noqa: PTH207
    if not files:
        fail(f"Could not find subject at path {' '.join(lines)}")
    kind = "sbom" if os.environ["SBOM"] else "provenance"
    if kind == "sbom":
        document = json.loads(Path(os.environ["SBOM"]).read_text(encoding="utf-8"))
        if document.get("bomFormat") != "CycloneDX":
            fail("Unsupported SBOM format")
    subjects = {Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files}
    folder = Path(os.environ["ACT_ATTESTATIONS"])
    folder.mkdir(parents=True, exist_ok=True)
    said = {"predicate": PREDICATES[kind], "ref": os.environ["GITHUB_REF"], "subjects": subjects}
    (folder / f"{kind}.json").write_text(json.dumps(said), encoding="utf-8")


main()
