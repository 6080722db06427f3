"""The text that models are held to: token ids without a tokenizer, one for each byte.

Written for this purpose and under this project's licence. Random weights know no language, so a perplexity
over it says nothing of a model; it says whether two ways to run one agree.
"""

from __future__ import annotations

FIRST_ID = 10
"""The smaller ids are padding, separators and the like in most vocabularies."""
IDS = 256
"""How many ids there are."""

TEXT = """\
A lighthouse keeper writes down three things every night: when the lamp was lit, how far its beam carried,
and what passed. On most nights nothing passes. The page still gets its line, because a missing line could
mean a quiet sea, a broken lamp or a keeper asleep, and nobody who reads the book a year later can tell
which.

When the old lamp was replaced, the builder promised that the new one would carry twice as far. The keeper
did not argue. He rowed out at dusk with a chart, dropped a stone on a line to hold the boat, and wrote down
where he could still read a letter by the light. He did so on three clear nights with the old lamp and on
three with the new one, and he took them in turns, so that a change of weather could not favour either. The
new lamp carried farther by a third. The builder said that the air had been damp. It may have been; it had
been damp for both.

What he kept from that summer was not the number but the habit. A promise is a kind of question. You ask it
of the thing itself, more than once, beside what you had before, and you write down the answer with the day
and the weather, also when it is dull, and most of all when it is not the one you hoped for.

Years later a ship came in with a clock that was said to lose no more than a second in a month. The captain
was proud of it and let the keeper hold it to his ear. It ticked like any other. They set it by the noon
sun, and again the next day, and the day after that, until clouds came and the ship had to sail. The keeper
wrote: three days, no difference that I could see; my noon is good to four seconds. He underlined the second
half.
"""


def byte_ids(count: int, start: int = 0) -> list[int]:
    """Token ids of ``count`` bytes from byte ``start`` on; after the last byte comes the first."""
    raw = TEXT.encode("ascii")
    return [FIRST_ID + raw[(start + i) % len(raw)] for i in range(count)]
