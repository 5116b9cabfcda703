"""Forgeries of what lies in the folder, and of the definitions that travel along."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.doubles.forger import Forger
from tests.doubles.forgeries import forgeries, forgery


def first(forger: Forger, pattern: str) -> Path:
    return sorted(forger.folder.glob(pattern))[0]


@forgery()
def a_hidden_folder_more(forger: Forger) -> None:
    (forger.folder / ".cache").mkdir()
    (forger.folder / ".cache" / "pairs.py").write_text("print('hello')\n")


@forgery()
def a_name_in_letters_that_look_alike(forger: Forger) -> None:
    path = forger.folder / "data" / "pairs" / "train.parquet"
    shutil.copy(path, path.with_name("tr\N{CYRILLIC SMALL LETTER A}in.parquet"))


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


forgeries(
    a_file_more_that_the_manifest_names=lambda forger: (forger.folder / "notes.md").write_text("Trust me.\n"),
    a_table_more_that_the_manifest_names=lambda forger: shutil.copy(
        forger.folder / "data" / "pairs" / "train.parquet", forger.folder / "data" / "pairs" / "extra.parquet"
    ),
    a_hidden_file_more=lambda forger: (forger.folder / ".notes").write_text("Trust me.\n"),
    a_loading_script=lambda forger: (forger.folder / "release.py").write_text("import os\n"),
    an_empty_folder_more=lambda forger: (forger.folder / "data" / "extra").mkdir(),
    a_name_that_differs_in_case=lambda forger: shutil.copy(forger.folder / "README.md", forger.folder / "Readme.md"),
    no_candidates_file=lambda forger: (forger.folder / "candidates.parquet").unlink(),
    no_word_list=lambda forger: (forger.folder / "word_list.json").unlink(),
    no_scores_of_texts=lambda forger: (forger.folder / "report" / "items.parquet").unlink(),
    no_explorer=lambda forger: shutil.rmtree(forger.folder / "explore"),
    no_definitions=lambda forger: shutil.rmtree(forger.folder / "design"),
    a_rule_taken_out_of_the_definitions=lambda forger: first(forger, "design/rules/crisis.yaml").unlink(),
    a_definition_more=lambda forger: (forger.folder / "design" / "rules" / "more.yaml").write_text("phrases: []\n"),
)
