"""Sets of contributors who sign, or whose workflow attests: what is not theirs is refused by name."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Files, Night, bytes_of, files_of, in_row, sealed, write_folder

from torchgauge.cli.main import cli
from torchgauge.errors import DataFileError, InfrastructureError, UsageError
from torchgauge.workflows.attestation import check_attestation
from torchgauge.workflows.campaign import campaign_json
from torchgauge.workflows.ingest.contributors import contributor_named
from torchgauge.workflows.ingest.intake import import_sets
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.set_signature import new_key, sign

SIGNATURE = "signature.json"
WORKFLOW = "acme/lab/.github/workflows/bench.yml"


class Signed:
    """A night with one signed set, the owner's key and a stranger's."""

    def __init__(self, folder: Path) -> None:
        self.night = Night(folder / "night")
        self.mine, self.theirs = folder / "mine.pem", folder / "theirs.pem"
        self.key, self.other = new_key(self.mine), new_key(self.theirs)
        self.folder = self.night.pack(1)
        sign(self.folder, self.mine)
        self.files = files_of(self.folder)
        second = self.night.pack(2)
        sign(second, self.mine)
        self.second = files_of(second)[SIGNATURE]

    def answer(self, files: Files, at: Path) -> Reason | None:
        """Why ``files`` are refused; None where they are taken."""
        expected = replace(self.night.expected, keys=frozenset({self.key}))
        before = bytes_of(self.night.store.path)
        _, refused = import_sets(
            self.night.store, [write_folder(at, files)], expected, "acme", self.night.clock
        )
        if refused:
            assert bytes_of(self.night.store.path) == before
        return refused[0].reason if refused else None


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    return Signed(tmp_path)


def said(files: Files, **changes: object) -> Files:
    """``files`` with these fields in the signature."""
    return {**files, SIGNATURE: json.dumps({**json.loads(files[SIGNATURE]), **changes}).encode()}


def flipped(files: Files) -> Files:
    """One bit of the signature."""
    data = bytearray(base64.b64decode(json.loads(files[SIGNATURE])["signature"]))
    data[7] ^= 1
    return said(files, signature=base64.b64encode(bytes(data)).decode())


def without(files: Files) -> Files:
    return {name: data for name, data in files.items() if name != SIGNATURE}


FORGED: dict[str, tuple[Reason, Callable[[Signed], Files]]] = {
    "no signature": (Reason.UNSIGNED, lambda s: without(s.files)),
    "the signature of another set": (Reason.SIGNATURE, lambda s: {**s.files, SIGNATURE: s.second}),
    "another manifest": (
        Reason.SIGNATURE, lambda s: sealed(without(s.files)) | {SIGNATURE: s.files[SIGNATURE]}
    ),
    "other rows, sealed": (
        Reason.SIGNATURE,
        lambda s: in_row(without(s.files), b'"duration_s":0.0', b'"duration_s":9.0')
        | {SIGNATURE: s.files[SIGNATURE]},
    ),
    "other rows, unsealed": (
        Reason.HASH, lambda s: {**s.files, "journal.jsonl": s.files["journal.jsonl"] + b"\n"}
    ),
    "a flipped bit": (Reason.SIGNATURE, lambda s: flipped(s.files)),
    "a stranger's key": (Reason.SIGNATURE, lambda s: said(s.files, key=s.other)),
    "an empty signature": (Reason.SIGNATURE, lambda s: said(s.files, signature="")),
    "no base64": (Reason.SIGNATURE, lambda s: said(s.files, signature="%%%")),
    "a short signature": (Reason.SIGNATURE, lambda s: said(s.files, signature="AAAA")),
    "another schema": (Reason.SIGNATURE, lambda s: said(s.files, schema=2)),
    "an unknown field": (Reason.SCHEMA, lambda s: said(s.files, algorithm="none")),
    "a signature that is no text": (Reason.SCHEMA, lambda s: said(s.files, signature=None)),
    "no JSON": (Reason.JSON, lambda s: {**s.files, SIGNATURE: b"{"}),
    "too long": (Reason.TOO_LARGE, lambda s: {**s.files, SIGNATURE: b" " * 5000}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_its_contributor_did_not_sign_is_refused(name: str, signed: Signed, tmp_path: Path) -> None:
    """Whatever stands in place of the signature, the store is as it was."""
    word, forge = FORGED[name]
    assert signed.answer(forge(signed), tmp_path / "set") is word


def test_a_set_that_a_stranger_signed_is_refused(signed: Signed, tmp_path: Path) -> None:
    """A true signature with a key that nobody listed is none."""
    sign(signed.folder, signed.theirs)
    assert signed.answer(files_of(signed.folder), tmp_path / "set") is Reason.SIGNATURE


def test_a_signed_set_is_taken_and_its_signature_kept(signed: Signed, tmp_path: Path) -> None:
    """The evidence lies beside the run; who asks for no signature takes the set as well."""
    assert signed.answer(signed.files, tmp_path / "set") is None
    run = signed.night.store.path / "runs" / signed.night.run_id()
    assert (run / SIGNATURE).read_bytes() == signed.files[SIGNATURE]


@pytest.mark.parametrize("data", [b"\xff\x00 HF_TOKEN=x\n::error::", None])
def test_a_signature_that_nobody_checked_is_not_kept(
    data: bytes | None, signed: Signed, tmp_path: Path
) -> None:
    """Where no signature is asked for, the file is in no manifest and may hold anything."""
    files = {**signed.files, SIGNATURE: signed.files[SIGNATURE] if data is None else data}
    folder = write_folder(tmp_path / signed.folder.name, files)
    _, refused = import_sets(signed.night.store, [folder], signed.night.expected, "acme", signed.night.clock)
    assert refused == []
    kept = bytes_of(signed.night.store.path)
    assert any(name.endswith("journal.jsonl") for name in kept)
    assert [name for name in kept if name.endswith(SIGNATURE)] == []


def test_the_command_makes_keys_and_signs(signed: Signed, tmp_path: Path) -> None:
    """A key is for its owner's eyes and never replaced; its public half is what contributors.yml takes."""
    file = tmp_path / "new.pem"
    done = CliRunner().invoke(cli, ["ci", "sign", "--new-key", str(file)])
    assert done.exit_code == 0, done.output
    assert file.stat().st_mode & 0o077 == 0
    people = tmp_path / "contributors.yml"
    people.write_text(
        "version: 1\ncontributors:\n  - name: acme\n    pools: [pool]\n    contact: a@b\n"
        f"    keys: ['{done.output.strip()}']\n    attested_by: {{pool: {WORKFLOW}}}\n"
    )
    assert contributor_named(people, "acme").keys == (done.output.strip(),)
    people.write_text(people.read_text().replace("ed25519:", "rsa:"))
    with pytest.raises(DataFileError):
        contributor_named(people, "acme")
    with pytest.raises(UsageError, match="exists"):
        new_key(file)
    done = CliRunner().invoke(cli, ["ci", "sign", str(signed.folder), "--key", str(file)])
    assert done.exit_code == 0, done.output
    for wrong in ("contributors.yml", "nowhere.pem"):
        with pytest.raises(UsageError, match=r"holds no private key|cannot be read"):
            sign(signed.folder, tmp_path / wrong)
    with pytest.raises(UsageError, match="not a result set"):
        sign(tmp_path, file)


