"""Backends: how a workload is executed; each is one file, and takes the same door as a vendor's."""
