"""Who is who on the page of reliability: from columns, options, names of raters and folders, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import Agreement, read_table
from empathy_eval.raters.agreement.panel import JudgeRater
from empathy_eval.raters.agreement.reliability import Reliability
from empathy_eval.raters.judges import agreeing
from empathy_eval.raters.judges.agreeing import PanelOptions, agreement_of, reliability_of
from empathy_eval.raters.judges.annotations import ratings_of, read_annotations
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.releases.assemble.write import Released

from tests.evaluation.test_score_judge import Judge as Answering
from tests.evaluation.test_score_judge import own_rubric

ABOUT = ("role", "framework", "model", "style", "sample")
NONE = ResamplingSettings(0, 0, 0)


def written(path: Path, raters: dict[str, dict[str, Any]], criteria: Sequence[str] = ("kind",)) -> Path:
    """A table of four items that all of these raters rate by all criteria, with what is said of them."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(("item", "rater", "criterion", "rating", *ABOUT))
    for item in range(4):
        for place, (name, said) in enumerate(raters.items()):
            for criterion in criteria:
                writer.writerow((f"i{item}", name, criterion, 1 + (item * (place + 2)) % 3, *(said.get(one, "") for one in ABOUT)))
    path.write_text(stream.getvalue())
    return path


def taken(path: Path, **named: Any) -> tuple[Agreement, Reliability]:
    return reliability_of([path], PanelOptions(**named), NONE, "interval")


def refusal(path: Path, **named: Any) -> str:
    with pytest.raises(InputError) as caught:
        taken(path, **named)
    assert all(one.fix for one in caught.value.problems)
    return str(caught.value)


def test_columns_say_who_is_who_and_options_say_the_same(tmp_path: Path) -> None:
    roles = {"e1": {}, "e2": {"role": "expert"}, "j": {"role": "judge"}, "p1": {"role": "crowd"}, "p2": {"role": "crowd"}}
    agreement, by_column = taken(written(tmp_path / "a.csv", roles))
    assert by_column.panel.experts == agreement.experts == ("e1", "e2") and by_column.panel.crowd == ("p1", "p2")
    assert by_column.panel.judges == (JudgeRater("j", "j"),) and agreement.judges == ("j",)
    _, by_option = taken(written(tmp_path / "b.csv", dict.fromkeys(roles, {})), judges=["j"], crowd=["p1", "p2"])
    assert replace(by_option, provenance=None).to_json() == replace(by_column, provenance=None).to_json()


def test_json_lines_have_the_same_columns(tmp_path: Path) -> None:
    given = {"e1": {}, "e2": {}, "m": {"role": "judge", "model": "m", "style": "plain", "sample": 1}}
    path = written(tmp_path / "a.csv", given)
    lines = [
        {**{name: value for name, value in row.items() if value}, "rating": int(row["rating"])}
        for row in csv.DictReader(io.StringIO(path.read_text()))
    ]
    again = tmp_path / "a.jsonl"
    again.write_text("".join(json.dumps(line | ({"sample": 1} if "sample" in line else {"role": None})) + "\n" for line in lines))
    assert replace(taken(again)[1], provenance=None).to_json() == replace(taken(path)[1], provenance=None).to_json()


def test_plain_agreement_passes_these_columns_over(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", {"e1": {"role": "nobody"}, "e2": {"role": "crowd", "sample": "x"}, "j": {"role": "judge"}})
    assert agreement_of([path], [], NONE, "interval").experts == ("e1", "e2", "j")
    assert read_table(path).raters == ("e1", "e2", "j")


def test_samples_of_a_judge_are_known_by_name_or_by_columns_and_the_first_stands_for_the_judge(tmp_path: Path) -> None:
    by_name = {"e1": {}, "e2": {}, "m": {"role": "judge", "model": "lab/m", "style": "plain"}, "m#2": {}, "m#3": {}, "n#2": {}}
    _, made = taken(written(tmp_path / "a.csv", by_name))
    assert made.panel.judges == tuple(JudgeRater(name, "m", "lab/m", "plain", place) for place, name in enumerate(("m", "m#2", "m#3"), 1))
    # Of no judge of that name it is a sample.
    assert made.panel.experts == ("e1", "e2", "n#2")
    about = {"role": "judge", "model": "lab/m"}
    by_column = {
        "e1": {},
        "e2": {},
        "y": {**about, "sample": 1},
        "x": {**about, "sample": 2},
        "z": {**about, "style": "shots", "sample": 1},
    }
    _, made = taken(written(tmp_path / "b.csv", by_column))
    assert [(one.rater, one.judge, one.sample) for one in made.panel.judges] == [("y", "y", 1), ("x", "y", 2), ("z", "z", 1)]
    assert [one.rater for one in made.panel.first] == ["y", "z"]
    ((row,),) = (part.rows for part in made.frameworks)
    assert list(row.judges) == ["y", "z"]


def test_what_columns_say_twice_and_differently_is_reported_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "item,rater,criterion,rating,role,framework,sample\na,e,c,1,expert,one,\na,j,c,1,judge,one,1\nb,e,c,2,judge,one,\nb,j,c,2,judge,two,\n"
        "c,e,c,2,boss,one,\nc,j,c,2,,,second\nd,e,d,1,,,\n"
    )
    said = refusal(path).splitlines()
    assert said[::2] == [
        f'{path}: line 4: gives the rater "e" the role "judge", but line 2 of {path} says "expert"',
        f'{path}: line 5: gives the criterion "c" the framework "two", but line 2 of {path} says "one"',
        f'{path}: line 6: role "boss" is not known',
        f'{path}: line 7: sample "second" does not match ^[1-9][0-9]{{0,3}}$',
    ]
    twice = tmp_path / "b.csv"
    twice.write_text("item,rater,rating,role,role\na,e,1,expert,judge\n")
    assert 'line 1: the header has 2 "role"' in refusal(twice)


