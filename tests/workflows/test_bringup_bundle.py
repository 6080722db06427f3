"""The bundle of a bringup: taken whole by a maintainer's store, or refused with the file that was altered."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchgauge.cli.main import cli
from torchgauge.results.lookup import results_of
from torchgauge.results.origin import OriginKind, origin_of
from torchgauge.results.store import Store

POOLS = """
version: 1
contributors:
  - name: {who}
    pools: [{pool}]
    contact: ci@acme.example
{more}
"""
DEVICE = "bringup-fake"


def bring_up(out: Path, *models: str) -> None:
    """A bringup of a device that runs no torch, with one run."""
    asked = ("--device", "fake", "--out", str(out), "--suites", "toy", "--models", ",".join(models))
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "bringup", *asked, "--parts", "models,check"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (out / "bundle" / "manifest.json").is_file(), done.stderr


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bringup whose bundle a vendor sends."""
    out = tmp_path_factory.mktemp("vendor") / "out"
    bring_up(out, "noop")
    return out


def receive(folder: Path, bundle: Path, pool: str = DEVICE, more: str = "", who: str = "acme") -> Result:
    """What the maintainer whose store is in ``folder`` hears of ``bundle``."""
    list_file = folder / "contributors.yml"
    list_file.write_text(POOLS.format(pool=pool, more=more, who=who))
    words = ("--store", str(folder / "store"), "--contributor", who, "--contributors", str(list_file))
    return CliRunner().invoke(cli, ["ci", "receive", str(bundle), *words])


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_rows_of_a_bundle_are_in_the_maintainers_store_as_the_contributors(sent, tmp_path, form) -> None:
    """All rows that the vendor has are there, marked as contributed; taking them again changes nothing."""
    bundle = sent / "bundle"
    if form == "zip":
        bundle = tmp_path / "bundle.zip"
        with zipfile.ZipFile(bundle, "w") as archive:
            for file in sorted((sent / "bundle").iterdir()):
                archive.write(file, file.name)
    done = receive(tmp_path, bundle)
    assert done.exit_code == 0, done.output
    there, here = Store.open(sent / "store"), Store.open(tmp_path / "store")
    told = sorted((row.case_id, row.status) for run in there.run_ids() for row in results_of(there, run))
    runs = here.published()
    assert sorted((row.case_id, row.status) for run in runs for row in results_of(here, run)) == told
    assert told
    assert {origin_of(here, run).kind for run in runs} == {OriginKind.CONTRIBUTED}
    again = receive(tmp_path, bundle)
    assert (again.exit_code, here.published()) == (0, runs)
    assert "is there already" in again.output


@pytest.mark.parametrize("name", ["report.html", "models-journal.jsonl", "check-plan.json", "campaign.json"])
def test_an_altered_file_is_refused_by_its_name(sent, tmp_path, name) -> None:
    """One byte more in a file of the bundle, and nothing of it is taken."""
    bundle = Path(shutil.copytree(sent / "bundle", tmp_path / "bundle"))
    (bundle / name).write_bytes((bundle / name).read_bytes() + b" ")
    done = receive(tmp_path, bundle)
    assert isinstance(done.exception, Exception)
    assert f"hash: {name} is not the file that the manifest describes" in str(done.exception)
    assert Store.open(tmp_path / "store").run_ids() == ()


def test_a_file_more_or_less_and_another_pool_are_refused(sent, tmp_path) -> None:
    """A bundle is its files, no more and no fewer, and its pool must be one of its contributor's."""
    bundle = Path(shutil.copytree(sent / "bundle", tmp_path / "bundle"))
    (bundle / "check-plan.json").unlink()
    assert "schema: the manifest lists other files" in str(receive(tmp_path, bundle).exception)
    shutil.copyfile(sent / "bundle" / "check-plan.json", bundle / "check-plan.json")
    (bundle / "notes.txt").touch()
    assert "extra_file" in str(receive(tmp_path, bundle).exception)
    done = receive(tmp_path, sent / "bundle", pool="bringup-other")
    assert done.exit_code == 3
    assert "not_your_pool" in done.output
    assert Store.open(tmp_path / "store").run_ids() == ()


