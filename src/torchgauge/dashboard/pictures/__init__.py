"""Pictures that people link to: SVG drawn when the site is built, each with a page and its numbers.

A file a noun: what is drawn (``device_ratios``, ``coverage``) turns a site's data into plain numbers, and
these into a :class:`Picture`; ``ink``, ``axis`` and ``svg`` are what it draws with. To show one elsewhere::

    {% import "picture_macros.html.j2" as pictures %}
    {{ pictures.image(picture, root) }}

where ``picture`` comes of ``context.pictures``: ``context.pictures.of("devices")`` and
``context.pictures.of("coverage")`` are those of a kind that draw something, the most telling first; they may
be empty. The macro takes the narrow drawing on a phone, and ``picture.page`` is where its numbers are. Charts
are images, since the policy of pages allows no style in them.
"""