def test_two_tables_must_say_the_same(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.csv", {"e": {}, "j": {"role": "judge"}}), tmp_path / "b.csv"
    other.write_text("item,rater,criterion,rating,role\nz,j,kind,1,crowd\n")
    with pytest.raises(InputError, match=f'{other}: line 2: gives the rater "j" the role "crowd", but line 3 of {one} says "judge"'):
        reliability_of([one, other], PanelOptions(), NONE, "interval")


def test_who_or_what_fits_nothing_is_refused_all_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", {"e": {}, "j": {"role": "judge"}})
    said = refusal(path, judges=["x"], crowd=["y"], crowd_as="mode", rubrics=["lend-an-ear", "warmer"])
    assert 'judge: "x" is not a rater in the table' in said and 'crowd: "y" is not a rater in the table' in said
    assert 'crowd as: "mode" is not known' in said and "use one of mean, median" in said
    assert 'rubric "lend-an-ear": has none of the criteria of the table, kind' in said
    assert 'rubric "warmer": is of kind "preference", which has no scales' in said
    assert "is not a file, and no packaged one has that name" in refusal(path, rubrics=["nothing"])


def test_a_rater_has_one_role_and_somebody_is_an_expert(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", {"e": {}, "j": {"role": "judge"}})
    assert 'rater "j": has the role "crowd", but the column role makes it "judge"' in refusal(path, crowd=["j"])
    assert 'rater "e": has the role "judge", but --crowd makes it "crowd"' in refusal(path, judges=["e"], crowd=["e"])
    assert "none of them is an expert" in refusal(path, judges=["e"])
    named = written(tmp_path / "b.csv", {"e": {}, "crowd": {}, "p": {"role": "crowd"}})
    assert 'rater "crowd": has the name of a group of raters on the page' in refusal(named)
    # A crowd that was made one before may be called so.
    assert taken(written(tmp_path / "d.csv", {"e": {}, "crowd": {"role": "crowd"}}))[1].panel.crowd == ("crowd",)
    about = {"role": "judge", "model": "m", "sample": 1}
    assert 'rater "k": is sample 1 of "j", as "j" is' in refusal(written(tmp_path / "c.csv", {"e": {}, "j": about, "k": about}))


def test_a_rating_off_the_scale_of_its_rubric_is_refused_and_the_mean_of_a_crowd_may_lie_between(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "item,rater,criterion,rating,role\na,e,explorations,3,\na,f,explorations,1,\nb,e,explorations,0.5,\nb,p,explorations,1.4,crowd\n"
    )
    said = refusal(path, rubrics=["epitome"])
    assert 'ratings on "explorations": 3 by "e" for "a" is not between 0 and 2, as "epitome" defines it' in said
    assert '0.5 by "e" for "b" is not a whole number' in said and "1.4" not in said


def test_two_rubrics_that_say_otherwise_of_one_criterion_are_refused(tmp_path: Path) -> None:
    path, other = written(tmp_path / "a.csv", {"e": {}, "f": {}}, ["cold"]), tmp_path / "other.yaml"
    own = own_rubric(tmp_path / "cold.yaml")
    other.write_text(own.read_text().replace("better: low", "better: high").replace("name: coldness", "name: other"))
    assert 'rubric "other": defines "cold" differently from "coldness"' in refusal(path, rubrics=[own, other])


def test_folders_of_annotations_are_judges_with_model_style_and_samples_and_their_rubric_is_a_framework(
    released: tuple[Path, Released], tmp_path: Path
) -> None:
    plain, reasoned, people = tmp_path / "plain", tmp_path / "reasoned", tmp_path / "people.csv"
    rubric = own_rubric(tmp_path / "cold.yaml")
    ee.annotate(released[0], plain, rubric=rubric, model=Answering(), turns=6, samples=2)
    items = sorted({item for item, *_ in ratings_of(read_annotations(plain))})
    lines = [f"{item},{who},cold,{1 + len(item) % 5}\n" for item in items for who in ("e1", "e2")]
    people.write_text("".join(["item,rater,criterion,rating\n", *lines]))
    _, made = reliability_of([people, plain], PanelOptions(), NONE, "interval")
    assert made.panel.experts == ("e1", "e2")
    assert made.panel.judges == tuple(
        JudgeRater(name, "lab/own", "lab/own", "plain", at) for at, name in enumerate(("lab/own", "lab/own#2"), 1)
    )
    (part,) = made.frameworks
    assert (part.framework.name, part.framework.criteria) == ("coldness", ("cold",)) and part.framework.better == {"cold": "low"}
    assert part.rows[0].scale == (1.0, 2.0, 3.0, 4.0, 5.0)
    # Of one model in two styles there are two judges.
    rubric.write_text(rubric.read_text().replace("style: plain", "style: reasoned").replace("name: coldness", "name: thought"))
    ee.annotate(released[0], reasoned, rubric=rubric, model=Answering(), turns=6)
    _, made = reliability_of([people, plain, reasoned], PanelOptions(), NONE, "interval")
    assert [(one.rater, one.style, one.sample) for one in made.panel.judges] == [
        ("lab/own, plain", "plain", 1), ("lab/own, plain#2", "plain", 2), ("lab/own, reasoned", "reasoned", 1),
    ]  # fmt: skip
    assert [one.framework.name for one in made.frameworks] == ["coldness"]


def test_who_rated_in_a_review_is_an_expert_by_the_scales_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        {"kind": "variant", "review": "s1-0", "rater": rater, "pair_id": f"p{pair}", "variant": "reference", "text": f"t{pair}"}
        | dict.fromkeys(CRITERIA, 1 + (pair + place) % 3)
        for pair in range(4)
        for place, rater in enumerate(("rater-01", "rater-02"))
    ]
    monkeypatch.setattr(agreeing, "read_record", lambda path: {"judgements": said, "reviews": {"s1-0": {}}})
    judge = tmp_path / "judge.csv"
    judge.write_text(
        "item,rater,criterion,rating,role\n" + "".join(f"p{pair}:reference,j,empathy,{1 + pair % 3},judge\n" for pair in range(4))
    )
    _, made = reliability_of([tmp_path / "reviews.json", judge], PanelOptions(rubrics=["rating-guide"]), NONE, "interval")
    assert made.panel.experts == ("rater-01", "rater-02") and [one.rater for one in made.panel.judges] == ["j"]
    (part,) = made.frameworks
    assert part.framework.criteria == CRITERIA and part.framework.name == "rating-guide"
    by_name = {one.criterion: one for one in part.rows}
    assert by_name["empathy"].judges["j"].kappa.n == 4
    assert by_name["coherence"].judges["j"].kappa.reason == "no item in common"


def test_those_who_were_replied_to_are_one_rater_beside_the_median_expert(tmp_path: Path) -> None:
    experts, own = [1, 2, 3, 3, 1, 2], [1, 3, 3, 2, 1, 2]
    rows = [f"i{item},{who},{value}," for item, value in enumerate(experts) for who in ("e1", "e2")]
    rows += [f"i{item},seeker-{item},{value},self" for item, value in enumerate(own)]
    path = tmp_path / "a.csv"
    path.write_text("item,rater,rating,role\n" + "\n".join(rows) + "\n")
    agreement, page = taken(path)
    assert page.panel.experts == ("e1", "e2") and page.panel.judges == (JudgeRater("self-report", "self-report"),)
    # Quadratic weights: squared distances of the pairs, 2 in all, over those of every pairing, a sixth of them.
    expected = 1 - 2 / (sum((one - other) ** 2 for one in experts for other in own) / 6)
    (judge,) = agreement.criteria[0].benchmark.judges
    assert judge.judge == "self-report" and judge.median.value == pytest.approx(expected)
    path.write_text(path.read_text() + "i0,seeker-9,2,self\n")
    assert "self-report" in refusal(path)
    path.write_text("item,rater,rating,role\n" + "\n".join([*rows, "i0,self-report,1,"]) + "\n")
    assert "has the name of all raters of the role self" in refusal(path)
