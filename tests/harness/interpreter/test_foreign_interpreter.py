"""One torchgauge measures the torch of any interpreter: real environments that have torch and not torchgauge.

The environments are cheap: what torch needs is linked from the environment of the tests.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from waiting import left_after_patience

from torchgauge.devices.discover import Presence, known_devices
from torchgauge.errors import InfrastructureError, UnknownNameError, UsageError
from torchgauge.harness.interpreter import staging
from torchgauge.harness.interpreter.foreign_plugins import device_of, plugin_devices, suites_of
from torchgauge.harness.interpreter.interpreter import Interpreter, hint_for, interpreter, locate
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.campaigns import make_plan
from torchgauge.records import Result, RunSettings, Status
from torchgauge.results.journal import read
from torchgauge.results.journal_record import Kind
from torchgauge.results.store import Store

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "minimum"))

import worker_half  # noqa: E402

NPUSIM = ROOT / "packages" / "npusim" / "src" / "torchgauge_npusim"
FAULTS = ROOT / "tests" / "faults_plugin"
OURS = {"click", "msgspec", "numpy", "pandas", "plotly", "pyarrow", "rich", "scipy", "yaml"}
"""What torchgauge's parent needs, and no worker."""
SITECUSTOMIZE = """
import atexit, json, os, sys
def tell():
    folder = os.environ.get("TORCHGAUGE_TOLD_MODULES")
    if folder:
        files = {name: str(getattr(module, "__file__", "")) for name, module in list(sys.modules.items())}
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w") as file:
            json.dump(files, file)
atexit.register(tell)
"""
ACME = '''
"""A third party's package that is installed beside a torch build and not beside torchgauge."""
from dataclasses import dataclass

from torchgauge.devices.device import DeviceDescriptor
from torchgauge.records import digest
from torchgauge.suites.suite import BuiltWorkload, ModelEntry


@dataclass(frozen=True)
class AcmeDevice(DeviceDescriptor):
    def cannot_run(self, workload, configuration):
        return "acme multiplies no rankers" if workload.model == "ranker" else None


class AcmeSuite:
    name = "acme"
    doc = "Models of Acme."
    builder = "acme_torchgauge:build"
    preload = ()
    install_hint = "pip install acme"
    digest = digest("acme 1")
    unavailable = None
    environment = {"ACME_HOME": "there"}

    def models(self):
        entry = dict(tiers=("smoke",), batch={"inference": 3}, framework="python", recipe={"factor": 7})
        return (ModelEntry("counter", **entry), ModelEntry("ranker", **entry))


def build(workload, recipe):
    import os
    assert os.environ["ACME_HOME"] == "there"
    return BuiltWorkload(module=lambda: recipe["factor"] * 6, framework="python")


DEVICE = AcmeDevice("acme", "Acme", "torchgauge.devices.fake:FakeSession", None, fork_safe=True)
SUITE = AcmeSuite()
'''
ACME_POINTS = """
[torchgauge.suites]
acme = acme_torchgauge:SUITE
[torchgauge.devices]
acme = acme_torchgauge:DEVICE
"""
TWIN = """
from pathlib import Path
from torchgauge.suites.catalog import YamlSuite
SUITE = YamlSuite("twin", "For tests.", Path(__file__).with_name("twin.yaml"), "twin_models:build")
"""
TWIN_DATA = """
suite: twin
models: [{name: one, tiers: [smoke], batch: {inference: 1}, framework: python}]
"""
TWIN_MODELS = """
from torchgauge.suites.suite import BuiltWorkload
def build(workload, recipe):
    return BuiltWorkload(module=lambda: 1, framework="python")
"""
CPU = ("--device", "cpu", "--config", "eager")


