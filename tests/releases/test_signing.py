"""Signatures: what minisign signs we take, what we sign minisign takes, and everything else is refused in words."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.dataset import MANIFEST, SIGNATURE
from empathy_eval.releases.assemble.signing import read_public_key, read_secret_key, read_signing_key, sign, signature_faults
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.hub.publish import publish
from empathy_eval.releases.verify.verify import verify

pytest.importorskip("cryptography", reason="signing needs the extra sign")
minisign = pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is not installed")

NAMED: dict[str, Any] = {"name": "empathy-eval-demo", "version": "1.0.0"}
# As `minisign -G -W` wrote them, for these tests alone.
PUBLIC = "RWRhBHQsFfONMiHRwdARstib+hVqvlo/1Yp9x1YgwDwTS+LnW3nR3OrR"
SECRET = (
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAYQR0LBXzjTKKO+N4D+EfVRY7AAbYkPh4"
    "8gjH8EvPrMxMht9//fry5iHRwdARstib+hVqvlo/1Yp9x1YgwDwTS+LnW3nR3OrRAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)


def key_file(path: Path, data: str = SECRET) -> Path:
    path.write_text(f"untrusted comment: minisign encrypted secret key\n{data}\n")
    return path


def changed(line: str, at: int, by: bytes) -> str:
    """A line of base64 with other bytes in one place."""
    data = base64.b64decode(line)
    return base64.b64encode(data[:at] + by + data[at + len(by) :]).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manifest that is signed, as far as signatures go a release."""
    made = tmp_path / "release"
    made.mkdir()
    (made / MANIFEST).write_text(json.dumps(NAMED))
    sign(made, NAMED, read_secret_key(key_file(tmp_path / "secret")))
    return made


def said(folder: Path, signer: str | Path = PUBLIC, manifest: dict[str, Any] = NAMED) -> str:
    return "\n".join(map(str, signature_faults(folder, manifest, read_public_key(signer))))


def with_line(folder: Path, number: int, change: Callable[[str], str]) -> str:
    path = folder / SIGNATURE
    lines = path.read_text().split("\n")
    lines[number] = change(lines[number])
    path.write_text("\n".join(lines))
    return said(folder)


def test_what_is_signed_is_the_signers_the_same_bytes_each_time(folder: Path, tmp_path: Path) -> None:
    assert said(folder) == ""
    before = (folder / SIGNATURE).read_bytes()
    assert b"\ntrusted comment: empathy-eval-demo 1.0.0\n" in before
    sign(folder, NAMED, read_secret_key(tmp_path / "secret"))
    assert (folder / SIGNATURE).read_bytes() == before
    key = tmp_path / "public"
    key.write_bytes(f"untrusted comment: a key\r\n{PUBLIC}\r\n".encode())
    assert said(folder, key) == "", "a file, as Windows writes it too"


@minisign
def test_minisign_takes_what_we_sign_and_we_take_both_of_its_forms(folder: Path, tmp_path: Path) -> None:
    public, secret, manifest = tmp_path / "a.pub", tmp_path / "a.key", folder / MANIFEST
    assert run("minisign", "-G", "-W", "-p", public, "-s", secret).returncode == 0
    sign(folder, NAMED, read_secret_key(secret))
    taken = run("minisign", "-V", "-p", public, "-m", manifest)
    assert taken.returncode == 0 and "Trusted comment: empathy-eval-demo 1.0.0" in taken.stdout
    for form in ((), ("-l",)):
        (folder / SIGNATURE).unlink()
        assert run("minisign", "-S", *form, "-s", secret, "-m", manifest, "-t", "empathy-eval-demo 1.0.0").returncode == 0
        assert said(folder, public) == said(folder, public.read_text().split("\n")[1]) == ""
    assert run("minisign", "-S", "-s", secret, "-m", manifest).returncode == 0
    assert 'is the signature of "timestamp:' in said(folder, public)


def test_a_signature_of_something_else_is_refused(folder: Path) -> None:
    other = NAMED | {"version": "1.0.1"}
    assert 'is the signature of "empathy-eval-demo 1.0.0", not of "empathy-eval-demo 1.0.1"' in said(folder, manifest=other)
    (folder / MANIFEST).write_text(json.dumps(NAMED) + "\n")
    assert "or the manifest was changed" in said(folder)
    (folder / SIGNATURE).unlink()
    assert "is missing: the release is not signed" in said(folder)
    os.mkfifo(folder / SIGNATURE)
    assert "is missing" in said(folder), "and nothing waits for it"


