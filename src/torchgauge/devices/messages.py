"""What runtimes say of a full allocator and of a device that is gone: several raise plain RuntimeErrors.

Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

OUT_OF_MEMORY = re.compile(
    r"\bout of (?:(?:device|host|gpu|system) )?memory\b(?! (?:pool|format|order|bound|range|access))"
    r"|\b(?:can't|cannot|could not|unable to|failed to) allocate (?:memory\b|[\d.]+ ?(?:[kmgt]i?b|bytes?)\b)"
    r"|defaultcpuallocator: (?:can't allocate|not enough) memory"
    r"|\bstd::bad_alloc\b|\b(?:cublas|cudnn|hipblas|rocblas)_status_alloc_failed\b",
    re.IGNORECASE,
)
"""Messages of plain RuntimeErrors that mean a full allocator. Shared memory of a kernel is another matter."""

DEVICE_LOST = re.compile(
    r"\bdevice (?:is |was |has been )?(?:lost|removed|disconnected)\b"
    r"|\bgpu is lost\b|\bfallen off the bus\b|\buncorrectable (?:ecc|nvlink) error\b"
    r"|\bno (?:cuda|rocm)-capable device is detected\b|\bdevice\(s\) is/are busy or unavailable\b"
    r"|device_lost\b"
    r"|\blost heartbeat\b|\bruntime result = 507010\b|\bdevice not found or invalid\b"
    r"|\bdevice acquire failed\b",
    re.IGNORECASE,
)
"""Messages of RuntimeErrors that mean a device that no longer answers, by runtime:

- any: "device lost" and its kin, also Metal's "device removed" (MTLCommandBufferErrorDeviceRemoved).
- CUDA and NVML: the texts of cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorNoDevice,
  cudaErrorDevicesUnavailable, NVML_ERROR_GPU_IS_LOST, and the driver's Xid 79. HIP words its own
  hipErrorNoDevice likewise.
- Level Zero and Unified Runtime: ZE_RESULT_ERROR_DEVICE_LOST, UR_RESULT_ERROR_DEVICE_LOST, as in
  "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)".
- Ascend: runtime error 507010 "lost heartbeat" and EL0001 "Device not found or invalid"
  (https://github.com/vllm-project/vllm-ascend/issues/8186).
- Gaudi: "Device acquire failed" (https://github.com/huggingface/optimum-habana/issues/1611).

"device-side assert triggered", "illegal memory access" and Ascend's "vector core exception" are left out:
the program caused them, so they are errors of the case.
"""


def is_full_allocator(error: BaseException, types: tuple[type[BaseException], ...]) -> bool:
    """Whether ``error``, or an error that it reports, is one of ``types`` or says that memory was full."""
    for each in _reported(error):
        if isinstance(each, types):
            return True
        if isinstance(each, OSError) and each.errno == errno.ENOMEM:
            return True
        if isinstance(each, RuntimeError) and OUT_OF_MEMORY.search(str(each)):
            return True
    return False


def is_lost_device(error: BaseException) -> bool:
    """Whether ``error``, or an error that it reports, says that the device is gone."""
    return any(
        isinstance(each, RuntimeError) and DEVICE_LOST.search(str(each)) is not None
        for each in _reported(error)
    )


def _reported(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it wraps: its cause, or a compiler's ``inner_exception``."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = getattr(current, "inner_exception", None) or current.__cause__
