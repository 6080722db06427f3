"""Secrets are replaced in what other processes print: their values, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.processes.known_secrets import MASK, SHORTEST, KnownSecrets, known_secrets

PLAIN = {"MY_TOKEN": "0123456789abcdef", "MY_PASSWORD": "pass word+with% everything"}


@pytest.fixture
def secrets(tmp_path: Path) -> KnownSecrets:
    return known_secrets({**PLAIN, "HOME": str(tmp_path)})


@pytest.mark.parametrize("name", PLAIN)
def test_a_known_value_is_replaced_wherever_it_stands(secrets: KnownSecrets, name: str) -> None:
    """In a sentence, in JSON and twice in a line."""
    value = PLAIN[name]
    assert (
        secrets.hide(f'the value {value} of {{"a": "{value}"}}') == f'the value {MASK} of {{"a": "{MASK}"}}'
    )


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


def test_passwords_in_addresses_are_replaced(tmp_path: Path) -> None:
    """Those of our environment, wherever they stand."""
    found = known_secrets({"PIP_INDEX_URL": "https://me:let-me-in-now@host/simple", "HOME": str(tmp_path)})
    assert found.hide("said let-me-in-now") == f"said {MASK}"


def test_the_token_file_of_the_hub_counts(tmp_path: Path) -> None:
    """Workers have the home folder, and with it what a login left there."""
    folder = tmp_path / ".cache" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "token").write_text("an-old-kind-of-token\n")
    assert known_secrets({"HOME": str(tmp_path)}).hide("an-old-kind-of-token") == MASK
    assert known_secrets({"HF_HOME": str(folder)}).hide("an-old-kind-of-token") == MASK


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
