"""The sets over which pages count: lost nights, silent devices, old renames, and one rule of change."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, NPU, RunBuilder, environment, result, timings
from subject_store import night

from torchgauge.dashboard import build_site
from torchgauge.dashboard.names import device_id
from torchgauge.records import Case, Configuration, DeviceTarget, Modifier, Status, Workload

PASS, ERROR, INFRA, NOT_RUN = Status.PASS, Status.ERROR, Status.INFRA, Status.NOT_RUN
XPU = DeviceTarget("xpu")
MODELS = [f"m{number}" for number in range(12)]
CHANGES = {
    "m1": (PASS, PASS, ERROR), "m2": (PASS, PASS, ERROR), "m3": (PASS, ERROR, PASS),
    "m4": (PASS, INFRA, PASS), "m5": (PASS, PASS, INFRA), "m6": (PASS, INFRA, ERROR),
    "m7": (ERROR, INFRA, PASS), "m8": (ERROR, ERROR, INFRA),
}  # fmt: skip
"""How eager cases of npusim end in three nights; of the others all pass."""


def _run(store: Path, number: int, device: DeviceTarget, endings: dict[str, Status], suite: str) -> None:
    run, rng = (
        RunBuilder(f"{device}-{number}", NOW - (30 - number) * DAY - 60 - 30 * (device == NPU)),
        random.Random(number),
    )
    run.environments.append(environment(device.name))
    for index, name in enumerate(MODELS):
        for configuration in (EAGER, INDUCTOR):
            status = endings.get(name, endings.get("all", PASS)) if configuration is EAGER else PASS
            status = endings.get("all", status)
            base = 0.002 * (1 + index) * (0.5 if device == NPU else 1)
            speedup = 1.5 if configuration is INDUCTOR else None
            marks = (Modifier.DEGRADED,) if speedup and index == 9 else ()
            measured = timings(rng, base, speedup, device.name) if status is PASS else ()
            case = Case(Workload("toy" if index == 11 else suite, name), configuration, device)
            result(run, case, status, measurements=measured, modifiers=marks, reason="the runner went away")
    run.write(store)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of cpu, the last of which is lost, three of npusim, and xpu, silent for ten days."""
    folder = tmp_path_factory.mktemp("sets")
    for number in (19, 20):
        _run(folder / "store", number, XPU, {}, "timm")
    for place, number in enumerate((28, 29, 30)):
        _run(folder / "store", number, CPU, {"all": NOT_RUN} if number == 30 else {}, "timm")
        _run(folder / "store", number, NPU, {name: ends[place] for name, ends in CHANGES.items()}, "timm")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def test_a_lost_night_of_the_reference_device_empties_no_mean(site: Path) -> None:
    """Its last known results stand in, with their date and the age up to which they do."""
    for name, base in (
        ("performance-device.html", "cpu of 2025-12-31"),
        ("performance-latency.html", "cpu of 2025-12-31 · eager"),
    ):
        text = words(site / name)
        means = text.partition(f"geometric mean speed-up over {base} baseline")[2]
        assert re.search(r"\d\.\d+x±[\d.]+%, n \d+", means[:90]), name
        assert "for up to eight days" in text


def test_a_device_that_is_silent_for_longer_supplies_no_headline(site: Path) -> None:
    """It is named with the date, on the front page and on the matrix; its own line stays."""
    front = words(site / "index.html")
    assert "41/48 pass" in front
    assert "xpu is left out: silent since 2025-12-22." in front
    assert re.search(r"xpu( late)? 23/24 .* 24 stale not measured \N{EN DASH}", front)
    assert re.search(r"Geomean inductor speed-up over eager, paired: cpu .* cpu of 2025-12-31", front)
    matrix = words(site / "compatibility.html")
    assert "41/48 planned cases pass" in matrix
    assert "xpu is left out of these counts: silent since 2025-12-22." in matrix


def test_the_address_of_a_picture_lives_as_long_as_its_device(site: Path, tmp_path: Path) -> None:
    """A lost night draws the ratio of the day before; a silent device leaves a file that says why."""
    text = words(site / f"pictures/devices-{device_id('npusim')}-{device_id('cpu')}.html")
    assert "npusim against cpu of 2025-12-31, eager" in text
    silent = site / "pictures" / f"devices-{device_id('xpu')}-{device_id('cpu')}.svg"
    assert "There is no ratio to draw: 11 stale, 1 toy" in words(silent.read_text())
    assert f"devices-{device_id('xpu')}" not in (site / "index.html").read_text()
    assert "No regression or improvement" in words(
        (site / "pictures" / "changes.svg").read_text()
    ) or "Not computed" in words((site / "pictures" / "changes.svg").read_text())


