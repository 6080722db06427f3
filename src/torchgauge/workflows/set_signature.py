"""Signatures of result sets that no Git host vouches for: Ed25519 over the manifest, which hashes the rest.

::

    signature.json     the public key and the signature, beside the manifest

Whose key it is, the store's owners say in ``contributors.yml``; what a set says of its key is only looked up
there. The library ``cryptography`` does the work.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.errors import UsageError
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.workflows.result_set import MANIFEST, SIGNATURE_FILE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE_SCHEMA = 1
CONTEXT = b"torchgauge result set 1\n"
"""What stands before the manifest in what is signed: a signature of something else is none of a set."""
KEY = re.compile(r"ed25519:[A-Za-z0-9+/]{43}=")
"""A public key as ``contributors.yml`` has it: 32 bytes in base64."""


@dataclass(frozen=True)
class SetSignature:
    """What ``signature.json`` holds; ``signature`` is in base64."""

    key: str
    signature: str
    schema: int = SIGNATURE_SCHEMA


def new_key(path: Path) -> str:
    """Write a new private key to ``path``, for its owner's eyes alone; returns the public one.

    Raises :class:`UsageError` where ``path`` exists.
    """
    _library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", hint="name a new file: a key is not replaced") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="name another file") from error
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text)
    return _public(key)


def sign(folder: Path, key_file: Path) -> SetSignature:
    """Sign the set in ``folder`` with the private key in ``key_file`` (PEM), and write ``signature.json``.

    Raises :class:`UsageError` for a folder that is no set and a file that is no such key.
    """
    _library()
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise UsageError(f"{folder} is not a result set", hint="the folder that `torchgauge ci run` wrote")
    key = _private(key_file)
    said = base64.b64encode(key.sign(CONTEXT + manifest.read_bytes())).decode()
    found = SetSignature(_public(key), said)
    with storage_errors(folder):
        write_atomically(folder / SIGNATURE_FILE, json.dumps(to_plain(found), indent=1).encode() + b"\n")
    return found


def check_signature(files: Mapping[str, bytes], keys: Collection[str]) -> str:
    """The key of ``keys`` that signed the set in ``files``; raises ``RefusedSetError`` where none did."""
    _library()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
    from torchgauge.workflows.ingest.strict_records import decode

    if SIGNATURE_FILE not in files:
        raise RefusedSetError(Reason.UNSIGNED, "it has no signature, although its contributor signs")
    said = decode(files[SIGNATURE_FILE], SetSignature, "the signature")
    if said.schema != SIGNATURE_SCHEMA or said.key not in keys:
        raise RefusedSetError(Reason.SIGNATURE, "it is signed with no key of its contributor")
    try:
        signature = base64.b64decode(said.signature, validate=True)
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(said.key.partition(":")[2]))
        public.verify(signature, CONTEXT + files[MANIFEST])
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise RefusedSetError(Reason.SIGNATURE, "the signature is not of this manifest") from error
    return str(said.key)


def _private(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    hint = "torchgauge ci sign --new-key FILE makes one, or openssl genpkey -algorithm ed25519"
    try:
        found: Any = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} holds no private key without a password", hint=hint) from error
    if not isinstance(found, Ed25519PrivateKey):
        raise UsageError(f"{path} holds a key of another kind than Ed25519", hint=hint)
    return found


def _public(key: Ed25519PrivateKey) -> str:
    return f"ed25519:{base64.b64encode(key.public_key().public_bytes_raw()).decode()}"


def _library() -> None:
    try:
        import cryptography  # noqa: F401  asked for by its name, so that a person reads what to install
    except ImportError as error:
        raise UsageError(
            "signing needs the library cryptography", hint="pip install 'torchgauge[sign]'"
        ) from error
