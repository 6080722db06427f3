"""``torchgauge ci init``."""

from __future__ import annotations

import click

from torchgauge.cli.answer import aside


@click.command("init")
@click.option("--dir", "folder", default=".", show_default=True, help="root of the repository")
@click.option("--config", "config_name", default="torchgauge.yml", show_default=True, help="file in --dir")
@click.option("--force", is_flag=True, help="overwrite changed files")
@click.option("--dry-run", is_flag=True, help="show the diff; write nothing")
def command(folder: str, config_name: str, force: bool, dry_run: bool) -> None:
    """Write a repository's workflows from its torchgauge.yml, with hashes of the packages to install.

    Example: torchgauge ci init --dir ../my-project
    """
    from pathlib import Path

    from torchgauge.workflows.config import read_config
    from torchgauge.workflows.init import lacking, workflow_files, write_workflows
    from torchgauge.workflows.package_hash import hashed

    config = read_config(Path(folder, config_name))
    files = workflow_files(config, Path(folder), config_name, hashed(config.torchgauge))
    for file in files:
        click.echo(f"{file.change.value:8} {file.path}")
        if dry_run and file.difference:
            click.echo(file.difference)
    if not dry_run:
        write_workflows(files, force=force)
    aside(f"missing in the repository: {each}" for each in lacking(config, Path(folder)))