class Environment:
    """A virtual environment without pip, into which packages are linked or written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        (self.site,) = folder.glob("lib/python*/site-packages")
        self.python = str(folder / "bin" / "python")
        self.write("sitecustomize.py", SITECUSTOMIZE)

    def write(self, name: str, text: str) -> None:
        """A file of a package."""
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def describe(self, name: str, version: str, entry_points: str = "") -> None:
        """The metadata that an installer leaves."""
        folder = f"{name.replace('-', '_')}-{version}.dist-info"
        self.write(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        self.write(f"{folder}/entry_points.txt", entry_points)

    def link(self, *paths: Path) -> None:
        """Packages or files that lie elsewhere."""
        for path in paths:
            if not (self.site / path.name).exists():
                (self.site / path.name).symlink_to(path)

    def link_installed(self, name: str) -> None:
        """An installed distribution of this process and everything that it requires."""
        distribution = metadata.distribution(name)
        tops = {
            file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")
        }
        self.link(*(Path(str(distribution.locate_file(top))) for top in sorted(tops)))
        for requirement in distribution.requires or ():
            required = re.match(r"[\w.-]+", requirement)
            if required is None or "extra ==" in requirement:
                continue
            try:
                self.link_installed(required[0])
            except metadata.PackageNotFoundError:
                continue  # required on other systems


def skip_without_torch() -> None:
    """There is nothing to link where the tests' own environment has no torch."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")


@pytest.fixture(scope="module")
def make_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Environments that the tests of this module share."""
    return lambda name: Environment(tmp_path_factory.mktemp("environments") / name)


@pytest.fixture(scope="module")
def bare(make_environment: Callable[[str], Environment]) -> Environment:
    """Python alone."""
    return make_environment("bare")


@pytest.fixture(scope="module")
def plain(make_environment: Callable[[str], Environment]) -> Environment:
    """Torch and what it requires."""
    skip_without_torch()
    found = make_environment("plain")
    found.link_installed("torch")
    return found


@pytest.fixture(scope="module")
def rich(make_environment: Callable[[str], Environment]) -> Environment:
    """Torch, numpy, the simulated accelerator, third parties' plugins and another package's version."""
    skip_without_torch()
    found = make_environment("rich")
    for name in ("torch", "numpy"):
        found.link_installed(name)
    found.link(NPUSIM, *FAULTS.iterdir())
    found.describe("torchgauge-npusim", "9.9", "[torch.backends]\nnpusim = torchgauge_npusim:autoload\n")
    found.describe("accelerate", "0.1.0")
    found.write("acme_torchgauge.py", ACME)
    found.describe("torchgauge-acme", "1.0", ACME_POINTS)
    return found


@pytest.fixture(scope="module")
def plain_interpreter(plain: Environment) -> Interpreter:
    """Asked once for all tests."""
    return interpreter(str(plain.folder))


@pytest.fixture(scope="module")
def rich_interpreter(rich: Environment) -> Interpreter:
    """Asked once for all tests."""
    return interpreter(rich.python)


def rows_of(sandbox: Any) -> dict[tuple[str, str], Result]:
    """Model and device of each row to the row."""
    return {(row.case.workload.model, row.case.device.name): row for row in sandbox.rows()}


def identities(sandbox: Any) -> dict[str, dict[str, Any]]:
    """Device to the identity of its environment."""
    records = read(sandbox.folder().journal_path)
    found = [record.payload() for record in records if record.kind is Kind.ENVIRONMENT]
    return {environment.device: dict(environment.identity) for environment in found}


@pytest.fixture(scope="module")
def plain_run(plain: Environment, make_sandbox: Callable[[], Any]) -> tuple[Any, list[dict[str, str]]]:
    """A run in the plain environment, and the modules of every process of it."""
    sandbox = make_sandbox()
    told = sandbox.store_path.parent / "modules"
    told.mkdir()
    words = ("toy", "timm", "--models", "mlp,noop,resnet18", *CPU, "--python", str(plain.folder))
    done = sandbox.measure(*words, TORCHGAUGE_TOLD_MODULES=str(told))
    assert done.returncode == 0, done.stderr
    return sandbox, [json.loads(file.read_text()) for file in told.iterdir()]


@pytest.fixture(scope="module")
def rich_run(rich: Environment, make_sandbox: Callable[[], Any]) -> Any:
    """A run in the rich environment, of a suite and on a device that only it has."""
    sandbox = make_sandbox()
    words = ("toy", "acme", "--models", "mlp,counter", "--device", "npusim", "--config", "eager")
    done = sandbox.measure(*words, "--python", rich.python)
    assert done.returncode == 0, done.stderr
    return sandbox


@pytest.mark.torch
def test_one_torchgauge_measures_both_environments(plain_run: Any, rich_run: Any, plain: Environment) -> None:
    """The toy suite passes in both, and a suite and a device that only one of them has pass there."""
    sandbox, _ = plain_run
    plain_rows, rich_rows = rows_of(sandbox), rows_of(rich_run)
    assert plain_rows["mlp", "cpu"].status is Status.PASS
    assert plain_rows["noop", "cpu"].status is Status.PASS
    assert {row.status for row in rich_rows.values()} == {Status.PASS}
    assert set(rich_rows) == {("mlp", "npusim"), ("counter", "npusim")}
    assert sandbox.folder().plan().python == plain.python
    assert f"--python {plain.python}" in plain_rows["mlp", "cpu"].reproduce


@pytest.mark.torch
def test_environment_records_are_those_of_the_target(plain_run: Any, rich_run: Any) -> None:
    """Packages, extensions and torch are what each environment holds, not what torchgauge's own does."""
    both = (identities(plain_run[0])["cpu"], identities(rich_run)["npusim"])
    rooms = ("python.", "torch.", "package.", "extension.")
    one, two = ({k: v for k, v in identity.items() if k.startswith(rooms)} for identity in both)
    assert one["package.torch"] == metadata.version("torch")
    assert one["torch.version"].partition("+")[0] == one["package.torch"].partition("+")[0]
    assert one["python.version"] == platform.python_version()
    assert not {key: value for key, value in one.items() if two.get(key) != value}
    assert {key: value for key, value in two.items() if key not in one} == {
        "package.accelerate": "0.1.0",
        "package.numpy": metadata.version("numpy"),
        "extension.npusim": "torchgauge-npusim 9.9",
    }


