"""Cut a release: what `.github/workflows/release.yml` types, and a person can (CONTRIBUTING.md).

`check` says whether this tree is the release that a tag names, `build` makes the sdist and from it the wheel,
`try` installs that wheel alone and lists what it brought, `notes` writes its part of the changelog.
It needs git and the extra `release`. What is wrong is said on standard error, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import email.parser
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION_FILE = Path("src/torchgauge/__init__.py")
RELEASE = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}((a|b|rc)(0|[1-9]\d*))?")
"""What PEP 440 calls a final release or a pre-release, in its normal form, with three parts."""
SECTION = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d|not released)\)$", re.MULTILINE)


class ReleaseError(Exception):
    """Something that must be put right before this can be released."""


def version() -> str:
    """The one place where the version stands."""
    found = re.search(r'^__version__ = "([^"]+)"$', (ROOT / VERSION_FILE).read_text("utf-8"), re.MULTILINE)
    if not found:
        raise ReleaseError(f'{VERSION_FILE} has no line __version__ = "..."')
    return found[1]


def changelog_section() -> tuple[str, str]:
    """Return the head of the changelog's first section, and the text below it."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heads = list(SECTION.finditer(text))
    if not heads:
        raise ReleaseError("CHANGELOG.md has no section; write one: ## 1.2.3 (not released)")
    end = heads[1].start() if len(heads) > 1 else len(text)
    return heads[0][0], text[heads[0].end() : end].strip() + "\n"


def problems(tag: str | None) -> list[str]:
    """Why this tree is not the release that ``tag`` (or, without one, its version) names; empty if it is."""
    found, told = version(), []
    if not RELEASE.fullmatch(found):
        told.append(f"{VERSION_FILE} says {found}, which is no release; write the version that it shall be")
    if tag is not None and tag != f"v{found}":
        told.append(f"the tag is {tag}, but {VERSION_FILE} says {found}")
    head = changelog_section()[0]
    if not re.match(rf"## {re.escape(found)} \(\d", head):
        told.append(f"the first section of CHANGELOG.md is {head!r}; write: ## {found} (its date)")
    return told


def check(tag: str | None) -> None:
    """Raise `ReleaseError` with everything that keeps this tree from being the release."""
    told = problems(tag)
    if told:
        raise ReleaseError("this is no release yet:\n" + "\n".join(f"  - {each}" for each in told))
    print(f"torchgauge {version()} can be released")


def commit_time() -> str:
    """Seconds since 1970 of the commit that is built, so that whoever builds it again gets the same bytes."""
    return os.environ.get("SOURCE_DATE_EPOCH") or run_for_text("git", "log", "-1", "--format=%ct").strip()


def build(out: Path) -> None:
    """Build sdist and, from it alone, wheel into the empty folder ``out``, and check what they say."""
    if out.exists() and any(out.iterdir()):
        raise ReleaseError(f"{out} is not empty; name an empty folder")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time()}
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), environment=environment)
    files = distributions(out)
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    for path in files:
        if metadata_version(path) != version():
            raise ReleaseError(f"{path.name} says version {metadata_version(path)}, not {version()}")
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")


def distributions(folder: Path) -> list[Path]:
    """The sdist and the wheel of this version in ``folder``; nothing else may be there."""
    names = [f"torchgauge-{version()}.tar.gz", f"torchgauge-{version()}-py3-none-any.whl"]
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if there != sorted(names):
        raise ReleaseError(f"{folder} has {', '.join(there) or 'nothing'}; expected: {', '.join(names)}")
    return [folder / name for name in names]


def metadata_version(path: Path) -> str:
    """The version in the metadata of a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            text = wheel.read(name).decode()
    else:
        with tarfile.open(path) as sdist:
            held = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
            text = held.read().decode() if held else ""
    return str(email.parser.HeaderParser().parsestr(text)["Version"])


def try_wheel(folder: Path, sbom: Path) -> None:
    """Install the wheel of ``folder`` with what it asks for and nothing else, run it, and list that."""
    wheel = distributions(folder)[1].resolve()
    with tempfile.TemporaryDirectory() as name:
        # Without pip, so that the list has what torchgauge needs and no tool of ours.
        run(sys.executable, "-m", "venv", "--without-pip", name)
        python = Path(name) / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
        run(*pip, "install", str(wheel), where=Path(name))
        torchgauge = Path(name) / "bin" / "torchgauge"
        said = run_for_text(str(torchgauge), "--version", where=Path(name)).strip()
        if said != f"torchgauge, version {version()}":
            raise ReleaseError(f"the installed wheel says {said!r}")
        measure = ["--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.1"]
        run(str(torchgauge), "run", "toy", *measure, "--store", "store", where=Path(name))
        sbom.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python), "--output-reproducible"]
        run(*command, "--output-format", "JSON", "--output-file", str(sbom.resolve()))


def notes() -> str:
    """Return the changelog's first section: of this version, or between releases of the next one."""
    return changelog_section()[1]


def run(*command: str, environment: dict[str, str] | None = None, where: Path = ROOT) -> None:
    """Run ``command``; raises `ReleaseError` where it fails, after it said why."""
    done = subprocess.run(command, env=environment, cwd=where, check=False)
    if done.returncode:
        raise ReleaseError(f"exit code {done.returncode} of: {' '.join(command)}")


def run_for_text(*command: str, where: Path = ROOT) -> str:
    """What ``command`` prints; raises `ReleaseError` where it fails."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"exit code {done.returncode} of: {' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """Do what the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    verbs = parser.add_subparsers(dest="verb", required=True)
    checking = verbs.add_parser("check", help="is this tree the release that the tag names?")
    checking.add_argument("--tag", help="such as v1.2.3; without it only the tree itself is checked")
    building = verbs.add_parser("build", help="make sdist and wheel")
    building.add_argument("--out", type=Path, required=True, help="an empty or new folder")
    trying = verbs.add_parser("try", help="install the wheel alone, run it, and write its SBOM")
    trying.add_argument("dist", type=Path, help="the folder that build wrote")
    trying.add_argument("--sbom", type=Path, required=True, help="CycloneDX JSON, to be written")
    telling = verbs.add_parser("notes", help="this version's part of the changelog")
    telling.add_argument("--out", type=Path, required=True, help="Markdown, to be written")
    chosen = parser.parse_args()
    try:
        if chosen.verb == "check":
            check(chosen.tag)
        elif chosen.verb == "build":
            build(chosen.out.resolve())
        elif chosen.verb == "try":
            try_wheel(chosen.dist.resolve(), chosen.sbom.resolve())
        else:
            chosen.out.parent.mkdir(parents=True, exist_ok=True)
            chosen.out.write_text(notes(), encoding="utf-8")
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
