"""Reading a drawn picture back: what stands where, by its elements alone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from torchgauge.dashboard.pages.number_text import TIMES

SVG = "{http://www.w3.org/2000/svg}"


def words(element: ET.Element) -> str:
    """What is written in ``element``, without its title."""
    return element.text or "".join(child.tail or "" for child in element)


class PictureFile:
    """The file of one picture."""

    def __init__(self, path: Path) -> None:
        self.root = ET.fromstring(path.read_bytes())
        self.texts = list(self.root.iter(f"{SVG}text"))

    @property
    def title(self) -> str:
        return self.root.findtext(f"{SVG}title") or ""

    @property
    def description(self) -> str:
        return self.root.findtext(f"{SVG}desc") or ""

    def log_axis(self) -> tuple[float, float]:
        """Place of 1 and pixels per unit of the natural logarithm, from two labels of the axis."""
        labels = [each for each in self.texts if each.attrib["class"] == "q m small"]
        ticks = {
            float(found[1]): float(each.attrib["x"])
            for each in labels
            if (found := re.fullmatch(rf"([\d.]+){TIMES}", words(each)))
        }
        other = next(value for value in ticks if value != 1)
        return ticks[1], (ticks[other] - ticks[1]) / math.log(other)

    def rows(self) -> dict[str, tuple[str, float, float]]:
        """By the whole name: what is said of it, and the place and height of its dot."""
        found = {}
        for group in self.root.iter(f"{SVG}g"):
            dot = group.find(f"{SVG}circle")
            name, _, said = (group.findtext(f"{SVG}title") or "").rpartition(": ")
            if dot is not None:
                found[name] = said, float(dot.attrib["cx"]), float(dot.attrib["cy"])
        return found

    def whiskers(self) -> dict[float, tuple[float, float]]:
        """By height: both ends of every whisker."""
        paths = [each for each in self.root.iter(f"{SVG}path") if re.match("s[bwu]", each.attrib["class"])]
        pieces = [
            piece for path in paths for piece in re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", path.attrib["d"])
        ]
        return {float(y): (float(left), float(right)) for left, y, right in pieces}

    def columns(self, css: str) -> list[tuple[float, float]]:
        """Place and height of every column of a layer."""
        return [
            (float(x), abs(float(bottom) - float(top)))
            for each in self.root.iter(f"{SVG}path")
            if each.attrib.get("class") == f"f-{css}"
            for x, bottom, top in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)h", each.attrib["d"])
        ]
