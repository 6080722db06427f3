"""A campaign is planned from the file, the suites and what a store remembers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.records import Cause, Refusal, Status, digest
from torchgauge.workflows import planning
from torchgauge.workflows.campaign import campaign_json, read_campaign, terms_of
from torchgauge.workflows.config import parse_config

TEXT = """\
version: 1
campaign: {suites: [toy], configs: [eager, inductor]}
pools:
  - {name: one, device: fake, runs-on: [ubuntu-latest], shards: 2, trust: anyone, install: torch==2.13.0+cpu}
  - {name: two, device: fake, runs-on: [self-hosted, tg-two], shards: 3, container: "image:1", budget: 90m}
"""
CONFIG = parse_config(TEXT)
NIGHT = planning.Occasion(created_at=1.0, night="2027-01-31", repository="owner/name", sha="a" * 40)


def planned(config=CONFIG, occasion=NIGHT, recorded=None, pools=None):
    """The campaign of ``config``."""
    work = planning.select_cases(config.campaign, planning.devices_of(config.pools, ask_torch=False))
    return planning.plan_campaign(config.pools if pools is None else pools, occasion, work, recorded or {})


def test_every_pool_runs_every_case_once():
    """The shards of each pool hold the selected cases exactly once, and are numbered from one."""
    plan = planned()
    ids = sorted(planning.select_cases(CONFIG.campaign, planning.devices_of(CONFIG.pools)).case_ids)
    assert len(ids) > 4
    for pool, shards in zip(plan.pools, (2, 3), strict=True):
        assert sorted(case for shard in pool.shards for case in shard.cases) == ids
        assert [(shard.index, shard.of) for shard in pool.shards] == [
            (i, shards) for i in range(1, shards + 1)
        ]


def test_configurations_of_a_workload_stay_together():
    """Eager and compiled of one workload are in one shard, so that a speed-up can be taken."""
    for shard in planned().pools[1].shards:
        eager = {case.replace(":eager@", "") for case in shard.cases if ":eager@" in case}
        other = {case.replace(":inductor@", "") for case in shard.cases if ":inductor@" in case}
        assert eager == other != set()


def test_recorded_durations_size_the_shards():
    """A workload that takes as long as all others together gets a shard of its own."""
    plan = planned()
    everything = [case for shard in plan.pools[0].shards for case in shard.cases]
    slow = [case for case in everything if case.startswith("toy/convnet:")]
    recorded = {case: [1.0] for case in everything} | {case: [500.0] for case in slow}
    shards = planned(recorded=recorded).pools[0].shards
    assert sorted(slow) in [sorted(shard.cases) for shard in shards]
    assert max(shard.expected_s for shard in shards) == 500.0 * len(slow)


def test_a_pool_without_a_case_is_planned_as_empty_and_said():
    """It gets no job, and the plan does not pass over it."""
    work = planning.select_cases(CONFIG.campaign, planning.devices_of(CONFIG.pools, ask_torch=False))
    one, two = CONFIG.pools
    work = replace(work, groups={"fake": work.groups["fake"], "other": ()})
    plan = planning.plan_campaign((one, replace(two, device="other")), NIGHT, work, {})
    assert ([pool.name for pool in plan.pools], plan.empty) == (["one"], ("two",))
    assert plan.told_of == {"one", "two"}
    (note,) = planning.notes_of(plan, CONFIG)
    assert note.startswith("pool two: no case is planned, since")
    assert "Left out on request: `two`." in planning.summary_of(replace(plan, empty=(), left_out=("two",)))


def test_a_night_has_one_name_however_often_it_is_planned():
    """Date, torch and suites make the name; the time, the pools and durations do not."""
    first = planned()
    again = planned(occasion=replace(NIGHT, created_at=9.0, sha="b" * 40), pools=CONFIG.pools[:1])
    assert first.campaign_id == again.campaign_id == f"2027-01-31-2.13.0-cpu-{first.suite_digest[:8]}"
    other = [
        planned(occasion=replace(NIGHT, night="2027-02-01")),
        planned(occasion=replace(NIGHT, torch="2.14.0.dev20270131")),
        planned(parse_config(TEXT.replace("[eager, inductor]", "[eager]"))),
    ]
    assert len({plan.campaign_id for plan in (first, *other)}) == 4


@pytest.mark.parametrize("torch", ["2.13.0+rocm6.2", "Weird/..//build \u00e9", "x" * 300, ""])
def test_a_name_fits_artifacts_and_files(torch):
    """Whatever the build is called, the name is short and of characters that everything takes."""
    name = planning.campaign_id("2027-01-31", torch, "0123456789abcdef")
    assert len(name) <= planning.MAX_ID
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")


def test_only_hosted_runners_keep_code_in_the_git_host():
    """A pool's name for it changes with torch, its installation and what is compiled, not with the night."""
    plan = planned()
    kept = {leg.pool: leg.compiled for leg in planning.legs_of(plan, CONFIG)}
    assert kept["one"].startswith("torchgauge-compiled-one-")
    assert kept["two"] == ""
    again = replace(plan, night="2031-01-01", campaign_id="other")
    assert planning.kept_code(again, CONFIG.pool("one"), CONFIG) == kept["one"]
    pool = CONFIG.pool("one")
    others = [
        planning.kept_code(replace(plan, torch="9.9"), pool, CONFIG),
        planning.kept_code(plan, replace(pool, install="pip install torch==9.9"), CONFIG),
        planning.kept_code(plan, pool, replace(CONFIG, campaign=replace(CONFIG.campaign, configs=("x",)))),
    ]
    assert len({*others, kept["one"]}) == 4
    assert not planning.kept_code(plan, replace(pool, runs_on=("ubuntu-24.04", "tg-big")), CONFIG)