@pytest.mark.torch
def test_missing_library_names_the_interpreter_to_install_it_for(plain_run: Any, plain: Environment) -> None:
    """Timm is installed beside torchgauge, but that does not help the target."""
    row = rows_of(plain_run[0])["resnet18", "cpu"]
    assert (row.status.value, row.cause.value) == ("skipped", "missing_package")
    assert f"try: {plain.python} -m pip install timm" in row.reason


@pytest.mark.torch
def test_worker_imports_the_copy_of_the_package_and_nothing_else_of_ours(plain_run: Any) -> None:
    """Host and workers have none of the parent's packages, and no file of torchgauge's own environment."""
    sandbox, processes = plain_run
    copy = str(sandbox.folder().path / "work" / staging.COPY)
    static = worker_half.worker_half()
    half: set[str] = set()
    for modules in processes:
        assert not OURS & {name.partition(".")[0] for name in modules}
        half |= {name for name in modules if name.partition(".")[0] == "torchgauge"}
        for name, file in modules.items():
            ours = name.partition(".")[0] == "torchgauge"
            assert not ours or file.startswith((copy, str(sandbox.temporary))), (name, file)
            assert not file.startswith(f"{sys.prefix}{os.sep}"), (name, file)
    assert "torchgauge.harness.worker.group_run" in half
    assert half <= set(static), half - set(static)


@pytest.mark.torch
def test_private_copy_is_gone_after_the_run(plain_run: Any, rich_run: Any) -> None:
    """Neither the run's folder nor the folder for temporary files keeps it."""
    for sandbox in (plain_run[0], rich_run):
        assert not (sandbox.folder().path / "work").exists()
        assert sandbox.scratch() == []


@pytest.mark.torch
def test_device_of_one_environment_is_unknown_to_the_other(
    plain_interpreter: Interpreter, rich_interpreter: Interpreter
) -> None:
    """A device that registers itself with torch is found by a probe of the target alone."""
    assert device_of(rich_interpreter, "npusim").torch_type == "npusim"
    with pytest.raises(UnknownNameError, match="unknown device 'npusim'"):
        device_of(plain_interpreter, "npusim")


