"""A mistake that click found in a command line, told as all others: what is wrong, where, what to try."""

from __future__ import annotations

from collections.abc import Sequence

import click


def mistake_text(error: click.ClickException, arguments: Sequence[str] = ()) -> str:
    """``error: --threads: 'x' is not a valid integer``, and in the next line what to try.

    A message may bring its own advice after ``; try: ``.
    """
    context = getattr(error, "ctx", None)
    message, _, advice = " ".join(_message(error, context).split()).partition("; try: ")
    message = message[:1].lower() + message[1:] if message[1:2].islower() else message
    command = context.command_path if context is not None else " ".join(("torchgauge", *arguments[:1]))
    helps = f"{command} --help"
    return f"error: {message.rstrip('.')}\n  try: {advice or helps}"


def _message(error: click.ClickException, context: click.Context | None) -> str:
    """What is wrong, after the option that it is about."""
    if not isinstance(error, click.BadParameter) or isinstance(error, click.MissingParameter):
        return error.format_message()
    hint = error.param_hint or (error.param.get_error_hint(context) if error.param and context else "")
    names = (hint if isinstance(hint, str) else " / ".join(hint)).replace("'", "")
    message = error.message
    for theirs, ours in _KINDS.items():
        message = message.replace(theirs, ours)
    return f"{names}: {message}" if names else message


_KINDS = {
    "a valid integer range": "a whole number",
    "a valid integer": "a whole number",
    "a valid float range": "a number",
    "a valid float": "a number",
}
"""What click calls the kinds of numbers, and what a person does."""
