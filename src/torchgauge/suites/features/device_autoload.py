"""Checks of ``device.autoload``: what ``import torch`` loads by itself, in which time and at which risk.

While it is imported, torch loads what packages name in the entry-point group ``torch.backends``, unless a
variable says no. One that raises makes ``import torch`` itself raise, so that every import is one of a fresh
process: this one lives on and says whose extension it was, in whose words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.records import Measurement, Scalar, Status, Workload
from torchgauge.suites.check import CheckOutcome, CheckSession
from torchgauge.suites.conformance.check_context import CheckContext

VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"
GROUP = "torch.backends"
METRIC = "import_time"
ROUNDS, ENOUGH_S = 5, 30.0
"""Imports of each way, and seconds after which no further round begins: a check has 90."""
PLANTED, ITS_WORDS = "torchgauge_raising", "this extension raises on purpose"
_CHILD = """
import json, sys, time
began, raised, visible = time.perf_counter(), [], False
try:
    import torch
except BaseException as error:
    while error is not None:
        raised.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
seconds = time.perf_counter() - began
if not raised:
    assert (torch.ones(2) + 1).sum().item() == 4
    try:
        visible = torch.empty(1, device=sys.argv[1]) is not None
    except Exception:
        pass
print()
print(json.dumps({"seconds": seconds, "raised": raised, "visible": visible}))
"""


@dataclass(frozen=True)
class Import:
    """One import: seconds until it ended, what it ``raised`` (outermost first), if it has the device."""

    seconds: float
    raised: tuple[str, ...]
    visible: bool


@dataclass
class Way:
    """All imports with the ``switch`` on (``1``) or off, and the first ``problem``, which ends them."""

    switch: str
    imports: list[Import] = field(default_factory=list)
    problem: str = ""

    def take(self, context: CheckContext) -> None:
        """Import once more."""
        try:
            found = import_torch(context, self.switch)
        except AssertionError as error:  # it crashed or hung
            self.problem = f"import torch: {error}; {self.loaded}"
            return
        if found.raised:
            self.problem = f"import torch raised {in_words(found.raised)}; {self.loaded}"
        else:
            self.imports.append(found)

    @property
    def loaded(self) -> str:
        """Which extensions are loaded, in words."""
        named = f"extensions: {', '.join(extensions()) or 'none'}"
        return named if self.switch == "1" else f"{VARIABLE}=0"

    @property
    def visible(self) -> bool:
        """Whether torch had the device each time."""
        return all(each.visible for each in self.imports)

    def outcome(self, wrong: str = "") -> CheckOutcome:
        """How it ended; ``wrong`` is what is not as it should be although nothing was raised."""
        reason = self.problem or wrong
        facts: dict[str, Scalar] = {}
        if self.switch == "1":
            facts["extensions"] = ", ".join(extensions()) or "none"
        if not self.problem:
            facts["device_visible"] = "yes" if self.visible else "no"
        return CheckOutcome(
            Status.ERROR if reason else Status.PASS,
            reason,
            facts=tuple(facts.items()),
            measurements=() if self.problem else (_measurement(self.imports),),
        )


_TAKEN: dict[str, tuple[Way, Way]] = {}
"""By device type: both ways are measured side by side, and two checks tell of them."""


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """The check that ``workload`` names behind the hyphen."""
    return CHECKS[workload.model.partition("-")[2]](CheckContext(session))


def import_torch(context: CheckContext, switch: str, folder: str = "") -> Import:
    """An import in a fresh process, with packages in ``folder`` installed.

    Raises ``AssertionError`` where that does not end, or ends otherwise than by an exception.
    """
    variables = {VARIABLE: switch}
    if folder:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    last = context.child(_CHILD, **variables).rpartition("\n")[2]
    context.expect(last, "a fresh process ended early, with status 0 and without output")
    said = json.loads(last)
    return Import(said["seconds"], tuple(said["raised"]), said["visible"])


def in_words(raised: tuple[str, ...]) -> str:
    """The outermost exception and, where that is another one, the innermost."""
    root = f"; its root cause is {raised[-1]}" if len(raised) > 1 else ""
    return " ".join(f"{raised[0]}{root}".split())


def extensions() -> list[str]:
    """Name, package and version of what ``import torch`` loads by itself."""
    found = set()
    for point in metadata.entry_points(group=GROUP):
        package = f" ({point.dist.name} {point.dist.version})" if point.dist is not None else ""
        found.add(f"{point.name}{package}")
    return sorted(found)


def plant(folder: Path) -> None:
    """Install a package in ``folder`` whose extension raises."""
    (folder / f"{PLANTED}.py").write_text(
        f"def autoload():\n    raise RuntimeError({ITS_WORDS!r})\n", encoding="utf-8"
    )
    information = folder / f"{PLANTED}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {PLANTED}\nVersion: 1.0\n", encoding="utf-8"
    )
    (information / "entry_points.txt").write_text(
        f"[{GROUP}]\n{PLANTED} = {PLANTED}:autoload\n", encoding="utf-8"
    )


def _on(context: CheckContext) -> CheckOutcome:
    way, _ = _side_by_side(context)
    found = ", ".join(extensions())
    named = f"declared: {found}" if found else f"no package declares an extension under {GROUP}"
    return way.outcome("" if way.visible else f"import torch alone does not load {context.type}: {named}")


def _off(context: CheckContext) -> CheckOutcome:
    _, way = _side_by_side(context)
    there = way.visible and not context.in_tree
    return way.outcome(f"{context.type} works with autoload off: something else loads it" if there else "")


def _raising(context: CheckContext) -> CheckOutcome:
    """Torch must say whose extension raised and what, and work where it loads none."""
    with TemporaryDirectory(prefix="torchgauge-autoload-") as folder:
        plant(Path(folder))
        tried = [import_torch(context, "1", folder) for _ in range(min(3, ROUNDS))]
        without = import_torch(context, "0", folder)
    raised = tried[0].raised
    context.facts["raised"] = in_words(raised) if raised else "nothing"
    reason = ""
    if not raised:
        reason = f"import torch hides the exception of an extension ({PLANTED}: {ITS_WORDS})"
    elif PLANTED not in raised[0] or ITS_WORDS not in raised[-1]:
        reason = f"import torch does not name the extension {PLANTED} and its error: {in_words(raised)}"
    elif without.raised:
        reason = f"import torch raised with {VARIABLE}=0 too: {in_words(without.raised)}"
    context.facts["device_visible"] = "yes" if tried[0].visible else "no"
    context.facts["visible_without"] = "yes" if without.visible else "no"
    return CheckOutcome(
        Status.ERROR if reason else Status.PASS,
        reason,
        facts=tuple(context.facts.items()),
        measurements=(_measurement(tried),),
    )


CHECKS: dict[str, Callable[[CheckContext], CheckOutcome]] = {"on": _on, "off": _off, "raising": _raising}


def _side_by_side(context: CheckContext) -> tuple[Way, Way]:
    """Imports with and without extensions in turn, so that what the machine does meanwhile hits both."""
    if context.type not in _TAKEN:
        ways = (Way("1"), Way("0"))
        until = SYSTEM_CLOCK.steady() + ENOUGH_S
        for number in range(ROUNDS):
            for way in reversed(ways) if number % 2 else ways:
                if not way.problem:
                    way.take(context)
            if SYSTEM_CLOCK.steady() > until:
                break
        _TAKEN[context.type] = ways
    return _TAKEN[context.type]


def _measurement(imports: list[Import]) -> Measurement:
    return Measurement(METRIC, "s", tuple(each.seconds for each in imports))
