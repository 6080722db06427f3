"""The files of pictures: drawings, a page each with a table of its numbers, and the gallery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchgauge.dashboard.markdown_image import markdown_image
from torchgauge.dashboard.pictures.card_image import available, card_image
from torchgauge.dashboard.pictures.picture import Picture

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

INDEX = "pictures/index.html"


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The gallery, and what belongs to each picture."""
    yield INDEX, context.renderer.page("pictures", INDEX, gallery=context.pictures).encode()
    for picture in context.pictures.drawn:
        yield picture.file, picture.wide.text.encode()
        yield picture.narrow_file, picture.narrow.text.encode()
        yield picture.card_file, picture.card.text.encode()
        if (pixels := card_image(picture)) is not None:
            yield picture.image, pixels
        yield picture.page, _page(context, picture).encode()


def _page(context: SiteContext, picture: Picture) -> str:
    return context.renderer.page(
        "picture",
        picture.page,
        section=INDEX,
        picture=picture,
        markdown=markdown_image(picture.title, picture.file, picture.page, context.base_url),
        base_known=bool(context.base_url),
        card=picture if available() else None,
    )