def test_a_lost_night_is_no_fall_and_is_hatched_in_the_picture_of_all_devices(site: Path) -> None:
    """Its share is of the devices that said something, and its column keeps its height."""
    text = words(site / "pictures" / "coverage.html")
    now, then = "18 of 24 planned cases (without cpu, xpu)", "23 of 24 planned cases did on 2025-12-21"
    assert (
        f"all devices: {now} pass on 2026-01-01, {then}" in (site / "pictures" / "coverage.svg").read_text()
    )
    assert re.search(r"2026-01-01-\S+ 72 18 .* 48 no result of cpu, xpu", text)
    for name in ("coverage", f"coverage-{device_id('cpu')}"):
        drawing = (site / "pictures" / f"{name}.svg").read_text()
        assert "lost, or no run" in drawing
        assert re.search(r'<path fill="url\(#hatching\)" d="M', drawing)


def test_a_lost_night_adds_no_pass_to_the_night_before(tmp_path: Path) -> None:
    """A case that the night before lost as well counts as no pass after it either."""
    nights = ({"m3": PASS}, {"m3": INFRA}, {"all": NOT_RUN})
    for number, (endings, planned) in enumerate(zip(nights, ("23/24", "22/24", "22/24"), strict=True), 28):
        _run(tmp_path / "store", number, CPU, endings, "timm")
        _run(tmp_path / "store", number, NPU, {}, "timm")
        build_site(tmp_path / "store", tmp_path / f"site-{number}", now=NOW - (30 - number) * DAY)
        assert re.search(rf"cpu( late)? {planned} ", words(tmp_path / f"site-{number}" / "index.html"))
    front = words(tmp_path / "site-30" / "index.html")
    assert "\N{PLUS-MINUS SIGN}0 since" in front
    assert "1 not measured" in front


def test_one_rule_makes_the_difference_and_each_number_is_a_list(site: Path) -> None:
    """Broke, fixed, measured again and not measured add up, and lead to as many cases."""
    html, page = (site / "index.html").read_text(), (site / "regressions.html").read_text()
    front = words(html)
    assert "41/48 pass ±0 since 2025-12-31." in front
    wanted = {"broke": "m1 m2 m6", "fixed": "m3 m7", "measured again": "m4 m6", "no longer measured": "m5"}
    numbers = {kind: len(names.split()) for kind, names in wanted.items()}
    assert (
        numbers["fixed"] - numbers["broke"] + numbers["measured again"] - numbers["no longer measured"] == 0
    )
    for kind, names in wanted.items():
        found = re.findall(rf'href="regressions.html#([^"]*)">(\d+) {kind}</a>', html)
        assert {int(number) for _, number in found} == {len(names.split())}
        assert len(found) >= 2  # of all devices, and of the one
        for anchor, number in found:
            section = page.partition(f'id="{anchor}"')[2]
            assert f"({number})" in section.partition("</h")[0]
            listed = re.findall(r"<li>.*?>timm/(m\d+) ", section.partition("<h3")[0])
            assert listed == names.split(), kind
    assert not re.search(r"\b0 broke", front)
    assert re.search(r"cpu( late)? 23/24 .*?24 stale not measured", front)


def test_new_failures_are_dated_and_as_many_as_their_links_say(tmp_path: Path) -> None:
    """What broke on an earlier night stands under that night."""
    store = tmp_path / "store"
    night(store, 27, dict.fromkeys("abcd", PASS))
    night(store, 28, {"a": ERROR, "b": PASS, "c": PASS, "d": PASS})
    night(store, 29, {"a": INFRA, "b": ERROR, "c": ERROR, "d": PASS})
    build_site(store, tmp_path / "site", now=NOW)
    html = (tmp_path / "site" / "index.html").read_text()
    page = (tmp_path / "site" / "regressions.html").read_text()
    ((anchor, number),) = re.findall(r'href="regressions.html#(new-[^"]*)">(\d+) in all</a>', html)
    section = page.partition(f'<h3 id="{anchor}">')[2].partition("<h3")[0]
    assert number == "2"
    assert section.startswith("2025-12-31 (2)")
    assert "cpu: models (2)" in section
    assert "2025-12-30 (1)" in words(page)
    assert "1 not measured" in words(html)
    lost = words(html).partition("Not measured Cases that count as not passed")[2]
    assert "1 infra" in lost.partition("cpu")[0]


def test_a_mean_says_how_many_cases_it_leaves_out(site: Path) -> None:
    """Of degraded cases and of toys, with a link to the rule."""
    html = (site / "index.html").read_text()
    assert re.search(r'n = 10, <a href="about.html#means">1 degraded, 1 toy left out</a>', html)
    told = r"since the previous run \(\d+ cases of \d+ workloads; 1 degraded, 2 toy left out\)"
    assert re.search(told, words(html))
    assert 'id="means"' in (site / "about.html").read_text()


