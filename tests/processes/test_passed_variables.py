"""What another process is given of our environment: what is on the list, and no secret by accident."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge.processes.passed_variables import LIST, NO_USER_SITE, VARIABLE, Purpose, passed
from torchgauge.processes.secret_names import hide_told, is_secret_name, password_in, told_secrets

SOURCE = Path(torchgauge.__file__).parent


def listed(*arguments: Any, **more: Any) -> dict[str, str]:
    """What is passed of a list, without what every process is given."""
    given = passed(*arguments, **more)
    assert given.pop(NO_USER_SITE) == "1"
    return given


HARMLESS = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CXX",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "MALLOC_ARENA_MAX",
    "TORCH_LOGS", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHDYNAMO_VERBOSE", "TORCHGAUGE_TORCHBENCH",
    "PYTORCH_CUDA_ALLOC_CONF", "TRITON_CACHE_DIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR", "SYCL_CACHE_PERSISTENT", "ASCEND_RT_VISIBLE_DEVICES", "HABANA_LOGS",
    "PT_HPU_LAZY_MODE", "ACME_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_CACHE",
    "TOKENIZERS_PARALLELISM", "https_proxy", "REQUESTS_CA_BUNDLE", "XDG_CACHE_HOME",
)  # fmt: skip
SECRET = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_API_KEY", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS_JSON", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD",
    "TORCH_HUB_TOKEN", "CUDA_API_KEY", "TORCHGAUGE_TOKEN", "PYTHON_KEYRING_PASSWORD", "npm_config_authToken",
    "SSH_PASSPHRASE", "SENTRY_DSN", "AZURE_STORAGE_CONNECTION_STRING", "NPM_AUTH", "apikey",
    "HF_TOKEN2", "TOKEN1", "PASSWORD1", "SSHPASS", "AUTHORIZATION", "COOKIES", "SIGNING_KEYFILE",
    "AZURE_STORAGE_CONNECTIONSTRING", "SESSION_ID",
)  # fmt: skip
OTHERS = (
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "AWS_PROFILE",
    "KUBECONFIG",
    "SSH_AUTH_SOCK",
    "MAIL",
    "PWD",
)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_torch_and_vendors_need_is_listed(name: str) -> None:
    """A number measured without it would be another one."""
    assert not is_secret_name(name)
    assert listed(environ={name: "/value"}) == {name: "/value"}


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("purpose", Purpose)
def test_what_looks_like_a_secret_is_passed_by_no_pattern(name: str, purpose: Purpose) -> None:
    """Whatever begins like it."""
    assert is_secret_name(name)
    assert listed(purpose, declared=["*"], environ={name: "value"}) == {}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_on_no_list_stays_behind(name: str) -> None:
    """The files by which a step tells its workflow something, for one."""
    assert listed(environ={name: "value"}) == {}


def test_each_purpose_adds_to_what_is_measured() -> None:
    """Pip has its index and git its settings; what is measured has neither."""
    environ = {"PATH": "p", "PIP_NO_INDEX": "1", "GIT_SSL_NO_VERIFY": "0", "GIT_CONFIG_COUNT": "0"}
    assert set(listed(Purpose.MEASURE, environ=environ)) == {"PATH"}
    assert set(listed(Purpose.INSTALL, environ=environ)) == {"PATH", "PIP_NO_INDEX", "GIT_SSL_NO_VERIFY"}
    assert set(listed(Purpose.GIT, environ=environ)) == {"PATH", "GIT_SSL_NO_VERIFY", "GIT_CONFIG_COUNT"}


@pytest.mark.parametrize("value", ["https://me:let-me-in@proxy:3128", "http://a-token@host/simple"])
def test_an_address_with_a_password_reaches_pip_alone(value: str) -> None:
    """It logs in with it; a model has no use for it."""
    assert password_in(value)
    assert listed(Purpose.MEASURE, environ={"HTTPS_PROXY": value}) == {}
    assert listed(Purpose.INSTALL, environ={"HTTPS_PROXY": value}) == {"HTTPS_PROXY": value}


@pytest.mark.parametrize(
    ("word", "shown", "secrets"),
    [
        ("torch @ https://me:pw@host/x.whl", "torch @ https://***@host/x.whl", ["pw", "pw"]),
        ("git+https://T0K@github.com/a/b@main", "git+https://***@github.com/a/b@main", ["T0K", "T0K"]),
        ("https://me:p%40@ss@host/", "https://***@host/", ["p%40@ss", "p@@ss"]),
        ("https://host/x.whl?a=1&X-Amz-Signature=abc", "https://host/x.whl?a=1&X-Amz-Signature=***", ["abc"]),
        ("https://host/x.whl?token=abc", "https://host/x.whl?token=***", ["abc"]),
        ("MY_TOKEN=a b\nc", "MY_TOKEN=***", ["a b\nc"]),
        ("--head-env=MY_TOKEN=1", "--head-env=MY_TOKEN=***", ["1"]),
        ("MY_TOKEN=", "MY_TOKEN=", []),
        ("OMP_NUM_THREADS=1", "OMP_NUM_THREADS=1", []),
        ("git+ssh://git@github.com/a/b@main", "git+ssh://git@github.com/a/b@main", []),
        ("torch==2.13.0", "torch==2.13.0", []),
    ],
)
def test_what_a_person_types_is_shown_without_its_secrets(word: str, shown: str, secrets: list[str]) -> None:
    """The place says that it is one, so its length does not matter."""
    assert hide_told(word) == shown
    assert list(told_secrets(word)) == secrets


def test_a_person_and_a_device_add_names() -> None:
    """A secret only by its full name, and only where the person names it."""
    environ = {"ACME_MODE": "1", "ACME_KEY": "2", "ACME_LICENCE": "3", "OTHER": "4"}
    assert listed(declared=["ACME_MODE", "ACME_KEY"], environ=environ) == {"ACME_MODE": "1"}
    assert set(listed(environ={**environ, VARIABLE: "ACME_*, OTHER"})) >= {
        "ACME_MODE",
        "ACME_LICENCE",
        "OTHER",
    }
    assert "ACME_KEY" not in listed(environ={**environ, VARIABLE: "ACME_*"})
    assert listed(environ={**environ, VARIABLE: "ACME_KEY"})["ACME_KEY"] == "2"


def test_a_person_who_sets_the_variable_keeps_the_users_site() -> None:
    """Python takes an empty value for none."""
    assert passed(environ={NO_USER_SITE: ""}) == {NO_USER_SITE: ""}


@pytest.mark.parametrize("purpose", Purpose)
def test_a_job_of_actions_has_caches_of_code_of_its_own(purpose: Purpose) -> None:
    """Unless its machine names others; outside of a job nothing is named."""
    job = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": "/job", "TRITON_CACHE_DIR": "/mine"}
    given = passed(purpose, environ=job)
    assert given["PIP_CACHE_DIR"] == "/job/cache/pip_cache_dir"
    assert given["TRITON_CACHE_DIR"] == "/mine"
    assert set(listed(environ={"RUNNER_TEMP": "/job"})) == set()


def test_the_list_is_told_in_the_documentation() -> None:
    """The guide names the file of the list and the variable that adds to it."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "gate-a-repository.md").read_text()
    assert VARIABLE in page
    assert LIST.name in page


