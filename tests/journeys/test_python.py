"""The calls of docs/python.md: in a script and in a notebook, with the results of the command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.completions.ledger import Ledger

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import demo_file
from tests.doubles.hub import WRITER
from tests.doubles.hub import running as running_hub
from tests.journeys.test_docs import ROOT, blocks, ran

# What somebody else does between two cells: raters send their files back, and a file of requests is answered.
OTHERS = {
    "ee.review_import(": """
from pathlib import Path
from tests.doubles.raters import fill, kind_and_cold
review = Path("build/review")
for rater in sorted(path.name for path in (review / "raters").iterdir()):
    fill(review, rater, "page", kind_and_cold, Path("returned"))
""",
    "ee.ledger_import(": """
import json
from pathlib import Path
from tests.doubles.batches import reply
from tests.doubles.server import Behaviour, Server
server, lines = Server(Behaviour()), []
for line in Path("requests.jsonl").read_bytes().splitlines():
    request = json.loads(line)
    status, body = reply(server, request["body"])
    response = {"status_code": status, "body": body}
    lines.append(json.dumps({"id": "x", "custom_id": request["custom_id"], "response": response, "error": None}))
Path("answers.jsonl").write_text("\\n".join(lines))
""",
}


# Some of the seeds are enough.
SOME = "00[1-8]-*.yaml"


def cells() -> list[str]:
    """The blocks of the document, over some of the seeds, with what others do between them."""
    found = list[str]()
    for block in blocks("python.md", "python"):
        found += [text for mark, text in OTHERS.items() if mark in block]
        found.append(block.replace('load_recipe("demo")', 'load_recipe("demo", scenarios="scenarios")'))
    return found


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    with running_hub() as hub:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        yield {
            **os.environ,
            "PYTHONPATH": path,
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": WRITER,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
        }


def prepared(folder: Path) -> Path:
    """A folder with what the document supposes: the demo, with fewer draws and metrics, and a configuration with an endpoint."""
    (folder / "scenarios").mkdir(parents=True)
    for path in [data_folder("scenarios") / "taxonomy.yaml", *data_folder("scenarios").glob(SOME)]:
        shutil.copy(path, folder / "scenarios")
    (folder / "scenarios" / "crossed").mkdir()
    for path in (folder / "scenarios").glob(SOME):
        shutil.copy(data_folder("scenarios") / "crossed" / f"{path.name[:3]}.yaml", folder / "scenarios" / "crossed")
    raw = yaml.safe_load(demo_file(folder).read_text())
    (folder / "demo").write_text(
        yaml.safe_dump({**raw, "report": {**raw["report"], "metrics": ["bleu", "rouge-l", "bertscore"], "bootstrap": 20}})
    )
    config_file(folder, "http://127.0.0.1:9", dialogues=3, controls=2).rename(folder / "elsewhere.yaml")
    return folder


def notebook(sources: list[str]) -> Any:
    made: Any = nbformat.v4
    return made.new_notebook(cells=[made.new_code_cell(source) for source in sources])


def client_of(book: Any, folder: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> nbclient.NotebookClient:
    for name, value in {**environment, "IPYTHONDIR": str(folder / "ipython")}.items():
        monkeypatch.setenv(name, value)
    return nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})


def release_of(folder: Path) -> dict[str, bytes]:
    """The bytes of all that was built and released."""
    build = folder / "build" / "demo"
    return {
        str(path.relative_to(build)): path.read_bytes()
        for path in sorted(build.rglob("*"))
        if path.is_file() and ".sqlite" not in path.name
    }


def script_of(folder: Path, environment: dict[str, str]) -> str:
    """What the cells print as a script."""
    (prepared(folder) / "script.py").write_text("\n".join(cells()))
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_calls_give_what_the_command_line_gives(environment: dict[str, str], tmp_path: Path) -> None:
    ran(
        "empathy-eval build demo --scenarios scenarios --out build/demo\n"
        "empathy-eval release build/demo --out build/demo/release --version 0.1.0 --without bertscore --without embedding\n",
        prepared(tmp_path / "verbs"),
    )
    said = script_of(tmp_path / "script", environment)
    assert "files would go" in said and "8 planned: 8 accepted" in said
    assert release_of(tmp_path / "script") == release_of(tmp_path / "verbs")


# In make check the cells run as a script, and a notebook runs a build of its own that is interrupted.
@pytest.mark.long
def test_they_give_the_same_in_a_notebook(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, folder = notebook(cells()), prepared(tmp_path / "notebook")
    client_of(book, folder, environment, monkeypatch).execute()
    said = "".join(one["text"] for cell in book.cells for one in cell.outputs if one.get("name") == "stdout")
    assert said == script_of(tmp_path / "script", environment) and release_of(folder) == release_of(tmp_path / "script")


async def test_an_interrupted_kernel_stops_a_build_as_ctrl_c_does(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = """
import json, time
from pathlib import Path
import empathy_eval as ee

