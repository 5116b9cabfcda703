"""Signatures of releases in the format of minisign: over the manifest, and so over every file that it names.

A signature is four lines: a comment, base64 of algorithm, key id and signature, a trusted comment, and base64 of a signature over
signature and trusted comment. The trusted comment names the release, so that a signature is valid for one release only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, Problem, input_error, missing_package
from empathy_eval.base.files import write_whole
from empathy_eval.base.parsing import ParseError
from empathy_eval.design.dataset import MANIFEST, SIGNATURE
from empathy_eval.releases.assemble.manifest import release_title

# Maximum size of a key or signature file, whose lines hold a few hundred bytes.
MOST_BYTES = 4096
COMMENT, TRUSTED = "untrusted comment: ", "trusted comment: "
# Signed data: the file, as in old versions of minisign, or its BLAKE2b-512.
PLAIN, HASHED = b"Ed", b"ED"
NO_PASSWORD, PASSWORD, CHECKSUM = b"\0\0", b"Sc", b"B2"
PUBLIC_LENGTH, SECRET_LENGTH, SIGNATURE_LENGTH = 42, 158, 74
NEW_KEY = "make a key pair with `minisign -G -W -p PUBLIC -s SECRET`, and name {}"
FIX_ASK = "get the signature and the public key from the publisher, through a channel that you trust"


@dataclass(frozen=True)
class PublicKey:
    """The id of a key (8 bytes, which prove nothing) and the key (32 bytes)."""

    id: bytes
    key: bytes


@dataclass(frozen=True)
class SecretKey:
    """The id of a key and its seed (32 bytes, never shown)."""

    id: bytes
    seed: bytes = field(repr=False)


def read_public_key(source: str | Path) -> PublicKey:
    """Returns a public key of minisign from its base64 line, or from the file that holds it.

    Raises:
        InputError: if it is not a public key.
    """
    fix = NEW_KEY.format("PUBLIC, or the line of base64 in it")
    try:
        data = _decode(str(source), PUBLIC_LENGTH)
    except ParseError:
        try:
            data = _decode(_read_lines(Path(source), 2)[1], PUBLIC_LENGTH)
        except (OSError, ValueError) as error:
            raise input_error(source, f"is not a public key: {_reason(error)}", fix) from error
    if data[:2] != PLAIN:
        raise input_error(source, f'is not a public key: its algorithm is {ascii(data[:2])[1:]}, not "Ed"', fix)
    return PublicKey(data[2:10], data[10:])


def read_secret_key(path: Path) -> SecretKey:
    """Returns a secret key of minisign that has no password. Errors quote nothing of the key.

    Raises:
        InputError: if it is not a secret key, has a password, or is damaged; or if the package that signs is missing.
    """
    fix = NEW_KEY.format("SECRET")
    try:
        data = _decode(_read_lines(path, 2)[1], SECRET_LENGTH)
    except (OSError, ValueError) as error:
        raise input_error(path, f"is not a secret key: {_reason(error)}", fix) from error
    if data[2:4] == PASSWORD:
        raise input_error(path, "is a secret key with a password, which is not supported", fix)
    if data[:2] != PLAIN or data[2:4] != NO_PASSWORD or data[4:6] != CHECKSUM:
        raise input_error(path, "is not a secret key: its algorithms are unknown", fix)
    key_id, seed, public, checksum = data[54:62], data[62:94], data[94:126], data[126:]
    # Where there is no password, minisign writes no checksum.
    expected = hashlib.blake2b(data[:2] + data[54:126], digest_size=32).digest()
    if (any(checksum) and checksum != expected) or _private_key(seed).public_key().public_bytes_raw() != public:
        raise input_error(path, "is a damaged secret key: its parts do not match", fix)
    return SecretKey(key_id, seed)


def holds_secret_key(path: Path) -> bool:
    """Whether a file is a secret key of minisign, with a password or without."""
    try:
        data = _decode(_read_lines(path, 2)[1], SECRET_LENGTH)
    except (OSError, ValueError):
        return False
    return data[:2] == PLAIN and data[2:4] in (NO_PASSWORD, PASSWORD)


def find_secret_keys(folder: Path) -> Iterator[Problem]:
    """Yields a problem for every file of a folder, hidden ones too, that is a secret key."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= MOST_BYTES and holds_secret_key(path):
            yield Problem(str(path), "is a secret key", "remove it; if others had the folder, sign with another key from now on")


