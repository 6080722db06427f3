"""The suite of device-generic checks: small questions to a device, answered beside the host.

``catalogue`` lists the checks without importing them, ``check_context`` is what a check works with,
``checks`` holds one module per capability group. The same checks run under pytest with
``--torchgauge-device``.
"""
