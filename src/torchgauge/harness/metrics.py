"""The metrics that torchgauge knows: name, base unit, direction and definition."""

from __future__ import annotations

from torchgauge.records import Better, Measurement, Metric

_LOWER, _HIGHER, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("latency", "s", _LOWER, "wall time of one step, synchronised before and after each block"),
        Metric("latency_device", "s", _LOWER, "time of one step between two device events"),
        Metric("latency_cpu", "s", _LOWER, "CPU time of the whole process during one step, all threads"),
        Metric("launch_overhead", "s", _LOWER, "wall time less device-event time of one step"),
        Metric("contention", "share", _LOWER, "share of a block in which one of its threads had no core"),
        Metric("latency_contended", "s", _LOWER, "wall time of one step in blocks left out for contention"),
        Metric("throughput", "1/s", _HIGHER, "items per second: items of one step divided by its wall time"),
        Metric("speedup", "ratio", _HIGHER, "eager wall time divided by this configuration's, same round"),
        Metric("compile_cold", "s", _LOWER, "first call with an empty compile cache, synchronised"),
        Metric("compile_warm", "s", _LOWER, "first call of a new process with the filled cache"),
        Metric("graph_count", "count", _NEITHER, "graphs that dynamo captured for one step"),
        Metric("graph_breaks", "count", _LOWER, "graph breaks that dynamo counted"),
        Metric("recompiles", "count", _LOWER, "compilations of a frame beyond its first"),
        Metric("cache_hits", "count", _NEITHER, "compile-cache hits of the warm compilation"),
        Metric("peak_memory", "B", _LOWER, "peak of the steps in a process that ran only this configuration"),
        Metric("flops", "FLOP", _NEITHER, "floating-point operations of one step, counted by operator"),
        Metric("flops_rate", "FLOP/s", _HIGHER, "achieved rate: counted operations divided by wall time"),
        Metric("gemm_flops", "FLOP/s", _HIGHER, "calibration: 2 n^3 / s of a square matrix product"),
        Metric("copy_bytes_per_s", "B/s", _HIGHER, "calibration: copy on the device, bytes read and written"),
        Metric("transfer_bytes_per_s", "B/s", _HIGHER, "calibration: copy between host and device"),
        Metric("launch_s", "s", _LOWER, "calibration: one small operator in a row of a hundred"),
        Metric(
            "launch_return_s", "s", _LOWER, "calibration: from the call of one small operator to its return"
        ),
        Metric("launch_complete_s", "s", _LOWER, "calibration: the same to the end of a synchronisation"),
        Metric("event_resolution_s", "s", _LOWER, "calibration: smallest time above 0 between two events"),
        Metric(
            "event_agreement", "ratio", _NEITHER, "calibration: event time divided by the host's wall time"
        ),
        Metric("clock_resolution_s", "s", _LOWER, "calibration: smallest step of the host's clock"),
    )
}


def absent(metric: str, reason: str) -> Measurement:
    """A metric that could not be measured, with the reason."""
    return Measurement(metric, METRICS[metric].unit, absent=reason)
