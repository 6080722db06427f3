"""Times one model of timm in a bare script: ``matrix_bare_step.py MODEL CONFIGURATION THREADS SECONDS``.

Needs torch and timm alone, of any version. Prints the seconds of each step as a JSON list.
"""

import json
import sys
import time

import torch

SCHEMAS = ("nms", "qnms")


def model_of(name: str) -> torch.nn.Module:
    """Return the model with random weights; its batch norms have the statistics of four random images."""
    try:
        import timm
    except RuntimeError:  # operators of a torchvision that was built for another torch
        library = torch.library.Library("torchvision", "DEF")
        for schema in SCHEMAS:
            library.define(f"{schema}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for loaded in [each for each in sys.modules if each.split(".")[0] in {"timm", "torchvision"}]:
            del sys.modules[loaded]
        import timm
    torch.manual_seed(0)
    module = timm.create_model(name)
    norms = [each for each in module.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        module.train()(torch.randn(4, *module.pretrained_cfg["input_size"]))
    return module.eval()


def main() -> None:
    """Build, warm up, time single steps in a loop, print."""
    name, configuration, threads, seconds = sys.argv[1:]
    torch.set_num_threads(int(threads))
    module = model_of(name)
    step = module if configuration == "eager" else torch.compile(module, backend=configuration)
    images = torch.randn(2, *module.pretrained_cfg["input_size"])
    times = []
    with torch.no_grad():
        for _ in range(10):
            step(images)
        ends = time.perf_counter() + float(seconds)
        while time.perf_counter() < ends:
            begun = time.perf_counter()
            step(images)
            times.append(time.perf_counter() - begun)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
