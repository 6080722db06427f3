"""``torchgauge ci sign``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("sign")
@click.argument("sets", nargs=-1, type=click.Path(path_type=Path))
@click.option("--key", "key_file", metavar="FILE", type=click.Path(path_type=Path), help="your private key")
@click.option("--new-key", metavar="FILE", type=click.Path(path_type=Path), help="make a private key there")
def command(sets: tuple[Path, ...], key_file: Path | None, new_key: Path | None) -> None:
    """Sign result SETS (folders that `ci run` wrote) for a store that knows your public key.

    With --new-key only a key is made; its public half, which is printed, goes into the contributors.yml of
    the store. Keep the other half off the machine that measures.

    Example: torchgauge ci sign set --key torchgauge.pem
    """
    from torchgauge.errors import UsageError
    from torchgauge.workflows.set_signature import new_key as make
    from torchgauge.workflows.set_signature import sign

    if new_key is not None:
        if sets or key_file:
            raise UsageError("--new-key signs nothing", hint="make the key first, then sign with --key")
        click.echo(make(new_key))
        return
    if not sets or key_file is None:
        raise UsageError("no set or no key is named", hint="torchgauge ci sign SET --key FILE")
    for each in sets:
        click.echo(f"{each}: signed with {sign(each, key_file).key}")
