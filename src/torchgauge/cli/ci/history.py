"""``torchgauge ci history``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.counted import counted

_BRANCH = click.option("--branch", default="results", show_default=True, help="branch of the store")
_PATH = click.option(
    "--path",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("history"),
    show_default=True,
    help="local folder",
)


@click.group("history")
def command() -> None:
    """Fetch and push the branch that contains a store, with the token in GITHUB_TOKEN.

    Example: torchgauge ci history fetch --branch results --path history
    """


@command.command("fetch")
@_BRANCH
@_PATH
@click.option("--github", is_flag=True, help="write the step output `existed`")
def fetch(branch: str, folder: Path, github: bool) -> None:
    """Clone the branch into a new folder, or start an empty folder if there is none.

    With --github, the step output is `existed` (true or false).

    Exit codes: 0 done, 3 the branch cannot be read.

    Example: torchgauge ci history fetch --branch results --path history --github
    """
    from torchgauge.workflows.github_files import annotate, set_output
    from torchgauge.workflows.history_branch import HistoryBranch

    existed = HistoryBranch.from_environment(branch).fetch(folder)
    word = "true" if existed else "false"
    if github:
        set_output("existed", word)
    if not existed:
        notice = f"branch {branch} does not exist yet: starting with an empty folder"
        annotate("notice", notice)
    click.echo(f"existed={word}")


@command.command("add")
@click.argument("source", type=click.Path(path_type=Path))
@_PATH
def add(source: Path, folder: Path) -> None:
    """Copy the files of the store SOURCE into the folder; links and hidden files are refused.

    Example: torchgauge ci history add "$RUNNER_TEMP/collected/history" --path history
    """
    from torchgauge.workflows.history_files import add_files

    click.echo(counted(add_files(source, folder), "file"))


@command.command("save")
@_BRANCH
@_PATH
@click.option("--message", required=True, help="commit message")
def save(branch: str, folder: Path, message: str) -> None:
    """Push the folder as one commit; never overwrite newer commits.

    Exit codes: 0 pushed, 3 the branch has newer commits.

    Example: torchgauge ci history save --branch results --path history --message "Results of 2026-05-28"
    """
    from torchgauge.workflows.history_branch import HistoryBranch

    commit = HistoryBranch.from_environment(branch).save(folder, message)
    click.echo(f"{branch} is at {commit}" if commit else "nothing to push")
