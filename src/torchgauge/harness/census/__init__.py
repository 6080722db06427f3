"""The census of operators: which ones a model calls, and which a device has a kernel for."""
