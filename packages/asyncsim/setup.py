"""Builds the device's C++ half with the torch that is installed; everything else is in pyproject.toml."""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

# The arithmetic is PyTorch's own: what is compiled here only arranges it.
FLAGS = ["-O1", "-g0", "-std=c++20", "-fvisibility=hidden", "-Wall"]
SOURCES = (
    "faults plan queue runtime allocator guard generator hooks tensors shapes kernel kernels autocast",
    "collectives module",
)

os.environ.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
setup(
    ext_modules=[
        CppExtension(
            "torchgauge_asyncsim._C",
            [f"csrc/{name}.cpp" for name in " ".join(SOURCES).split()],
            include_dirs=[str(Path("csrc").resolve())],
            extra_compile_args=FLAGS,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
