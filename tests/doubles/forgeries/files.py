"""Forgeries of what lies in the folder, and of the definitions that travel along."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.doubles.forger import Forger
from tests.doubles.forgeries import forgery


def first(forger: Forger, pattern: str) -> Path:
    return sorted(forger.folder.glob(pattern))[0]


@forgery()
def a_file_more_that_the_manifest_names(forger: Forger) -> None:
    (forger.folder / "notes.md").write_text("Trust me.\n")


@forgery()
def a_table_more_that_the_manifest_names(forger: Forger) -> None:
    shutil.copy(forger.folder / "data" / "pairs" / "train.parquet", forger.folder / "data" / "pairs" / "extra.parquet")


@forgery()
def a_hidden_file_more(forger: Forger) -> None:
    (forger.folder / ".notes").write_text("Trust me.\n")


@forgery()
def a_hidden_folder_more(forger: Forger) -> None:
    (forger.folder / ".cache").mkdir()
    (forger.folder / ".cache" / "pairs.py").write_text("print('hello')\n")


@forgery()
def a_loading_script(forger: Forger) -> None:
    (forger.folder / "release.py").write_text("import os\n")


@forgery()
def an_empty_folder_more(forger: Forger) -> None:
    (forger.folder / "data" / "extra").mkdir()


@forgery()
def a_name_in_letters_that_look_alike(forger: Forger) -> None:
    path = forger.folder / "data" / "pairs" / "train.parquet"
    shutil.copy(path, path.with_name("tr\N{CYRILLIC SMALL LETTER A}in.parquet"))


@forgery()
def a_name_that_differs_in_case(forger: Forger) -> None:
    shutil.copy(forger.folder / "README.md", forger.folder / "Readme.md")


@forgery()
def a_link_out_of_the_folder(forger: Forger) -> None:
    path = forger.folder / "LICENSE"
    outside = forger.folder.parent / f"{forger.folder.name}-licence"
    shutil.move(path, outside)
    path.symlink_to(outside)


@forgery()
def a_pipe_among_the_files(forger: Forger) -> None:
    forger.seal()
    os.mkfifo(forger.folder / "data" / "pipe")
    forger.sealing = False


@forgery()
def no_candidates_file(forger: Forger) -> None:
    (forger.folder / "candidates.parquet").unlink()


@forgery()
def no_word_list(forger: Forger) -> None:
    (forger.folder / "word_list.json").unlink()


@forgery()
def no_scores_of_texts(forger: Forger) -> None:
    (forger.folder / "report" / "items.parquet").unlink()


@forgery()
def no_explorer(forger: Forger) -> None:
    shutil.rmtree(forger.folder / "explore")


@forgery()
def no_definitions(forger: Forger) -> None:
    shutil.rmtree(forger.folder / "design")


@forgery()
def a_rule_taken_out_of_the_definitions(forger: Forger) -> None:
    first(forger, "design/rules/crisis.yaml").unlink()


@forgery()
def a_rule_changed_in_the_definitions(forger: Forger) -> None:
    path = first(forger, "design/rules/safety.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("diagnos", "diagnoz"), encoding="utf-8")


@forgery()
def a_template_changed_in_the_definitions(forger: Forger) -> None:
    path = first(forger, "design/templates/*.md.j2")
    path.write_text(path.read_text(encoding="utf-8") + "\nBe brief.\n", encoding="utf-8")


@forgery()
def a_scenario_changed_in_the_definitions(forger: Forger) -> None:
    path = first(forger, "design/scenarios/003*")
    path.write_text(path.read_text(encoding="utf-8").replace("work", "play"), encoding="utf-8")


@forgery()
def the_taxonomy_changed_in_the_definitions(forger: Forger) -> None:
    path = forger.folder / "design" / "taxonomy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("Clarification", "Clarifying"), encoding="utf-8")


@forgery()
def a_definition_more(forger: Forger) -> None:
    (forger.folder / "design" / "rules" / "more.yaml").write_text("phrases: []\n")