def test_no_page_has_a_signed_zero_or_nought_of_nought(tmp_path: Path) -> None:
    """Numbers that did not change, and a device of which nothing was attempted."""
    for number in (28, 29, 30):
        run = RunBuilder(f"night-{number}", NOW - (30 - number) * DAY - 60)
        for device, status in ((CPU, PASS), (NPU, Status.UNSUPPORTED)):
            case = Case(Workload("timm", "a"), Configuration("eager", "eager"), device)
            measured = timings(random.Random(1), 0.01, None, "cpu") if status is PASS else ()
            result(run, case, status, measurements=measured, reason="by hand")
        run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    for page in (tmp_path / "site").rglob("*.html"):
        assert not re.search(
            r"[+\N{MINUS SIGN}-]0\.0+%|\b0/0\b|\b0\.0\N{MULTIPLICATION SIGN} its noise", words(page)
        ), page
    assert "0.0%" in words(tmp_path / "site" / "performance-previous.html")


def test_a_model_that_was_renamed_before_the_recent_snapshots_counts_no_more(tmp_path: Path) -> None:
    """Two epochs later it is none of the planned cases of any page, as on the night of the rename."""
    store = tmp_path / "store"
    for number in range(131):
        names = ("a", "b", "old" if number < 2 else "new")
        run = RunBuilder(f"night-{number:03}", NOW - (130 - number) * DAY - 60)
        for name in names:
            result(run, Case(Workload("timm", name), EAGER, CPU))
        run.write(store)
    report = build_site(store, tmp_path / "site", now=NOW)
    assert (report.passed, report.planned) == (3, 3)
    front, device = (
        words(tmp_path / "site" / name) for name in ("index.html", f"devices/{device_id('cpu')}.html")
    )
    assert "3/3 pass" in front
    assert "1 case is no longer planned and left out: timm/old since 2025-08-26." in front
    assert "3/3 planned cases of models pass" in device
    assert '"pass 3/3' in (tmp_path / "site" / "badge" / f"{device_id('cpu')}.json").read_text()
    assert '"old"' not in (tmp_path / "site" / "data" / "latest.json").read_text()


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights of two models and a toy; npusim compiles unsteadily, xpu is silent.

    The last night has a second build, of cpu alone, and a model that is new.
    """
    folder = tmp_path_factory.mktemp("edges")
    for number, device, build in (
        (19, XPU, "1"), (29, CPU, "1"), (29, NPU, "1"), (30, NPU, "2"), (30, CPU, "2"), (30, CPU, "3"),
    ):  # fmt: skip
        run = RunBuilder(f"{device}-{number}-{build}", NOW - (30 - number) * DAY - 600 / int(build))
        known = environment(device.name)
        torch = ("torch", f"2.14.0.dev{build}"), ("torch_commit", build * 12)
        run.environments.append(replace(known, identity=(*known.identity[:-3], *torch)))
        for name in "abct":
            if name == "c" and number < 30:
                continue
            for configuration in (EAGER, INDUCTOR):
                compiled = configuration is INDUCTOR
                base = 0.01 * ({"a": 9, "b": 0.1}.get(name, 1) if device == NPU else 1)
                measured = timings(
                    random.Random(number), base, 2.0 + (name == "b") if compiled else None, device.name
                )
                case = Case(Workload("toy" if name == "t" else "timm", name), configuration, device)
                broken = name == "c" and (device, compiled) != (CPU, False)
                status = ERROR if broken or (name == "t" and not compiled) else PASS
                marks = (Modifier.UNSTEADY,) if compiled and device == NPU and status is PASS else ()
                measured = measured if status is PASS else ()
                result(
                    run,
                    case,
                    status,
                    measurements=measured,
                    modifiers=marks,
                    reason="by hand",
                    environment_id=run.environments[0].id,
                )
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def test_a_mean_of_two_workloads_has_no_interval(edges: Path) -> None:
    """Student's t of two would be [0.0, 9,879]."""
    compared = words(edges / "compare.html")
    assert re.search(r"Geometric mean speed-up of B over A: [\d.]+x \(n 2, \d+ excluded\)", compared)
    assert not re.search(r"\[0\.00|,\d{3}\]", compared)
    assert "no interval, n 2" in words(edges / "performance-speedup.html")
    assert "A mean of fewer than three workloads has no interval." in words(edges / "about.html")


