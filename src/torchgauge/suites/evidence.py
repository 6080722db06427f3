"""Where a judgement in a data file comes from: every one has a reason, a link and a date."""

from __future__ import annotations

from typing import Annotated

import msgspec

Reason = Annotated[str, msgspec.Meta(min_length=10)]
Link = Annotated[str, msgspec.Meta(pattern=r"^https?://\S+$")]
Date = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