def stand_in(folder: Path, code: int, answer: str) -> str:
    """A ``gh`` that ends with ``code`` and says ``answer``, and keeps the words that it was started with."""
    program = folder / "gh"
    program.write_text(f"#!/bin/sh\necho \"$@\" >{folder}/words\ncat <<'E'\n{answer}\nE\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


def test_an_attested_manifest_is_taken(tmp_path: Path) -> None:
    """The tool is asked for that workflow of that repository."""
    gh = stand_in(tmp_path, 0, '[{"attestation": {}, "verificationResult": {"mediaType": "x"}}]')
    check_attestation(b"{}", WORKFLOW, gh)
    words = (tmp_path / "words").read_text()
    assert words.startswith("attestation verify ")
    assert f"--repo acme/lab --signer-workflow {WORKFLOW} --format json" in words


@pytest.mark.parametrize(
    "workflow", ["", "acme/lab", "acme/lab/.github/workflows/../x.yml", f"{WORKFLOW} -x"]
)
def test_a_workflow_that_is_none_attests_nothing(workflow: str, tmp_path: Path) -> None:
    """Nothing but a workflow's file reaches the tool."""
    with pytest.raises(RefusedSetError) as refused:
        check_attestation(b"{}", workflow, stand_in(tmp_path, 0, "[]"))
    assert refused.value.reason is Reason.UNATTESTED
    assert not (tmp_path / "words").exists()


def test_what_nobody_attested_is_refused(tmp_path: Path) -> None:
    """The tool ends with 1: no attestation, or one of another workflow."""
    with pytest.raises(RefusedSetError) as refused:
        check_attestation(b"{}", WORKFLOW, stand_in(tmp_path, 1, ""))
    assert refused.value.reason is Reason.UNATTESTED


@pytest.mark.parametrize(("code", "answer"), [(4, ""), (2, ""), (0, ""), (0, "[]"), (0, "{}"), (0, "[{}]")])
def test_no_answer_is_no_proof(code: int, answer: str, tmp_path: Path) -> None:
    """Without a login, cancelled, or with nothing verified: the step fails, and nothing is taken."""
    with pytest.raises(InfrastructureError, match="no answer"):
        check_attestation(b"{}", WORKFLOW, stand_in(tmp_path, code, answer))
    with pytest.raises(InfrastructureError, match="cannot be checked"):
        check_attestation(b"{}", WORKFLOW, str(tmp_path / "nowhere"))


LAB = "acme/lab/.github/workflows/{}.yml"
ATTESTED = """\
version: 1
contributors:
  - name: acme
    pools: [alpha, beta]
    contact: ci@acme.example
    attested_by: {}
"""
BOTH = f"{{alpha: {LAB.format('alpha')}, beta: {LAB.format('beta')}}}"


@pytest.mark.parametrize(
    ("pool", "attester", "word"),
    [
        ("alpha", "alpha", None),
        ("beta", "beta", None),
        ("beta", "alpha", Reason.UNATTESTED),
        ("alpha", "beta", Reason.UNATTESTED),
        ("alpha", "other", Reason.UNATTESTED),
    ],
)
def test_a_workflow_attests_the_sets_of_its_own_pool_alone(
    pool: str, attester: str, word: Reason | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One contributor has two pools: what a job of the one attested is nothing of the other."""
    night = Night(tmp_path / "night", pools=("alpha", "beta"))
    gh = Path(stand_in(tmp_path, 0, '[{"verificationResult": {"mediaType": "x"}}]'))
    asked = f'case "$*" in *" --signer-workflow {LAB.format(attester)} "*) ;; *) exit 1;; esac'
    gh.write_text(gh.read_text().replace("\n", f"\n{asked}\n", 1))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "contributors.yml").write_text(ATTESTED.format(BOTH))
    listed = contributor_named(tmp_path / "contributors.yml", "acme")
    expected = replace(night.expected, pools=frozenset(listed.pools), attested_by=listed.attested_by)
    _, refused = import_sets(night.store, [night.pack(1, pool=pool)], expected, "acme", night.clock)
    assert [each.reason for each in refused] == ([word] if word else [])
    assert len(night.store.published()) == (0 if word else 1)


@pytest.mark.parametrize(
    ("attested_by", "words"),
    [
        (LAB.format("alpha"), "attested_by"),
        (f"{{alpha: {LAB.format('alpha')}}}", "other pools than"),
        (f"{{alpha: {LAB.format('a')}, beta: {LAB.format('b')}, gamma: {LAB.format('c')}}}", "other pools"),
        (f"{{alpha: {LAB.format('both')}, beta: {LAB.format('both')}}}", "one workflow for two pools"),
        (f"{{alpha: {LAB.format('both')}, beta: {LAB.format('both').upper()}}}", "attested_by"),
        ("{alpha: acme/lab, beta: acme/lab}", "attested_by"),
    ],
)
def test_who_attests_says_so_for_each_pool(attested_by: str, words: str, tmp_path: Path) -> None:
    """A list in which an attestation would not say of which pool a set is, is a mistake."""
    (tmp_path / "contributors.yml").write_text(ATTESTED.format(attested_by))
    with pytest.raises(DataFileError, match=words):
        contributor_named(tmp_path / "contributors.yml", "acme")


def test_the_list_of_the_store_decides_whose_key_counts(signed: Signed, tmp_path: Path) -> None:
    """A set brings none; a key that was taken out of the list signs nothing more, and its runs stay."""
    store, plan = signed.night.store.path, tmp_path / "campaign.json"
    plan.write_text(campaign_json(signed.night.campaign))

    def ingest(*sets: Path) -> tuple[int, str]:
        words = ["--campaign", str(plan), "--store", str(store), "--contributor", "acme"]
        done = CliRunner().invoke(cli, ["results", "ingest", *map(str, sets), *words])
        return done.exit_code, f"{done.output}{done.exception}"

    def listed(*keys: str) -> str:
        return (
            f"version: 1\ncontributors: [{{name: acme, pools: [pool], contact: a@b, keys: {list(keys)}}}]\n"
        )

    mine = signed.folder
    assert "contributors.yml cannot be read" in ingest(mine)[1].replace(":", "")  # no list, nobody
    brought = {**signed.files, "contributors.yml": listed(signed.key).encode()}
    (store / "contributors.yml").write_text(listed(signed.other))
    assert "too_many_files" in ingest(write_folder(tmp_path / "brings", brought))[1]
    assert "signature" in ingest(mine)[1]
    (store / "contributors.yml").write_text(listed(signed.other, signed.key))  # while a key is changed
    assert ingest(mine)[0] == 0
    (store / "contributors.yml").write_text(listed(signed.other))
    second = signed.night.path / "artifacts" / signed.night.job(2).artifact
    assert "signature" in ingest(second)[1]
    (kept,) = store.glob(f"runs/*/{SIGNATURE}")
    assert json.loads(kept.read_bytes())["key"] == signed.key
