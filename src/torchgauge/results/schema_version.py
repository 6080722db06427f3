"""The schema version of a store's files: one is read, and each other is refused by name."""

from __future__ import annotations

from torchgauge.errors import OtherSchemaError, UsageError
from torchgauge.records import SCHEMA_VERSION


def check_version(found: object, where: str) -> None:
    """Raise :class:`OtherSchemaError` where ``found``, the version of the file ``where``, is not today's.

    Raises :class:`UsageError` for a value that is not a version.
    """
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UsageError(
            f"{where}: the schema version {found!r} is not a whole number", hint="restore the file"
        )
    versions = f"(schema version {found}; this torchgauge reads version {SCHEMA_VERSION})"
    if found > SCHEMA_VERSION:
        raise OtherSchemaError(
            f"{where} was written by a newer torchgauge {versions}", hint="upgrade torchgauge to read it"
        )
    if found < SCHEMA_VERSION:
        raise OtherSchemaError(
            f"{where} was written by an older torchgauge {versions}",
            hint="plan and measure again in a new store, or read this one with the older torchgauge",
        )
