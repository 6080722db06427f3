"""Settings of the documentation's site; ``build.py`` lays out the pages that it reads."""

from __future__ import annotations

import os

project = "torchgauge"
author = "the torchgauge authors"
project_copyright = "the torchgauge authors, Apache License 2.0"
version = release = os.environ.get("TORCHGAUGE_DOCS_VERSION", "")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["files"]
nitpicky = True  # with -W in build.py: a reference that leads nowhere ends the build

# Headings have the anchors that a Git host gives them, so that one link serves both.
myst_heading_anchors = 6
myst_links_external_new_tab = False

html_theme = "furo"
html_title = f"torchgauge {version}".strip()
html_static_path = ["static"]
html_css_files = ["torchgauge.css"]
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
