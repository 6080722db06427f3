"""The same words where nothing is refused: none of these lines may be accused."""

import logging
import unittest

import torch

DEFAULT = "cuda"
DEVICES = ["cpu", "cuda", "xpu"]
EXAMPLES = {"cuda": 1.5, "cpu": 0.5}
REGISTRY = {"cuda": torch.add}


def documented(x):
    """Use ``cuda`` or ``cpu``; with device.type == "cuda" it is quicker, and xpu raises nothing."""
    return x


def makes():
    return torch.device("cuda"), torch.zeros(2, device="cuda:0"), torch.empty(3, device="cpu")


def moves(x):
    return x.to("cuda"), x.cuda(), x.cpu(), x.to(device=DEFAULT)


def prints(x):
    print("cuda", x)
    logging.getLogger(__name__).info("running on cuda or cpu, not on %s", x)


def register(name, function):
    REGISTRY[name] = function


register("cuda", torch.add)
register("xpu", torch.sub)


def open_table(x):
    return REGISTRY[x.device.type](x, x)


def open_check(x):
    if x.device.type not in REGISTRY:
        raise KeyError("nobody registered this device")
    return x


def counts_through():
    return [torch.device(name) for name in DEVICES]


def test_data():
    for device in ("cpu", "cuda"):
        for size in (1, 2):
            yield device, size, EXAMPLES["cuda"]


def by_ability(x):
    module = torch.get_device_module(x.device)
    if not hasattr(module, "Stream"):
        raise NotImplementedError("the device has no streams")
    return module


def same_device(a, b):
    if a.device.type != b.device.type:
        raise ValueError("tensors on two devices")
    return a


def host_or_not(x):
    if x.device.type == "cpu":
        return x
    return x.cpu()


def only_the_host_is_refused(x):
    if x.device.type == "cpu":
        raise ValueError("the host has no queue")
    return x


def accelerated(x):
    if x.device.type != "meta":
        return x + 1
    return x


def asks_pytorch():
    found = torch.accelerator.current_accelerator()
    if found is None:
        raise RuntimeError("no accelerator")
    return found


def with_every_device(x):
    if x.device.type not in ("cuda", "xpu", torch._C._get_privateuse1_backend_name()):
        raise ValueError("not an accelerator")
    return x


def autocast():
    with torch.autocast("cuda", dtype=torch.float16), torch.amp.autocast(device_type="cpu"):
        return torch.amp.GradScaler("cuda")


def message(x):
    if x.dim() != 2:
        raise ValueError("expected two dimensions, on cuda and on cpu alike")
    return x


@torch.library.register_kernel("planted::add", "cuda")
def kernel(x):
    return x


def annotated(device: "cuda" = "cuda", *, where: str = "cpu") -> str:
    return device + where


class Documented(unittest.TestCase):
    device = "cuda"

    def test_it(self):
        self.assertEqual(str(torch.device("cuda", 1)), "cuda:1")


def file_names(folder):
    return {name: folder / f"{name}.json" for name in ("cuda", "cpu", "mps")}


def other_words(backend, mode):
    if backend == "nccl" or mode not in {"train", "eval"}:
        raise ValueError(backend)
    return torch.backends.mps, torch.cuda, torch.version.git_version