def stamped(bundle: Path) -> None:
    """Write the hashes of all files anew, as somebody who alters a bundle would."""
    for name in ("check-manifest.json", "models-manifest.json", "manifest.json"):
        manifest = json.loads((bundle / name).read_bytes())
        for each in manifest["files"]:
            raw = (bundle / f"{name.removesuffix('manifest.json')}{each['name']}").read_bytes()
            each.update(sha256=hashlib.sha256(raw).hexdigest(), size=len(raw))
        (bundle / name).write_text(json.dumps(manifest))


def test_one_forged_set_and_one_that_came_twice_refuse_all_of_a_bundle(sent, tmp_path) -> None:
    """A row that was edited under new hashes lets no run in, nor does one part in the place of another."""
    bundle = Path(shutil.copytree(sent / "bundle", tmp_path / "bundle"))
    for name in ("manifest.json", "plan.json", "journal.jsonl"):
        shutil.copyfile(sent / "bundle" / f"models-{name}", bundle / f"check-{name}")
    stamped(bundle)
    assert "its parts are not those of its campaign" in str(receive(tmp_path, bundle).exception)
    for name in ("manifest.json", "plan.json", "journal.jsonl"):
        shutil.copyfile(sent / "bundle" / f"check-{name}", bundle / f"check-{name}")
    journal = bundle / "models-journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"status":"', b'"status": "', 1))
    stamped(bundle)
    done = receive(tmp_path, bundle)
    assert done.exit_code == 3, done.output
    assert "rejected models: damaged_journal" in done.output
    assert Store.open(tmp_path / "store").run_ids() == ()


def test_a_bundle_of_another_device_and_one_that_somebody_else_sent_are_refused(sent, tmp_path) -> None:
    """The manifest is of the device that was measured, and nobody takes the place of another's bringup."""
    bundle = Path(shutil.copytree(sent / "bundle", tmp_path / "bundle"))
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "device": "another"}))
    assert "its campaign is of another device" in str(receive(tmp_path, bundle).exception)
    assert receive(tmp_path, sent / "bundle").exit_code == 0
    done = receive(tmp_path, sent / "bundle", who="rival")
    assert "the store has this bringup from another contributor" in str(done.exception)


def test_a_bundle_must_be_signed_where_its_contributor_signs(sent, tmp_path) -> None:
    """`ci sign` signs a bundle as it signs a set; an unsigned one and one altered afterwards are refused."""
    bundle, key = Path(shutil.copytree(sent / "bundle", tmp_path / "bundle")), tmp_path / "key.pem"
    public = CliRunner().invoke(cli, ["ci", "sign", "--new-key", str(key)]).output.strip()
    more = f"    keys: ['{public}']"
    assert "unsigned" in str(receive(tmp_path, bundle, more=more).exception)
    signed = CliRunner().invoke(cli, ["ci", "sign", str(bundle), "--key", str(key)])
    assert signed.exit_code == 0, signed.output
    assert receive(tmp_path, bundle, more=more).exit_code == 0
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "device": "another"}))
    assert "the signature is not of this manifest" in str(receive(tmp_path, bundle, more=more).exception)


def test_a_later_bundle_of_the_same_bringup_takes_the_place_of_the_earlier(sent, tmp_path) -> None:
    """What was added since is taken, and no case is in the tables twice."""
    assert receive(tmp_path, sent / "bundle").exit_code == 0
    first = Store.open(tmp_path / "store").published()
    out = Path(shutil.copytree(sent, tmp_path / "out"))
    bring_up(out, "noop")
    done = receive(tmp_path, out / "bundle")
    assert done.exit_code == 0, done.output
    later = Store.open(tmp_path / "store").published()
    assert later
    assert not set(later) & set(first)
