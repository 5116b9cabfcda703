"""Standard streams that are closed, full, or read by nobody: what is printed is lost, the work is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from empathy_eval.base.streams import TolerantFile
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger


def test_the_first_write_that_fails_is_kept_and_what_follows_is_thrown_away() -> None:
    reader, writer = os.pipe()
    outlet = TolerantFile(writer, "w", closefd=False)
    assert outlet.write(b"read") == 4 and os.read(reader, 9) == b"read"
    os.close(reader)
    assert outlet.write(b"unread") == 6
    failed = outlet.failed
    assert isinstance(failed, BrokenPipeError)
    assert outlet.write(memoryview(b"more")) == 4 and outlet.failed is failed
    os.close(writer)


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [("", 0, ""), ("print('x' * 100_000)", 1, "No space left"), ("print('x'); return 2", 2, "No space left")],
)
def test_a_full_standard_output_is_told_once_the_work_is_done(work: str, status: int, said: str, tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from empathy_eval import cli; from empathy_eval.commands.command import Command\n"
        f"def run(options):\n    {work or 'pass'}\n    return 0\n"
        f"Command.__call__ = lambda command, options: (run(options), Path({str(tmp_path / 'made')!r}).touch())[0]\n"
        "import sys; sys.argv[1:] = ['verify', 'x']; cli.entry()\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == status and (tmp_path / "made").exists()
    assert said in done.stderr and "Traceback" not in done.stderr and bool(said) == bool(done.stderr)


def run(arguments: list[str], redirected: str) -> subprocess.CompletedProcess[str]:
    """A command in a shell that redirects its streams."""
    command = ["sh", "-c", f'"$@" {redirected}', "sh", sys.executable, "-m", "empathy_eval", *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


@pytest.mark.e2e
@pytest.mark.sampled
@pytest.mark.parametrize("redirected", [">&-", ">/dev/full", "| true", "<&- >&- 2>&-"])
def test_a_verb_ends_as_it_would_have_whoever_reads_it(light: Path, tmp_path: Path, redirected: str) -> None:
    with Ledger(tmp_path / "ledger.sqlite"):
        pass
    full = redirected == ">/dev/full"
    slow = [["verify", str(light), "--fast"], ["diff", str(light), str(light)], ["show", str(light), "003-seed"]]
    quick = [["list", "metrics"], ["ledger", "show", str(tmp_path / "ledger.sqlite")]]
    for arguments in (["--help"], *quick, *(slow if "LONG" in os.environ else ()), ["init", "--out", str(tmp_path / "own")]):
        done = run(arguments, redirected)
        assert (done.returncode, "standard output: cannot be written" in done.stderr) == (int(full), full), (arguments, done.stderr)
        assert "Traceback" not in done.stderr
    assert (tmp_path / "own" / "demo.yaml").is_file()


@pytest.mark.e2e
def test_what_is_printed_to_a_closed_output_goes_into_no_file(light: Path, tmp_path: Path) -> None:
    out = tmp_path / "items.csv"
    arguments = ["score", str(light), "--metric", "length", "--no-shortcuts", "--no-cache", "--items", str(out)]
    assert main(arguments) == 0
    plain = out.read_bytes()
    out.unlink()
    assert run(arguments, ">&-").returncode == 0
    assert out.read_bytes() == plain