def read_signing_key(path: Path, *folders: Path) -> SecretKey:
    """Returns the secret key of a file outside these folders, which others may receive.

    Raises:
        InputError: if the file is in one of them, or as :func:`read_secret_key`.
    """
    for folder in folders:
        if path.resolve().is_relative_to(folder.resolve()):
            raise input_error(path, f'is a secret key in "{folder}", a folder that others may receive', "move it to another folder")
    return read_secret_key(path)


def sign(folder: Path, manifest: dict[str, Any], key: SecretKey) -> None:
    """Writes the signature over the manifest of a release folder: the same bytes each time."""
    signer, comment = _private_key(key.seed), release_title(manifest)
    signature = signer.sign(hashlib.blake2b((folder / MANIFEST).read_bytes()).digest())
    whole = signer.sign(signature + comment.encode())
    first, last = (base64.b64encode(line).decode() for line in (HASHED + key.id + signature, whole))
    write_whole(folder / SIGNATURE, f"{COMMENT}signature from minisign secret key\n{first}\n{TRUSTED}{comment}\n{last}\n")


def signature_faults(folder: Path, manifest: dict[str, Any], signer: PublicKey | None) -> Iterator[Finding]:
    """Yields faults of the signature of a release; without a signer's key, a finding that an existing signature was not checked."""
    path = folder / SIGNATURE
    if signer is None:
        if path.is_file():
            what = "was not checked: no public key of a signer was given"
            yield Finding(str(path), what, "name the key with --signer", "unchecked", "signature")
        return
    if not path.is_file():
        yield Finding(str(path), "is missing: the release is not signed", FIX_ASK)
        return
    try:
        comment = _read_signature(folder / MANIFEST, path, signer)
    except (OSError, ValueError) as error:
        yield Finding(str(path), f"is not valid: {_reason(error)}", FIX_ASK)
        return
    if comment != release_title(manifest):
        yield Finding(str(path), f'is the signature of "{comment[:100]}", not of "{release_title(manifest)}"', FIX_ASK)


def _read_signature(manifest: Path, path: Path, signer: PublicKey) -> str:
    """Returns the trusted comment of the signer's signature of a manifest.

    Raises:
        OSError, ValueError: if it is no signature, by another key, or of another manifest.
        InputError: if the package that checks it is missing.
    """
    lines = _read_lines(path, 4)
    data, whole = _decode(lines[1], SIGNATURE_LENGTH), _decode(lines[3], 64)
    if not lines[2].startswith(TRUSTED):
        raise ParseError(f'its third line does not begin with "{TRUSTED.strip()}"')
    comment = lines[2].removeprefix(TRUSTED)
    algorithm, key_id, signature = data[:2], data[2:10], data[10:]
    if algorithm not in (PLAIN, HASHED):
        raise ParseError(f'its algorithm is {ascii(algorithm)[1:]}, not "ED" or "Ed"')
    if key_id != signer.id:
        raise ParseError(
            f"it was made with another key (its id is {_format_key_id(key_id)}, that of the signer {_format_key_id(signer.id)})"
        )
    signed = manifest.read_bytes()
    if not _is_signed_by(signer, signature, hashlib.blake2b(signed).digest() if algorithm == HASHED else signed):
        raise ParseError(f"it is not the signer's signature of this {MANIFEST}: another key made it, or the manifest was changed")
    if not _is_signed_by(signer, whole, signature + comment.encode()):
        raise ParseError("it has a trusted comment that the signer did not sign")
    return comment


def _format_key_id(key_id: bytes) -> str:
    """Formats a key id as minisign does."""
    return key_id[::-1].hex().upper()


def _read_lines(path: Path, count: int) -> list[str]:
    with path.open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ParseError(f"it is larger than {MOST_BYTES:,} bytes")
    lines = data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(lines) != count:
        raise ParseError(f"it has {len(lines)} lines, not {count}")
    if not lines[0].startswith(COMMENT):
        raise ParseError(f'its first line does not begin with "{COMMENT.strip()}"')
    return lines


def _decode(line: str, length: int) -> bytes:
    try:
        data = base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ParseError("it holds a line that is not base64") from error
    if len(data) != length:
        raise ParseError(f"a line of base64 holds {len(data)} bytes, not {length}")
    return data


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _private_key(seed: bytes) -> Any:
    return _ed25519().Ed25519PrivateKey.from_private_bytes(seed)


def _is_signed_by(signer: PublicKey, signature: bytes, of: bytes) -> bool:
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(signer.key).verify(signature, of)
    except InvalidSignature:
        return False
    return True


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise missing_package("a signature", "sign") from error
    return ed25519