IN_THE_MEASURED_PROCESS = {
    "devices/fingerprint.py",
    "devices/probe_child.py",
    "harness/worker/compilation.py",
    "harness/worker/host.py",
    "harness/worker/kept_state.py",
    "suites/conformance/check_context.py",
    "suites/conformance/checks/distributed.py",
}
"""What starts a process below one that was started through the door, and has no more than it was given."""
MODULES = ("subprocess", "multiprocessing", "pty")
STARTERS = {
    "Process",
    "Pool",
    "run",
    "Popen",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
}
OF_OS = {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"}


def _starts_a_process(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            return not STARTERS.isdisjoint(alias.name for alias in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if (owner == "subprocess" and name in STARTERS) or owner in ("multiprocessing", "pty"):
                return True
            if owner == "os" and (name in OF_OS or name.startswith(("exec", "spawn"))):
                return True
    return False


def _copies_the_environment(tree: ast.AST) -> bool:
    """``{**os.environ}``, ``dict(os.environ)``, ``os.environ.copy()``, ``os.environ | ...``."""
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Dict):
            parts = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            parts = [*node.args]
        elif isinstance(node, ast.Attribute) and node.attr == "copy":
            parts = [node.value]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            parts = [node.left, node.right]
        if any(ast.unparse(part) == "os.environ" for part in parts):
            return True
    return False


def _files_that(does: object) -> set[str]:
    files = [path for path in SOURCE.rglob("*.py") if "processes" not in path.relative_to(SOURCE).parts]
    assert len(files) > 100
    return {
        str(path.relative_to(SOURCE))
        for path in files
        if does(ast.parse(path.read_text(encoding="utf-8")))  # type: ignore[operator]
    }


def test_nobody_starts_a_process_around_the_door() -> None:
    """Everything goes through ``kept_process``, but for what runs inside of what was started so."""
    assert _files_that(_starts_a_process) == IN_THE_MEASURED_PROCESS


def test_nobody_hands_on_the_whole_environment() -> None:
    """Nor reads all of it to find secrets, which is done in one place."""
    measured = {
        "suites/conformance/check_context.py",
        "suites/conformance/checks/distributed.py",
        "live/own_process.py",  # puts back what a caller's callable changed
    }
    assert _files_that(_copies_the_environment) == measured
