"""The page of a comparison of systems: names and texts stay texts, and everybody can read it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import empathy_eval as ee
import pytest
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.systems.comparison import Sources, compare_systems
from empathy_eval.raters.systems.replies import read_replied
from empathy_eval.raters.systems.results import MetricWorth, SystemComparison
from empathy_eval.reports.systems_page import page
from empathy_eval.statistics.estimate import Estimate

from tests.doubles.browser import broken_words, serious_findings, watched
from tests.doubles.systems import BOTH, COLD, KIND, Actor, Knowing
from tests.reports.test_study_page import SCREENS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>document.title='ran'</script> </style><img src=x onerror=\"document.title='ran'\"> \u05e9\u05dc\u05d5\u05dd {{7*7}}"


@pytest.fixture(scope="module")
def found(light: Path, tmp_path_factory: pytest.TempPathFactory) -> SystemComparison:
    from empathy_eval.metrics.registry import find

    folder = tmp_path_factory.mktemp("page")
    systems: dict[str, Any] = {name: Actor(name, light) for name in (KIND, COLD, BOTH)}
    ee.respond(light, folder / "r", systems={**systems, "hostile": lambda messages: HOSTILE}, baselines=True, split="all", contexts=12)
    for name in ("heart", "warmer"):
        ee.annotate(folder / "r", folder / name, rubric=name, model=Knowing(light), turns=None)
    worth = {"VADER": MetricWorth(Estimate(0.5, 0.4, 0.6), 0.7, "below", "below it (words alone; contrast: stance)")}
    metrics = find(["vader", "rouge-l"], {})
    return compare_systems(
        [read_replied(folder / "r")],
        Sources([folder / "heart", folder / "warmer"], (), metrics, worth, chance=ResamplingSettings(100, 99, 0)),
    )


def test_texts_of_strangers_stay_texts_and_equal_figures_give_equal_pages(found: SystemComparison) -> None:
    html = page(found, "empathy-eval compare build/replies")
    assert "<script" not in html and "<img" not in html and html == page(found, "empathy-eval compare build/replies")
    assert "Made by <code>empathy-eval compare build/replies</code>" in html


def test_every_system_has_a_row_and_what_is_below_the_line_is_greyed_with_its_reason(found: SystemComparison) -> None:
    html = page(found)
    rated = html.partition(">What judges rate</h2>")[2].partition("</table>")[0]
    rows = {name: rated.count(f"<bdi>{name}</bdi></th>") for name in found.systems}
    # All of this small world is in one split, so nothing of another one is near.
    assert rows == dict.fromkeys(found.systems, 1) | {"bm25": 0} and any('"bm25" has no reply to 12 of 12' in one for one in found.notes)
    metrics = html.partition(">What metrics give</h2>")[2].partition("</table>")[0]
    assert 'class="greyed"><bdi>VADER</bdi>' in metrics and "It has not shown that it measures empathy." in metrics
    assert 'class="greyed"><bdi>ROUGE-L' not in metrics


@pytest.mark.sampled
def test_everybody_can_read_the_page_and_texts_run_nowhere(browser: Browser, found: SystemComparison, tmp_path: Path) -> None:
    path = tmp_path / "systems.html"
    path.write_text(page(found), encoding="utf-8")
    for width, scheme in SCREENS if "LONG" in os.environ else SCREENS[:2]:
        look: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
        with watched(browser.new_context(**look)) as context:
            tab = context.new_page()
            tab.goto(path.as_uri())
            tab.evaluate("[...document.querySelectorAll('details:not([open]) > summary')].forEach(one => one.click())")
            assert tab.locator("details").count() and tab.locator("details:not([open])").count() == 0
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert broken_words(tab) == [] and not tab.locator("table:not(:has(tbody tr))").count()
            tab.evaluate("document.querySelectorAll('tbody').forEach(one => [...one.rows].slice(3).forEach(row => row.remove()))")
            assert serious_findings(tab) == []
            assert tab.title() != "ran" and tab.locator("script, img").count() == 0