def test_another_key_is_refused_of_whatever_id(folder: Path) -> None:
    assert "its id is 328DF3152C740461, that of the signer 328DF3152C740400" in said(folder, changed(PUBLIC, 2, b"\0"))
    # The key that RFC 8032 has for its first test, under the id of ours.
    key = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert "another key made it" in said(folder, changed(PUBLIC, 10, key))


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (0, lambda line: "comment", 'its first line does not begin with "untrusted comment:"'),
        (1, lambda line: line[:-4], "a line of base64 holds 72 bytes, not 74"),
        (1, lambda line: line[:-1] + "?", "it holds a line that is not base64"),
        (1, lambda line: "ü" + line, "it holds a line that is not base64"),
        (1, lambda line: changed(line, 0, b"Xx"), "its algorithm is 'Xx'"),
        (1, lambda line: changed(line, 1, b"d"), "another key made it, or the manifest was changed"),
        (1, lambda line: changed(line, 20, b"\0\0"), "another key made it, or the manifest was changed"),
        (2, lambda line: line[1:], "its third line"),
        (2, lambda line: line.replace("1.0.0", "2.0.0"), "a trusted comment that the signer did not sign"),
        (3, lambda line: changed(line, 5, b"\0\0"), "a trusted comment that the signer did not sign"),
        (3, lambda line: line + "\nmore", "it has 5 lines, not 4"),
        (3, lambda line: "A" * 5000, "it is larger than 4,096 bytes"),
    ],
)
def test_a_signature_that_was_touched_is_refused_in_words(folder: Path, number: int, change: Callable[[str], str], why: str) -> None:
    found = with_line(folder, number, change)
    assert found.startswith(f"{folder / SIGNATURE}: is not valid: ") and why in found


def test_a_cut_signature_and_one_that_is_no_text_are_refused(folder: Path) -> None:
    path = folder / SIGNATURE
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "is not valid" in said(folder)
    path.write_bytes(b"\xff" + whole)
    assert "it is not UTF-8" in said(folder)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (changed(SECRET, 2, b"Sc"), "with a password"),
        (changed(SECRET, 0, b"Ex"), "its algorithms"),
        (changed(SECRET, 70, b"\0\0"), "its parts do not match"),
        (changed(SECRET, 126, b"\1"), "its parts do not match"),
        (PUBLIC, "a line of base64 holds 42 bytes, not 158"),
        ("nothing of a secret key", "not base64"),
    ],
)
def test_what_is_no_secret_key_is_refused_and_nothing_of_it_shown(tmp_path: Path, data: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as error:
        read_secret_key(key_file(tmp_path / "secret", data))
    assert "minisign -G -W" in str(error.value) or "keep" in str(error.value)
    assert SECRET[60:80] not in str(error.value) and data[-20:] not in str(error.value)
    assert "seed" not in repr(read_secret_key(key_file(tmp_path / "right")))


@pytest.mark.parametrize("given", ["nowhere.pub", SECRET, changed(PUBLIC, 0, b"Ex"), PUBLIC[:-2], "a\0b", "x" * 5000])
def test_what_is_no_public_key_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="is not a public key"):
        read_public_key(given)


def test_a_key_lies_in_nothing_that_others_get(tmp_path: Path) -> None:
    for folder in (tmp_path / "build", tmp_path / "out"):
        folder.mkdir()
        with pytest.raises(InputError, match="a folder that others may receive"):
            read_signing_key(key_file(folder / "secret"), tmp_path / "build", tmp_path / "out")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out" / "secret")
    with pytest.raises(InputError, match="a folder that others may receive"):
        read_signing_key(link, tmp_path / "build", tmp_path / "out")


@pytest.mark.e2e
def test_a_release_is_signed_as_it_is_written_and_verified_by_its_signer(light: Path, tmp_path: Path, capsys: Any) -> None:
    key, out = key_file(tmp_path / "secret"), tmp_path / "release"
    manifest = release(light.parent / "build", out, "0.1.0", key=key).manifest
    assert SIGNATURE not in manifest["files"]
    assert [one.severity for one in verify(out, fast=True)] == ["unchecked"], "a signature alone is not believed"
    assert verify(out, fast=True, signer=read_public_key(PUBLIC)) == []
    assert main(["verify", str(out), "--fast", "--signer", changed(PUBLIC, 2, b"\0")]) == 2
    (out / "LICENSE").write_text("mine")
    found = verify(out, fast=True, signer=read_public_key(PUBLIC))
    assert any("its SHA-256 differs" in str(one) for one in found)
    assert "the release is not signed" in str(verify(light, fast=True, signer=read_public_key(PUBLIC))[0])


def test_no_folder_with_a_secret_key_is_published(folder: Path) -> None:
    (folder / "report").mkdir()
    for name in ("report/notes.txt", ".hidden"):
        key_file(folder / name, changed(SECRET, 2, b"Sc"))
    with pytest.raises(InputError) as error:
        publish(folder, "my-lab/empathy-eval", dry_run=True, faults=lambda _: [])
    assert [problem.where.rsplit("/", 1)[-1] for problem in error.value.problems if "secret key" in problem.what] == [
        ".hidden",
        "notes.txt",
    ]


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path; from empathy_eval.releases.assemble.signing import read_secret_key\n"
        f"read_secret_key(Path({str(key_file(tmp_path / 'secret'))!r}))"
    )
    found = run(sys.executable, "-c", code)
    assert "InputError: a signature: needs packages that are not installed" in found.stderr and "[sign]" in found.stderr
