"""Headings of a matrix's columns, from which scripts learn what a cell stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torchgauge.dashboard.latest_results import Column
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages import links

_NIGHTLY = re.compile(r"^torch [\w.]+\.dev(?=\d)")


@dataclass(frozen=True)
class ColumnHead:
    """One column: ``anchor`` is the column's part of its cases' anchors, ``first`` opens a device.

    ``apart`` says of which torch or date it is, where the rest is of another, and ``said`` the same in lines
    that have room above a column.
    """

    device: str
    device_id: str
    configuration: str
    anchor: str
    compiled: bool
    first: bool
    apart: str

    @property
    def said(self) -> tuple[str, ...]:
        """A nightly build by what tells it from other ones."""
        return tuple(_NIGHTLY.sub("dev", part) for part in self.apart.split(", "))


def column_heads(columns: tuple[Column, ...], apart: Mapping[Column, str]) -> tuple[ColumnHead, ...]:
    """The headings of ``columns``, which are sorted by device."""
    before = (None, *(column.device for column in columns))
    return tuple(
        ColumnHead(
            column.device,
            device_id(column.device),
            column.configuration,
            links.column_anchor(column),
            column.compiled,
            column.device != device,
            apart.get(column, ""),
        )
        for column, device in zip(columns, before, strict=False)
    )
