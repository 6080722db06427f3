"""Twenty refusals and more, each in another style."""

import argparse
import unittest

import torch

from . import constants, helpers
from .constants import FAST, SUPPORTED
from .helpers import refuse, requires_device, runs_there


def equality(x):
    if x.device.type != "cuda":  # planted: 1
        raise RuntimeError("only one device")
    return x


def membership(query, key):
    allowed = {"cuda", "cpu", "xpu", "hpu", "mps"}
    if query.device.type not in allowed:  # planted: 2
        raise ValueError(f"only supported on {allowed}, not on {query.device.type}")
    return key


def constant_elsewhere(device):
    kind = torch.device(device).type
    if kind not in SUPPORTED:  # planted: 3
        raise ValueError("unsupported")


def through_module(device):
    if not constants.FAST.issuperset({device.type}):  # planted: 4
        raise ValueError("unsupported")


def by_helper(device):
    if not runs_there(device):  # planted: 5
        raise NotImplementedError("no kernel")


def helper_raises(device):
    if device.type in FAST:  # planted: 6
        return 1
    return refuse("this")


def early_return(x):
    if x.is_cuda:  # planted: 7
        return x + 1
    raise RuntimeError(f"expected another device than {x.device}")


def dispatch(x):
    return {"cuda": torch.add, "cpu": torch.sub}[x.device.type](x, x)  # planted: 8


def table_with_default(x):
    run = {"cuda": torch.add, "xpu": torch.sub}.get(x.device.type)
    if run is None:  # planted: 9
        raise KeyError("no such device")
    return run(x, x)


def by_match(device):
    match device.type:  # planted: 10
        case "cuda" | "cpu":
            return 1
        case _:
            raise TypeError("not here")


def by_prefix(device):
    if not str(device).startswith(("cuda", "xpu")):  # planted: 11
        raise ValueError(device)


def asserted(tensors):
    assert all(t.is_cuda for t in tensors), "all tensors have to be there"  # planted: 12


def available():
    if not torch.cuda.is_available():  # planted: 13
        raise OSError("a device is needed")


def by_pattern(device):
    if constants.DEVICE_PATTERN.match(str(device)) is None:  # planted: 14
        raise ValueError(f"{device} cannot be read")


def else_of_a_chain(device_type, x):
    if device_type == "cuda":  # planted: 15
        x = x + 1
    elif device_type == "cpu":
        x = x + 2
    else:
        raise AssertionError(device_type)
    return x


def walrus(x):
    if (kind := x.device.type) != "cuda" and x.requires_grad:  # planted: 16
        raise NotImplementedError(kind)


def sets(tensors):
    strange = {t.device.type for t in tensors} - {"cuda", "cpu"}
    if strange:  # planted: 17
        raise ValueError(f"tensors on {strange}")


def loop_else(device):
    for known in ("cuda", "xpu"):  # planted: 18
        if device.type == known:
            break
    else:
        raise LookupError(device)


@unittest.skipIf(not torch.cuda.is_available(), "needs a device")  # planted: 19
class Skipped(unittest.TestCase):
    pass


@requires_device("cuda", "xpu")  # planted: 20
def decorated(x):
    return x


class Runner:
    """Names of methods are names of devices."""

    KINDS = ["cuda", "cpu"]

    def check(self, device):
        if device.type not in self.KINDS:  # planted: 21
            helpers.refuse(device)

    def run(self, device):
        return getattr(self, f"_run_{device.type}")()  # planted: 22

    def _run_cuda(self):
        return 1


def within_text(device):
    if "cuda" not in str(device):  # planted: 23
        raise ValueError("unsupported")


def nothing_counted():
    if torch.cuda.device_count() == 0:  # planted: 24
        raise SystemExit("no device")


def of_a_device(x):
    if x.device != torch.device("cuda"):  # planted: 25
        raise ValueError("elsewhere")


def argument():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"])  # planted: 26
    return parser


def index_of(device):
    return ["cuda", "cpu"].index(device.type)  # planted: 27


def aliased(x):
    is_supported = x.device.type in ("cuda", "cpu")
    if not is_supported:  # planted: 28
        raise RuntimeError("unsupported")


def returns_silently(x):
    if x.device.type != "cuda":  # planted: 29
        return None
    return x * 2