def test_plugins_of_the_target_are_plain_data_here(rich_interpreter: Interpreter) -> None:
    """Names, models, recipe and environment of a suite, and a device, come from a child of the target."""
    suite = suites_of(rich_interpreter, ["acme"])["acme"]
    assert [entry.name for entry in suite.models()] == ["counter", "ranker"]
    assert suite.models()[0].recipe == {"factor": 7}
    assert (suite.builder, suite.environment) == ("acme_torchgauge:build", {"ACME_HOME": "there"})
    assert device_of(rich_interpreter, "acme").label == "Acme"
    assert device_of(rich_interpreter, "coldcpu").session == "torchgauge.devices.cpu:CpuSession"
    with pytest.raises(UnknownNameError, match=r"did you mean acme\?"):
        suites_of(rich_interpreter, ["acmee"])


def test_device_of_the_target_refuses_cases_by_its_own_code(rich: Environment) -> None:
    """What its descriptor computes is asked there, in one process for all cases."""
    selection = Selection(("acme",), ("acme",), configurations=("eager",))
    plan, _, _ = make_plan(selection, RunSettings(), python=rich.python)
    reasons = {p.case.workload.model: p.refusal.reason if p.refusal else "" for p in plan.cases}
    assert reasons == {"counter": "", "ranker": "acme multiplies no rankers"}


def test_plugin_that_cannot_be_loaded_there_says_what_is_missing(rich_interpreter: Interpreter) -> None:
    """A suite with a data file needs torchgauge's own parsers there, unless its twin is installed here."""
    said = r"(?s)'slow' \(torchgauge-faults 1\.0\).*msgspec.*-m pip install msgspec"
    with pytest.raises(InfrastructureError, match=said):
        suites_of(rich_interpreter, ["slow"])