def test_the_speed_up_of_the_front_page_stands_behind_its_link(edges: Path, site: Path) -> None:
    """With the same name, digits and n; what is measured in pairs is not called as the ratio of two cells."""
    for folder in (edges, site):
        html = (folder / "index.html").read_text()
        found = re.search(r'<p class="value"><a href="(performance[^"]*)">([\d.]+(?: to [\d.]+)?)x', html)
        assert found
        file, shown = found.groups()
        page = words(folder / file)
        assert "geometric mean speed-up over eager, paired" in page
        assert "Geomean inductor speed-up over eager, paired: cpu" in words(folder / "index.html")
        for number in shown.split(" to "):
            assert f"{number}x" in page.partition("geometric mean")[2]
    page = words(edges / "performance-speedup.html")
    assert re.search(r"cpu · inductor: 2\.4\dx no interval, n 2; excluded: 1 err, 1 toy", page)


def test_a_mean_over_nothing_says_what_it_leaves_out(edges: Path) -> None:
    """All compiled numbers of npusim are unsteady."""
    html = (edges / "index.html").read_text()
    assert re.search(r'\N{EN DASH} <small> <a href="about.html#means">1 toy, 2 unsteady left out</a>', html)
    assert "npusim 1 toy, 2 unsteady left out" in words(html)


def test_what_a_mean_counts_and_leaves_out_has_one_unit(edges: Path) -> None:
    """Cases, of which a workload has one per configuration."""
    front = words(edges / "index.html")
    assert re.search(r"since the previous run \(7 cases of 3 workloads; 2 toy, 2 unsteady left out\)", front)


def test_a_second_build_of_a_night_hatches_no_other_device(edges: Path) -> None:
    """What npusim measured with the first build of the day stands in the column of the second as well."""
    says = words(edges / "pictures" / "coverage.svg")
    assert "all devices: 11 of 16 planned cases (without xpu) pass on 2026-01-01" in says
    rows = words(edges / "pictures" / "coverage.html")
    assert len(re.findall(r"2026-01-01-\S+ 22 ", rows)) == 2
    assert "lost, or no run" not in words(edges / "pictures" / f"coverage-{device_id('npusim')}.svg")


def test_a_blank_of_a_silent_device_is_counted_as_such(edges: Path) -> None:
    """Nobody plans the new model there."""
    text = words(edges / "compatibility.html")
    assert "not planned on a silent device (2)" in text
    assert "not planned (" not in text


def test_the_difference_is_that_to_the_headline_of_the_night_before(tmp_path: Path) -> None:
    """Also where cases are new, one is renamed, and a device comes back that was silent."""
    store = tmp_path / "store"
    night(store, 18, dict.fromkeys("ab", PASS), NPU)
    for number, names in ((28, ("a", "b", "old")), (29, ("a", "b", "old")), (30, ("a", "b", "new", "more"))):
        night(store, number, {name: ERROR if (name, number) == ("b", 30) else PASS for name in names})
        if number == 30:
            night(store, 29.99, dict.fromkeys("ab", PASS), NPU)
        site = tmp_path / f"site-{number}"
        build_site(store, site, now=NOW - (30 - number) * DAY)
    html, page = (site / "index.html").read_text(), (site / "regressions.html").read_text()
    fast = re.search(r"(\d+)/\d+ pass (\S\d+) since 2025-12-31", words(html))
    before = re.search(r"(\d+)/\d+ pass", words(tmp_path / "site-29" / "index.html"))
    assert fast
    assert before
    assert (fast[1], before[1], fast[2]) == ("5", "3", "+2")
    kinds = ("1 broke", "0 fixed", "2 measured again", "2 new and passing", "1 no longer planned")
    for kind in kinds:
        assert re.search(rf">{kind}</a>", html), kind
        number, _, name = kind.partition(" ")
        assert f"{name} ({number})" in page


def test_broke_and_new_failures_are_two_rules_and_say_so(tmp_path: Path) -> None:
    """A skip breaks a pass and is no failure; a check and a degraded case fail and break no pass."""
    for number, ends in ((29, (PASS, PASS, PASS, PASS)), (30, (ERROR, Status.SKIPPED, ERROR, ERROR))):
        run = RunBuilder(f"night-{number}", NOW - (30 - number) * DAY - 60)
        for name, status in zip(("a", "b", "check", "degraded"), ends, strict=True):
            workload = Workload("conformance", name, "check") if name == "check" else Workload("timm", name)
            marks = (Modifier.DEGRADED,) if name == "degraded" and status is PASS else ()
            result(run, Case(workload, EAGER, CPU), status, modifiers=marks, reason="by hand")
        run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    front, page = (words(tmp_path / "site" / name) for name in ("index.html", "regressions.html"))
    assert "2 broke, 0 fixed" in front
    assert re.search("3 in all.*another rule than broke", front)
    assert "2026-01-01 (3)" in page
    assert "Unlike broke, new failures include cases that are not models" in page
