"""What a vendor sends of a bringup, and how a maintainer takes it: its runs as result sets, and the report.

::

    manifest.json                      hash and size of every other file
    signature.json                     where its contributor signs: `torchgauge ci sign BUNDLE --key FILE`
    campaign.json                      its runs as one campaign, so that they are checked as one
    report.md, report.html             for people
    PART-manifest.json, PART-plan.json, PART-journal.jsonl
                                       the result set of each part that has a run

All names are known, so a folder and a zip of it are read like any artifact: in memory, and never unpacked by
names of somebody else.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.devices.discover import parse_target
from torchgauge.harness.bringup.page import HTML, MARKDOWN
from torchgauge.harness.bringup.part import Part
from torchgauge.harness.bringup.state import STORE, Bringup
from torchgauge.processes.kept_process import scratch
from torchgauge.records import digest, to_plain
from torchgauge.results.origin import read_provenance
from torchgauge.results.run_id import MOST_SHARDS
from torchgauge.results.store import RunFolder, Store
from torchgauge.workflows.attestation import check_attestation
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan, terms_of
from torchgauge.workflows.ingest.container import MIB, SIZES, Caps, read_container
from torchgauge.workflows.ingest.contributors import Contributor
from torchgauge.workflows.ingest.intake import (
    Candidate,
    Refused,
    Taken,
    examine,
    import_sets,
    record_refusals,
)
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.strict_records import decode
from torchgauge.workflows.ingest.validator import SKEW_S, Expected, check_stamps
from torchgauge.workflows.result_set import (
    JOURNAL_FILE,
    MANIFEST,
    PLAN_FILE,
    SIGNATURE_FILE,
    FileStamp,
    Job,
    new_folder,
    pack,
    seal,
    stamp_of,
)
from torchgauge.workflows.set_signature import check_signature

BUNDLE_SCHEMA = 1
BUNDLE = "bundle"
CAMPAIGN = "campaign.json"
MEASURED: tuple[Part, ...] = tuple(part for part in Part if part not in (Part.IDENTITY, Part.IMPORT))
"""Parts that have a run."""
SET_FILES = (MANIFEST, PLAN_FILE, JOURNAL_FILE)
OWN_FILES = {
    MANIFEST: 64 << 10,
    SIGNATURE_FILE: SIZES[SIGNATURE_FILE],
    CAMPAIGN: 4 * MIB,
    MARKDOWN: MIB,
    HTML: MIB,
}
"""Files of the bundle that are of no set, with the most bytes of each."""
CAPS = Caps(
    sizes={**OWN_FILES, **{f"{part.value}-{name}": SIZES[name] for part in MEASURED for name in SET_FILES}},
    files=len(OWN_FILES) + len(SET_FILES) * len(MEASURED),
    without=frozenset((SIGNATURE_FILE, *(f"{part.value}-{name}" for part in MEASURED for name in SET_FILES))),
)
_SLUG = re.compile(r"[^a-z0-9]+")
_CAMPAIGN_ID = re.compile(r"bringup-[a-z0-9-]{1,60}")
_POOL = re.compile(r"bringup-[a-z0-9][a-z0-9-]{0,30}")


@dataclass(frozen=True)
class BundleManifest:
    """The files of a bundle."""

    device: str
    files: tuple[FileStamp, ...]
    schema: int = BUNDLE_SCHEMA


def write_bundle(folder: Path, state: Bringup) -> Path:
    """Write the bundle of the bringup in ``folder`` anew; a signature of the one before is gone with it.

    Raises what packing its runs raises.
    """
    out = folder / BUNDLE
    store = Store.open(folder / STORE)
    runs: dict[Part, RunFolder] = {}
    for part in MEASURED:
        if (run := _run_of(store, state, part)) is not None:
            runs[part] = run
    campaign = _campaign(state, runs)
    shutil.rmtree(out, ignore_errors=True)
    with new_folder(out) as aside, scratch("bundle") as sets:
        (aside / CAMPAIGN).write_text(json.dumps(to_plain(campaign), indent=1, allow_nan=False) + "\n")
        for name in (MARKDOWN, HTML):
            shutil.copyfile(folder / name, aside / name)
        for shard, (part, run) in zip(campaign.pools[0].shards, runs.items(), strict=True):
            pack(run, Job(campaign, campaign.pools[0], shard), sets / part.value)
            for name in SET_FILES:
                shutil.copyfile(sets / part.value / name, aside / f"{part.value}-{name}")
        stamps = tuple(stamp_of(file) for file in sorted(aside.iterdir()))
        seal(aside, out, BundleManifest(state.asked.device, stamps))
    return out


def _run_of(store: Store, state: Bringup, part: Part) -> RunFolder | None:
    """The run of ``part``, once anything of it is in the store's tables."""
    run_id = state.of(part).run_id
    return store.run(run_id) if run_id in store.published() else None


