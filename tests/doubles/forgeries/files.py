"""Forgeries of what lies in the folder, and of the definitions that travel along."""

from __future__ import annotations

import os
import shutil

from tests.doubles.forger import Forger
from tests.doubles.forgeries import first, forgeries, forgery, in_text


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


forgeries(
    a_rule_changed_in_the_definitions=in_text("design/rules/safety.yaml", lambda text: text.replace("diagnos", "diagnoz")),
    a_template_changed_in_the_definitions=in_text("design/templates/*.md.j2", lambda text: text + "\nBe brief.\n"),
    a_scenario_changed_in_the_definitions=in_text("design/scenarios/003*", lambda text: text.replace("work", "play")),
    the_taxonomy_changed_in_the_definitions=in_text("design/taxonomy.yaml", lambda text: text.replace("Clarification", "Clarifying")),
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