def test_more_shards_than_work_give_fewer_jobs():
    """Asked for more jobs than there is work to part, the plan has fewer, none of them empty, and says so."""
    config = parse_config(TEXT.replace("shards: 3", "shards: 50"))
    plan = planned(config)
    shards = plan.pools[1].shards
    assert len(shards) < 50
    assert all(shard.cases for shard in shards)
    assert any("of 50 shards" in note for note in planning.notes_of(plan, config))


def test_a_device_needs_no_package_where_pytorch_knows_it():
    """Unknown names are refused with what to try, and taken where the file says that a probe finds them."""
    config = parse_config(TEXT.replace("{name: two, device: fake", "{name: two, device: faek"))
    with pytest.raises(UnknownNameError, match="did you mean fake") as caught:
        planned(config)
    assert "found-by-probe" in caught.value.hint
    config = parse_config(
        TEXT.replace("{name: two, device: fake", "{name: two, found-by-probe: true, device: faek")
    )
    cases = [case for shard in planned(config).pools[1].shards for case in shard.cases]
    assert cases
    assert all(case.endswith("@faek") or "@faek[" in case for case in cases)


@pytest.mark.torch
def test_the_torch_that_is_here_is_asked_for_a_device():
    """A device that registers itself with PyTorch and with nothing else is planned by its name alone."""
    pytest.importorskip("torchgauge_npusim")
    config = parse_config(TEXT.replace("device: fake", "device: npusim"))
    assert planning.devices_of(config.pools)["npusim"].torch_type == "npusim"


@pytest.mark.parametrize(
    "words",
    [
        {"repository": "owner"},
        {"repository": "owner/na me"},
        {"sha": "abc"},
        {"sha": "A" * 40},
        {"torch": "2.13; rm -rf"},
        {"torch": "${{ x }}"},
    ],
    ids=str,
)
def test_what_the_git_host_says_is_checked(words):
    """A repository, a commit and a build have their forms."""
    with pytest.raises(UsageError):
        replace(NIGHT, **words)


def test_a_campaign_without_the_terms_of_a_shard_is_none(tmp_path):
    """Nothing would say what its cases are held to."""
    told = json.loads(campaign_json(planned()))
    del told["pools"][0]["shards"][0]["terms"], told["digest"]
    (tmp_path / "campaign.json").write_text(json.dumps({**told, "digest": digest(told)}))
    with pytest.raises(DataFileError, match="terms: missing field"):
        read_campaign(tmp_path / "campaign.json")


def test_a_shard_says_what_is_expected_of_its_cases(tmp_path, monkeypatch):
    """What a job says of its own cases excuses nothing, so the plan has what data files declare."""
    said = "status: error, reason: known to fail, link: 'https://example.org/1', date: 2026-01-01"
    told = f"{{model: convnet, cause: 'RuntimeError: *', {said}}}"
    (tmp_path / "mine.yaml").write_text(f"device: fake\nexpectations:\n  - {told}\n")
    monkeypatch.setenv("TORCHGAUGE_EXPECTATIONS", str(tmp_path / "mine.yaml"))
    plan = planned()
    (tmp_path / "campaign.json").write_text(campaign_json(plan))
    pool = read_campaign(tmp_path / "campaign.json").pools[0]
    cases = [case for shard in pool.shards for case in shard.cases if case.startswith("toy/convnet:")]
    expected = {case: each for shard in pool.shards for case, each in shard.expected}
    assert sorted(expected) == sorted(cases) != []
    assert {(each.status, each.cause) for each in expected.values()} == {(Status.ERROR, "RuntimeError: *")}


def test_a_shard_says_what_its_device_is_known_to_refuse(monkeypatch):
    """Who plans the night says it, and nobody believes the job; a package may be on its machine."""
    lacks = Refusal(Status.SKIPPED, "no package", Cause.MISSING_PACKAGE)
    refusals = {"toy/convnet": Refusal(Status.UNSUPPORTED, "no convolutions"), "toy/mlp": lacks}
    select = planning.select_groups

    def refusing(*arguments):
        return [
            replace(group, cases=tuple(
                replace(each, refusal=refusals.get(each.case.id.partition(":")[0])) for each in group.cases
            ))
            for group in select(*arguments)
        ]  # fmt: skip

    monkeypatch.setattr(planning, "select_groups", refusing)
    pool = planned().pools[0]
    skipped = [case for shard in pool.shards for case in shard.skipped]
    assert {case.partition(":")[0] for case in skipped} == {"toy/convnet"}


def test_a_job_of_other_tolerances_measures_nothing(tmp_path, monkeypatch):
    """A shard says what its cases are held to, and a job whose suites say otherwise ends before it begins."""
    from torchgauge.harness.planning import plan as harness_plan
    from torchgauge.harness.run.progress import Progress
    from torchgauge.records import RunSettings
    from torchgauge.workflows.result_set import Job
    from torchgauge.workflows.shard_run import shard_campaign

    plan = planned()
    pool = plan.pools[0]
    job = Job(plan, pool, pool.shards[0])
    arguments = {"store": str(tmp_path / "store"), "progress": Progress()}
    made = shard_campaign(job, RunSettings(), **arguments).plan
    assert terms_of({each.case.id: each for each in made.cases}) == pool.shards[0].terms
    before = harness_plan.tolerance_for
    monkeypatch.setattr(
        harness_plan,
        "tolerance_for",
        lambda *asked: replace(before(*asked), absolute=0.5),
    )
    with pytest.raises(UsageError, match="tolerances or models of this torchgauge differ"):
        shard_campaign(job, RunSettings(), **arguments)
