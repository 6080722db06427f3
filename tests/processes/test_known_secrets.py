"""Secrets are replaced in what other processes say: in each form that is promised, and in nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from torchgauge.processes.known_secrets import MASK, SHORTEST, KnownSecrets, known_secrets

SECRET = 'pa/ss "w\\ord+with% é-everything'
TOKEN = "hf_" + "aB3" * 12
PLAIN = {"MY_TOKEN": "0123456789abcdef", "MY_PASSWORD": SECRET}
FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "in a sentence": lambda s: f"the value {s} is wrong",
    "in JSON": json.dumps,
    "in repr": repr,
    "in an address": lambda s: quote(s, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in hexadecimal": lambda s: s.encode().hex(),
    "in HEXADECIMAL": lambda s: s.encode().hex().upper(),
    "in base64": lambda s: base64.b64encode(s.encode()).decode(),
    "in base64 behind a name": lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
    "in base64 behind two": lambda s: base64.b64encode(f"u:{s}".encode()).decode(),
    "in base64 of addresses": lambda s: base64.urlsafe_b64encode(f"us:{s}".encode()).decode(),
}
CHANGED: dict[str, Callable[[str], str]] = {
    "reversed": lambda s: s[::-1],
    "over lines": "\n".join,
    "with blanks": " ".join,
    "in twice base64": lambda s: base64.b64encode(base64.b64encode(s.encode())).decode(),
    "in other letters": lambda s: s.translate({ord(c): ord(c) + 1 for c in set(s)}),
}


@pytest.fixture
def secrets(tmp_path: Path) -> KnownSecrets:
    return known_secrets({**PLAIN, "HOME": str(tmp_path)})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PLAIN)
def test_a_known_value_is_replaced_in_every_promised_form(
    secrets: KnownSecrets, form: str, name: str
) -> None:
    """Nothing of it but a letter or two at the ends of base64 stays."""
    said = FORMS[form](PLAIN[name])
    hidden = secrets.hide(f"before {said} after")
    assert MASK in hidden
    assert said not in hidden
    assert PLAIN[name] not in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")


@pytest.mark.parametrize("form", CHANGED)
def test_a_changed_value_is_not_caught_and_nobody_says_it_is(secrets: KnownSecrets, form: str) -> None:
    """The page says so: who wants to tell a secret that it has can."""
    said = CHANGED[form](PLAIN["MY_TOKEN"])
    assert secrets.hide(said) == said


@pytest.mark.parametrize(
    "value",
    ["", "1", "true", "short", "x" * (SHORTEST - 1), "unsupported", "fail_accuracy", "missing_package"],
)
def test_what_is_no_secret_stays(tmp_path: Path, value: str) -> None:
    """Short values, and words of our own vocabulary, stand in every text."""
    found = known_secrets({"SOME_PASSWORD": value, "HOME": str(tmp_path)})
    text = f"status {value}, and {value} again"
    assert found.hide(text) == text


def test_the_path_of_a_secret_is_no_secret(tmp_path: Path) -> None:
    """A reader needs it."""
    file = tmp_path / "key.pem"
    file.touch()
    assert known_secrets({"TLS_KEY": str(file), "HOME": str(tmp_path)}).hide(f"no {file}") == f"no {file}"


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 12,
        "glpat-" + "a1B2-" * 5,
        TOKEN,
        "npm_" + "a1B2" * 9,
        "xoxb-1234567890-abcdefghij",
        "sk-proj-" + "a1B2" * 12,
        "AKIA" + "ABCD" * 4,
        "AIza" + "aB3dE" * 7,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nabc\ncut off here",
    ],
)
def test_the_form_of_a_token_is_enough(secrets: KnownSecrets, text: str) -> None:
    """It may come from a file that we never read."""
    assert secrets.hide(f"found: {text}") == f"found: {MASK}"


def test_passwords_in_addresses_are_replaced(tmp_path: Path) -> None:
    """Those of our environment wherever they stand, others where they stand in an address."""
    found = known_secrets({"PIP_INDEX_URL": "https://me:let-me-in-now@host/simple", "HOME": str(tmp_path)})
    assert found.hide("said let-me-in-now") == f"said {MASK}"
    assert found.hide("git clone https://a:b@host/x") == f"git clone https://{MASK}@host/x"
    assert found.hide("see https://host:8080/a@b") == "see https://host:8080/a@b"


def test_the_token_file_of_the_hub_counts(tmp_path: Path) -> None:
    """Workers have the home folder, and with it what a login left there."""
    folder = tmp_path / ".cache" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "token").write_text("an-old-kind-of-token\n")
    assert known_secrets({"HOME": str(tmp_path)}).hide("an-old-kind-of-token") == MASK
    assert known_secrets({"HF_HOME": str(folder)}).hide("an-old-kind-of-token") == MASK


@pytest.mark.parametrize("size", [SHORTEST, 12, 15])
def test_a_half_at_a_cut_is_replaced(secrets: KnownSecrets, size: int) -> None:
    """Messages are cut off, and so is the middle of a long log."""
    token = PLAIN["MY_TOKEN"]
    assert secrets.hide(f"it is {token[:size]}") == f"it is {MASK}"
    assert secrets.hide(f"it is {token[:size]}…") == f"it is {MASK}…"
    assert secrets.hide(f"{token[-size:]} it was") == f"{MASK} it was"
    log = f"begin {token[:size]}\n[... 9 bytes left out ...]\n{token[-size:]} end"
    assert secrets.hide(log) == f"begin {MASK}\n[... 9 bytes left out ...]\n{MASK} end"


def test_a_secret_of_several_lines_is_replaced_line_by_line(tmp_path: Path) -> None:
    """It is printed so."""
    found = known_secrets(
        {"SERVICE_CREDENTIALS": "first-line-of-it\nsecond-line-of-it", "HOME": str(tmp_path)}
    )
    assert found.hide("| second-line-of-it |") == f"| {MASK} |"


def test_records_keep_their_shape(secrets: KnownSecrets) -> None:
    """Texts alone change, at any depth; names of fields, numbers and bytes that are no text stay."""
    token = PLAIN["MY_TOKEN"]
    record = {"a": [1, 2.5, None, True, {"b": token}], token: "name", "n": [[0.1] * 3]}
    assert secrets.hide_in(record) == {
        "a": [1, 2.5, None, True, {"b": MASK}],
        token: "name",
        "n": [[0.1] * 3],
    }
    assert secrets.hide_bytes(b"\xff\x00" + token.encode() + b"\xfe") == b"\xff\x00" + MASK.encode() + b"\xfe"


def test_without_secrets_nothing_changes(tmp_path: Path) -> None:
    """A text with everything in it comes back as it was."""
    text = "pass ::error:: https://example.org/a?b=c user@host \x1b[0m 1.5e-3 ***"
    assert known_secrets({"HOME": str(tmp_path), "PATH": "/bin"}).hide(text) == text
