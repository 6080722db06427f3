"""What actions/checkout does, from clones beside the test: ``ACT_ORIGINS/OWNER/NAME``."""

import json
import os
import subprocess
import sys
from pathlib import Path

FORK_SENSITIVE = ("pull_request_target", "workflow_run")


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def git(*arguments, where="."):
    """Run git in the folder ``where``."""
    done = subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def main():
    """Clone and check out, or refuse."""
    own = os.environ["GITHUB_REPOSITORY"]
    repository = os.environ["REPOSITORY"] or own
    ref = os.environ["REF"]
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text() or "{}")
    if os.environ["GITHUB_EVENT_NAME"] in FORK_SENSITIVE and os.environ["UNSAFE"] != "true":
        head = event.get("workflow_run", {}).get("head_sha", "no commit")
        if ref == head or ref.startswith("refs/pull/"):
            fail("checkout of a pull request's commit in a run with secrets is refused")
    origin = Path(os.environ["ACT_ORIGINS"]) / repository
    if not (origin / ".git").is_dir() and not (origin / "HEAD").is_file():
        fail(f"repository {repository} not found")
    where = Path(os.environ["WHERE"])
    if Path(os.environ["GITHUB_WORKSPACE"]).resolve() not in [where.resolve(), *where.resolve().parents]:
        fail(f"repository path {where.resolve()} is not under the workspace")
    where.mkdir(parents=True, exist_ok=True)
    git("init", "-q", where=where)
    git("remote", "add", "origin", str(origin), where=where)
    wanted = ref or (os.environ["GITHUB_SHA"] if repository == own else "HEAD")
    git("fetch", "-q", "origin", wanted, where=where)
    branch = (
        not ref.startswith("refs/") and git("ls-remote", "--heads", "origin", ref, where=where) if ref else ""
    )
    name = ["-B", ref] if branch else ["--detach"]
    git("checkout", "-q", *name, "FETCH_HEAD", where=where)
    if os.environ["PERSIST"] == "true":
        git("config", "http.extraheader", "AUTHORIZATION: of the job", where=where)


main()