class Slow(ee.TextModel):
    name = "slow"

    def answer(self, messages, answer_schema):
        Path("asked").touch()
        time.sleep(0.2)
        return json.dumps({"text": "That is a great deal to carry on your own for so long."})

try:
    ee.build("demo", "b", models={"far": Slow()})
except ee.JobError as error:
    print(error)
"""
    folder = prepared(tmp_path / "kernel")
    book = notebook([slow, "print('the kernel lives')"])
    client = client_of(book, folder, environment, monkeypatch)

    async def interrupt() -> None:
        while not (folder / "asked").exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        kernel: Any = client.km
        await kernel.interrupt_kernel()

    start = time.monotonic()
    task = asyncio.create_task(interrupt())
    await client.async_execute()
    await task
    said = [one["text"] for cell in book.cells for one in cell.outputs if one.get("name") == "stdout"]
    assert "stopped by Ctrl-C" in said[0] and said[1] == "the kernel lives\n"
    with Ledger(folder / "b" / "ledger.sqlite", create=False) as ledger:
        ((answered,),) = ledger.query("SELECT count(*) FROM completions WHERE model = 'slow'")
    assert 0 < answered < 494 and time.monotonic() - start < 120


def test_the_document_shows_every_name() -> None:
    import empathy_eval

    text = (ROOT / "docs" / "python.md").read_text()
    types = {"EmpathyEvalError", "Completion", "Metric", "Model", "NoAnswer", "Recipe", "__version__"}
    assert [name for name in empathy_eval.__all__ if f"ee.{name}" not in text and name not in types] == []


def test_every_verb_that_reads_a_release_takes_a_version_on_the_hub(environment: dict[str, str], light: Path, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
import empathy_eval as ee
folder, name = {str(light)!r}, "my-lab/empathy-eval@v0.1.0"
ee.publish(folder, "my-lab/empathy-eval")
assert ee.verify(name) == []
assert ee.load(name, "pairs").num_rows == ee.load(folder, "pairs").num_rows
assert ee.score(name, ["length"]).to_json() == ee.score(folder, ["length"]).to_json()
assert ee.shortcuts(name).to_json() == ee.shortcuts(folder).to_json()
ee.report(name, "there")
assert Path("there/tables.json").read_bytes() == Path(folder, "report/tables.json").read_bytes()
assert not ee.diff(name, folder).changed
exported = ee.review_export(name, "review", pairs=1, dialogues=1, raters=9)
assert exported.key == ee.review_export(folder, "again", pairs=1, dialogues=1, raters=9).key
"""
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment | cache, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    fetched = tmp_path / "cache" / "empathy-eval" / "releases"
    assert [path.name for path in fetched.rglob("manifest.json")] == ["manifest.json"]
    said = ran(
        "empathy-eval score my-lab/empathy-eval@v0.1.0 --metric length --json", tmp_path, {**environment, **cache, "HF_HUB_OFFLINE": "1"}
    )
    assert json.loads(said)["inversion"][0]["metric"] == "length"
