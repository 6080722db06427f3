"""torchgauge: benchmarking and continuous integration for PyTorch on any device."""

__version__ = "0.1.0.dev0"
