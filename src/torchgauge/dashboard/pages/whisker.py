"""A number in doubt has its interval drawn beside it, so that nobody takes it for a number as the others."""

from __future__ import annotations

WIDTH, HEIGHT = 50, 8


def whisker(half: float | None) -> str:
    """``half`` percent to both sides of the middle as inline SVG, 100 % to the edge; empty without one.

    What is wider has no ends. The text beside it says the same.
    """
    if half is None:
        return ""
    middle, reach = WIDTH // 2, WIDTH // 2 - 1
    side = round(reach * min(half, 100) / 100)
    ends = f"M{middle - side} 2v4M{middle + side} 2v4" if half <= 100 else ""
    return (
        f'<svg class="whisker" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f'<path d="M{middle - side} 4h{2 * side}M{middle} 0v8{ends}"/></svg>'
    )
