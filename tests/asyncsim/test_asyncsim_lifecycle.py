"""What the asynchronous device does to a process: when it is loaded, forked, named, and when it ends."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch

FAULT = "TORCHGAUGE_ASYNCSIM_FAULT"


def test_it_is_loaded_only_where_it_is_asked_for(python):
    """Without the choice there is no asyncsim; with it no other simulated device."""
    code = "import torch; print(torch._C._get_privateuse1_backend_name())"
    assert python(code).stdout.strip() == "asyncsim"
    assert python(code, TORCHGAUGE_SIMULATED_DEVICE="").stdout.strip() != "asyncsim"
    assert python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.strip() == "privateuseone"


def test_a_process_that_has_not_touched_the_device_can_fork(python):
    """Its child uses the device; the child of one that has is told why it cannot."""
    child = python(
        """
import os, torch
def in_a_child():
    pid = os.fork()
    if not pid:
        try:
            os._exit(int(torch.ones(3, device='asyncsim').sum().item()))
        except RuntimeError as error:
            os._exit(40 + ('forked subprocess' in str(error)))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(in_a_child())
torch.ones(1, device='asyncsim')
torch.asyncsim.synchronize()
torch.ones(1, device='asyncsim').add_(1)
print(in_a_child())
torch.asyncsim.set_fault('fork-unnoticed')
print(in_a_child())
"""
    )
    assert child.stdout.split() == ["3", "41", "3"], child.stderr


@pytest.mark.parametrize(
    ("variables", "status", "words"),
    [
        ({FAULT: "import-raises"}, 1, "libasyncsim_driver.so: cannot open shared object file"),
        ({FAULT: "import-exits"}, 3, ""),
        ({FAULT: "exit-crashes"}, -6, ""),
        (
            {FAULT: "no-such-fault"},
            1,
            "ValueError: TORCHGAUGE_ASYNCSIM_FAULT: 'no-such-fault' is not a fault",
        ),
        ({FAULT: "lost-after=2"}, 1, "device lost, it no longer answers"),
        (
            {FAULT: "missing-ops=aten::relu"},
            1,
            "Could not run 'aten::relu' with arguments from the 'asyncsim' backend",
        ),
        ({"TORCHGAUGE_ASYNCSIM_MEMORY": "1000"}, 1, "asyncsim out of memory"),
    ],
)
def test_faults_that_end_a_process(python, variables, status, words):
    """Each with its own exit status and words."""
    child = python("import torch; torch.ones(1000, device='asyncsim').relu().cpu()", **variables)
    assert child.returncode == status, child.stderr
    assert words in child.stderr


@pytest.mark.parametrize("fault", ["import-hangs", "exit-hangs"])
def test_faults_that_hang(python, fault):
    """A watchdog ends the child, which did not end by itself."""
    child = python(
        """
import os, sys, threading, time
def watch():
    while not begun():
        time.sleep(0.05)
    time.sleep(3)
    os._exit(42)
ended = []
def begun():
    if os.environ["TORCHGAUGE_ASYNCSIM_FAULT"] == "import-hangs":
        return "torchgauge_asyncsim.settings" in sys.modules
    return bool(ended)
threading.Thread(target=watch, daemon=True).start()
import torch
print("imported", flush=True)
ended.append(True)
""",
        **{FAULT: fault},
    )
    assert child.returncode == 42, child.stderr
    assert ("imported" in child.stdout) is (fault == "exit-hangs")


def test_faults_of_the_python_half(python):
    """Another name than the entry point's, a wrong dtype, no counters, operators on the host."""
    child = python(
        """
import torch
x = torch.ones(2, 2, device='other')
with torch.autocast('other', dtype=torch.bfloat16):
    print((x @ x).dtype)
print(hasattr(torch.other, 'max_memory_allocated'), torch.accelerator.current_accelerator())
with torch.autograd.profiler.profile() as found:
    torch.relu(x)
print('aten::_to_cpu' in {event.name for event in found.function_events})
""",
        TORCHGAUGE_ASYNCSIM_NAME="other",
        **{FAULT: "wrong-autocast-dtype,no-memory-stats,fallback-ops=aten::relu"},
    )
    assert child.stdout.split("\n")[:3] == ["torch.float16", "False other", "True"], child.stderr


@pytest.mark.parametrize(
    ("fault", "question"),
    [
        ("memory-info-hangs", "torch.accelerator.get_memory_info()"),
        ("properties-hang", "torch.asyncsim.get_device_properties()"),
    ],
)
def test_one_question_that_hangs(python, fault, question):
    """The device computes; the one answer never comes."""
    code = f"""
import os, threading, torch
print(torch.ones(2, device='asyncsim').sum().item(), flush=True)
watchdog = threading.Timer(3, os._exit, [42])
watchdog.daemon = True
watchdog.start()
{question}
"""
    child = python(code, **{FAULT: fault})
    assert (child.returncode, child.stdout.strip()) == (42, "2.0"), child.stderr


def test_plans_come_from_the_environment(python):
    """By operator, for all others, and for launching."""
    child = python(
        """
import time, torch
x = torch.ones(2, 2, device='asyncsim')
x @ x
torch.asyncsim.synchronize()
start, end = (torch.Event('asyncsim', enable_timing=True) for _ in range(2))
start.record()
x @ x
x + x
end.record()
torch.asyncsim.synchronize()
print(start.elapsed_time(end))
""",
        TORCHGAUGE_ASYNCSIM_PLAN="aten::mm=0.05,*=0.01",
        TORCHGAUGE_ASYNCSIM_LAUNCH="0.001",
    )
    assert float(child.stdout) >= 60.0 - 1e-3, child.stderr
