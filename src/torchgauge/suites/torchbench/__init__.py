"""The TorchBench suite."""