def _campaign(state: Bringup, runs: Mapping[Part, RunFolder]) -> CampaignPlan:
    """The runs as one campaign of one pool, whose place a later bundle of the same bringup takes."""
    shards = []
    for index, run in enumerate(runs.values(), start=1):
        cases = {planned.case.id: planned for planned in run.plan().cases}
        expected = tuple(
            (name, planned.expectation) for name, planned in cases.items() if planned.expectation is not None
        )
        shards.append(ShardPlan(index, len(runs), tuple(cases), 0.0, terms_of(cases), expected))
    name = parse_target(state.asked.device).name
    slug = _SLUG.sub("-", name.lower()).strip("-")[:30] or "device"
    began = utc(state.created_at)
    return CampaignPlan(
        campaign_id=f"bringup-{slug}-{began:%Y%m%d-%H%M%S}",
        created_at=state.created_at + state.revision,
        night=began.date().isoformat(),
        repository="",
        sha="",
        torch=state.facts.torch,
        suite_digest=digest([run.plan().digest for run in runs.values()]),
        pools=(PoolPlan(f"bringup-{slug}", name, (), "", 0.0, tuple(shards)),),
    )


def receive(
    store: Store, bundle: Path, who: Contributor, now: float | None = None
) -> tuple[list[Taken], list[Refused]]:
    """Take the runs of ``bundle``, a folder or a zip of its files, into ``store`` as those of ``who``.

    Where one of them is refused none is taken. Raises :class:`RefusedSetError`, with nothing taken, where the
    bundle is not what its manifest says, has not all runs of its campaign, or is not signed as ``who`` signs.
    """
    at = SYSTEM_CLOCK.now() if now is None else now
    files = read_container(bundle, CAPS)
    if who.keys:
        check_signature(files, frozenset(who.keys))
    manifest = decode(files[MANIFEST], BundleManifest, "the manifest of the bundle")
    if manifest.schema != BUNDLE_SCHEMA:
        raise RefusedSetError(
            Reason.SCHEMA, f"the bundle is of schema {manifest.schema}, not {BUNDLE_SCHEMA}"
        )
    check_stamps(files, manifest.files)
    campaign = _checked_campaign(files[CAMPAIGN], at)
    if manifest.device.partition(".")[0] != campaign.pools[0].device:
        raise RefusedSetError(Reason.FOREIGN_CAMPAIGN, "its campaign is of another device")
    _check_owner(store, campaign.campaign_id, who.name)
    if who.attested_by:
        check_attestation(files[MANIFEST], dict(who.attested_by).get(campaign.pools[0].name, ""))
    expected = Expected(campaign, at, pools=frozenset(who.pools), rows_per_day=who.rows_per_day)
    with scratch("bundle") as folder:
        sets = [found for part in MEASURED if (found := _unfold(files, part, folder)) is not None]
        looked = [examine(path, expected, named=False) for path in sets]
        if refused := [each for each in looked if isinstance(each, Refused)]:
            record_refusals(store, refused)
            return [], refused
        came = sorted(each.valid.shard.index for each in looked if isinstance(each, Candidate))
        if came != [shard.index for shard in campaign.pools[0].shards]:
            raise RefusedSetError(Reason.FOREIGN_SHARD, "its parts are not those of its campaign")
        return import_sets(store, sets, expected, who.name)


def _check_owner(store: Store, campaign_id: str, name: str) -> None:
    """Refuse a bringup that somebody else sent: a later plan takes the place of an earlier one."""
    for run_id in store.run_ids():
        said = read_provenance(store, run_id)
        if said.get("campaign_id") == campaign_id and said.get("contributor") != name:
            raise RefusedSetError(
                Reason.FOREIGN_CAMPAIGN, "the store has this bringup from another contributor"
            )


def _unfold(files: Mapping[str, bytes], part: Part, folder: Path) -> Path | None:
    """The result set of ``part`` in a folder of its own; None where the bundle has none."""
    if f"{part.value}-{MANIFEST}" not in files:
        return None
    (folder / part.value).mkdir()
    for name in SET_FILES:
        if (raw := files.get(f"{part.value}-{name}")) is not None:
            (folder / part.value / name).write_bytes(raw)
    return folder / part.value


def _checked_campaign(raw: bytes, now: float) -> CampaignPlan:
    """The campaign that the vendor's own command wrote: nobody planned it, so only its form is ours."""
    found: CampaignPlan = msgspec.convert(
        decode(raw, CampaignPlan, "the campaign"), CampaignPlan, from_attributes=True
    )
    if not _CAMPAIGN_ID.fullmatch(found.campaign_id) or found.sha or len(found.pools) != 1:
        raise RefusedSetError(Reason.FOREIGN_CAMPAIGN, "its campaign was not written by torchgauge bringup")
    pool = found.pools[0]
    indices = [shard.index for shard in pool.shards]
    if (
        not _POOL.fullmatch(pool.name)
        or indices != list(range(1, len(indices) + 1))
        or len(indices) > MOST_SHARDS
    ):
        raise RefusedSetError(
            Reason.FOREIGN_SHARD, "its campaign has a pool or shards that are not those of a bringup"
        )
    if not 0.0 < found.created_at <= now + SKEW_S:
        raise RefusedSetError(Reason.TIME, "its start time is impossible")
    return found