def with_plugin_here(sandbox: Any, plugin: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a torchgauge beside which a plugin is installed, unseen by other interpreters."""
    code = "import sys; sys.path.append(sys.argv.pop(1)); from torchgauge.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, str(plugin), *arguments],
        env={**sandbox.environment, "PYTHONPATH": ""},
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("suite", "device", "kind"), [("toy", "coldcpu", "device 'coldcpu'"), ("slow", "fake", "suite 'slow'")]
)
def test_plugin_that_is_only_here_is_refused(
    sandbox: Any, bare: Environment, suite: str, device: str, kind: str
) -> None:
    """The message names the package and the interpreter that lacks it."""
    words = ("run", suite, "--device", device, "--python", bare.python, "--store", str(sandbox.store_path))
    done = with_plugin_here(sandbox, FAULTS, *words)
    assert done.returncode == 2, done.stderr
    assert f"{kind}" in done.stderr
    assert "torchgauge-faults, which is installed beside torchgauge" in done.stderr
    assert f"try: {bare.python} -m pip install torchgauge-faults" in done.stderr
    assert not sandbox.store_path.exists()


def test_plugin_in_both_places_runs_there_with_the_data_from_here(
    sandbox: Any, make_environment: Callable[[str], Environment]
) -> None:
    """The same version here reads the data file that the target cannot."""
    there = make_environment("twin")
    there.write("twin_suite.py", TWIN)
    there.write("twin.yaml", TWIN_DATA)
    there.write("twin_models.py", TWIN_MODELS)
    there.describe("torchgauge-twin", "1.0", "[torchgauge.suites]\ntwin = twin_suite:SUITE\n")
    words = ("run", "twin", "--device", "fake", "--config", "eager", "--python", there.python)
    done = with_plugin_here(sandbox, there.site, *words, *sandbox.quick, "--store", str(sandbox.store_path))
    assert done.returncode == 0, done.stderr
    assert [(row.case.workload.suite, row.status) for row in sandbox.rows()] == [("twin", Status.PASS)]


@pytest.mark.torch
def test_devices_are_listed_as_the_target_has_them(rich_interpreter: Interpreter) -> None:
    """Built-in devices, its plugins and what its torch registered; nothing of this environment's plugins."""
    report = rich_interpreter.report
    found = {
        entry.name: entry.presence
        for entry in known_devices(
            rich_interpreter.path, report=report, plugins=plugin_devices(rich_interpreter)
        )
    }
    wanted = dict.fromkeys(("cpu", "fake", "acme", "coldcpu", "npusim"), Presence.PRESENT)
    assert found.items() >= wanted.items()


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def bad_interpreters(folder: Path, bare: Environment) -> dict[str, tuple[str, str]]:
    """Each mistake with its path and what the message must say."""
    (folder / "text").write_text("no program")
    (folder / "gone").symlink_to(folder / "python-that-was")
    old = script(folder / "old", "#!/bin/sh\necho 'torchgauge-python 3.9.18'\n")
    return {
        "missing": (str(folder / "nothing"), "there is no such file"),
        "dangling": (str(folder / "gone"), "python-that-was, which does not exist"),
        "folder": (str(folder), "not a virtual environment, it holds no bin/python"),
        "no program": (str(folder / "text"), "is not executable"),
        "no Python": (str(script(folder / "sh", "#!/bin/sh\necho hello; exit 3\n")), "exited with status 3"),
        "silent": (str(script(folder / "true", "#!/bin/sh\n")), "ended without printing the version"),
        "old": (str(old), "is Python 3.9.18; workers need 3.10 or later"),
        "no torch": (bare.python, f"has no torch\n  try: {bare.python} -m pip install torch"),
    }


def test_interpreter_that_cannot_run_workers_is_a_usage_error(tmp_path: Path, bare: Environment) -> None:
    """No plan is made; the message says what is wrong and what to type."""
    selection = Selection(("toy",), ("cpu",))
    for path, message in bad_interpreters(tmp_path, bare).values():
        with pytest.raises(UsageError, match=re.escape(message)) as raised:
            make_plan(selection, RunSettings(), python=path)
        assert raised.value.hint


def test_every_command_refuses_a_bad_interpreter(sandbox: Any, tmp_path: Path) -> None:
    """Exit 2, and no store is made."""
    store = ("--store", str(sandbox.store_path))
    case = "toy/mlp:inference:float32:b2:eager@cpu"
    for words in (
        ("run", "toy", *CPU, *store),
        ("repro", case, *store),
        ("plan", "toy", *CPU),
        ("devices",),
        ("doctor",),
    ):
        done = sandbox.run(*words, "--python", str(tmp_path / "nothing"))
        assert done.returncode == 2, (words, done.stderr)
        assert "there is no such file" in done.stderr
    assert not sandbox.store_path.exists()


def test_interpreter_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """The deadline is the command's, and no process stays behind."""
    marker = f"31415.{os.getpid()}"
    hanging = script(tmp_path / "hang", f"#!/bin/sh\nsleep {marker}\n")
    with pytest.raises(UsageError, match=r"did not end within 0\.3 s"):
        interpreter(str(hanging), timeout=0.3)
    assert left_after_patience(lambda: running(marker)) == []


def running(marker: str) -> list[str]:
    """Processes with ``marker`` on their command line."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if marker in line]


BROKEN = """
try:
    raise OSError("libtorch_cpu.so: cannot open shared object file")
except OSError as error:
    raise ImportError("torch is not whole") from error
"""


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ("2.13.0", 3, "is broken: OSError: libtorch_cpu.so: cannot open shared object file"),
        ("2.4.1", 2, "torch 2.4.1 of {python} is older than 2.5"),
    ],
)
def test_torch_that_does_not_work_is_said_before_the_plan(
    sandbox: Any, tmp_path: Path, version: str, code: int, message: str
) -> None:
    """A broken one is the machine's trouble with its root cause, an old one a choice that can be fixed."""
    found = Environment(tmp_path / "environment")
    found.write("torch/__init__.py", BROKEN)
    found.describe("torch", version)
    done = sandbox.run("run", "toy", *CPU, "--python", found.python, "--store", str(sandbox.store_path))
    assert done.returncode == code, done.stderr
    assert message.format(python=found.python) in done.stderr
    assert not sandbox.store_path.exists()


def test_device_without_torch_needs_none_there(sandbox: Any, bare: Environment) -> None:
    """The fake device runs in an interpreter that has nothing installed at all."""
    words = ("toy", "--models", "noop", "--device", "fake", "--config", "eager", "--python", str(bare.folder))
    done = sandbox.measure(*words)
    assert done.returncode == 0, done.stderr
    assert [row.status for row in sandbox.rows()] == [Status.PASS]
    identity = identities(sandbox)["fake"]
    assert not [key for key in identity if key.startswith("package.")]


def test_resuming_goes_on_in_the_interpreter_of_the_plan(sandbox: Any, bare: Environment) -> None:
    """The plan says which one; another one is refused."""
    selection = Selection(("toy",), ("fake",), models=("noop",), configurations=("eager",))
    settings = RunSettings(measure_budget_s=0.1, calibrate=False, memory_probe=False)
    plan, _, _ = make_plan(selection, settings, python=bare.python)
    folder = Store.open(str(sandbox.store_path), create=True).begin(plan)
    other = sandbox.run("run", "--resume", str(folder.path), "--python", sys.executable)
    assert other.returncode == 2, other.stderr
    assert f"was planned for {bare.python}" in other.stderr
    aside = Path(bare.python).rename(f"{bare.python}.aside")
    gone = sandbox.run("run", "--resume", str(folder.path))
    aside.rename(bare.python)
    assert gone.returncode == 2, gone.stderr
    assert "cannot continue with its interpreter" in gone.stderr
    done = sandbox.run("run", "--resume", str(folder.path))
    assert done.returncode == 0, done.stderr
    assert not [key for key in identities(sandbox)["fake"] if key.startswith("package.")]


def test_workers_run_on_the_oldest_python(sandbox: Any) -> None:
    """Two models without torch pass in a real Python 3.10, and their rows come from there."""
    python = worker_half.oldest_python()
    if python is None:
        pytest.skip("there is no Python 3.10 on this machine")
    words = ("toy", "--models", "noop,sum", "--device", "fake", "--config", "eager", "--python", python)
    done = sandbox.measure(*words, TORCHGAUGE_FAKE_PEAK_BYTES="absent")
    assert done.returncode == 0, done.stderr
    assert [row.status for row in sandbox.rows()] == [Status.PASS] * 2
    assert identities(sandbox)["fake"]["python.version"].startswith("3.10.")


def test_a_link_out_of_a_virtual_environment_is_not_followed(bare: Environment) -> None:
    """The interpreter of an environment is a link to the one it was made from, and is another interpreter."""
    assert locate(str(bare.folder)) == bare.python
    assert Path(bare.python).resolve() == Path(sys.executable).resolve()
    assert not staging.is_own(bare.python)
    assert staging.is_own(sys.executable)
    assert interpreter(sys.executable).own


def test_own_folders_do_not_reach_another_interpreter(
    bare: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a user put on the path stays; the folder of torchgauge and what is installed beside it do not."""
    own = str(staging.PACKAGE.parent)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([own, str(tmp_path), str(Path(pytest.__file__).parents[1])])
    )
    found = staging.environment_for(bare.python, tmp_path / "tree")
    assert found["PYTHONPATH"] == os.pathsep.join([str(tmp_path / "tree"), str(tmp_path)])
    assert staging.environment_for(sys.executable)["PYTHONPATH"].startswith(own)


def test_install_hint_names_the_pip_of_the_target(bare: Environment) -> None:
    """Each pip of a hint is replaced; our own interpreter's hint stays as it is."""
    assert hint_for(bare.python, "pip install timm") == f"{bare.python} -m pip install timm"
    assert hint_for(bare.python, "try: pip uninstall -y x") == f"try: {bare.python} -m pip uninstall -y x"
    named = f"get it: {bare.python} -m pip install timm"
    assert hint_for(bare.python, named) == named
    assert hint_for(sys.executable, "pip install timm") == "pip install timm"


def test_own_interpreter_without_torch_is_said_as_well(sandbox: Any) -> None:
    """Without any child process: by what is installed."""
    code = "import sys; sys.modules['torch'] = None; from torchgauge.cli.main import main; main()"
    words = ("run", "toy", *CPU, "--store", str(sandbox.store_path))
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=sandbox.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"{sys.executable} has no torch\n  try: {sys.executable} -m pip install torch" in done.stderr
    assert not sandbox.store_path.exists()
