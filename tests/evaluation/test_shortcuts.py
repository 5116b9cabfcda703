"""The shortcut audit: closed forms with values derived by hand, what is planted is found, and chance is chance."""

from __future__ import annotations

import hashlib
import math
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.text import words
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import COLUMNS, file_of, files_of
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.evaluation.inversion.rows import ContrastAudit, Shortcut, ShortcutAudit
from empathy_eval.evaluation.shortcuts import texts as shortcut_texts
from empathy_eval.evaluation.shortcuts.linear_classifiers import (
    FORMS,
    UNIT,
    CharacterFeatures,
    FeatureClassifier,
    LengthFeatures,
    Lexicon,
    PairSides,
    WordFeatures,
    WordPairFeatures,
)
from empathy_eval.evaluation.shortcuts.shortcuts import AUDITED, assign_folds, audit
from empathy_eval.evaluation.shortcuts.shortcuts import audit_texts as audit_held
from empathy_eval.evaluation.shortcuts.texts import AuditInput
from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.protocol import Pairs
from empathy_eval.metrics.scoring import statistics_of
from empathy_eval.statistics.estimate import Estimate
from scipy.sparse import vstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

SHORTCUTS = ["words alone", "words and pairs of words", "characters", "length and punctuation", "VADER", "echo", "length", "voice"]
# What docs/shortcuts.md says of the curated seeds: words alone, characters, length; the shortcut line.
SAID = {
    RAW: (0.673, 0.712, 0.529, 0.712),
    STANCE_NEAR: (0.712, 0.740, 0.587, 0.740),
    STANCE_FAR: (0.642, 0.805, 0.401, 0.805),
    "reference - apathetic": (0.791, 0.841, 0.423, 0.841),
    STANCE: (0.677, 0.773, 0.494, 0.773),
}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def audited(seeds: Path) -> ShortcutAudit:
    return audit(seeds)


def changed(folder: Path, copy: Path, change: Callable[[Row], Row | None]) -> Path:
    """A copy of a release with other pairs; a row that becomes None is left out."""
    shutil.copytree(folder, copy)
    for config in ("pairs", "controls"):
        for path in files_of(copy, config):
            rows = [row for row in map(change, pq.read_table(path).to_pylist()) if row]
            pq.write_table(pa.Table.from_pylist(rows, COLUMNS[config]), path)
    return copy


def named(found: ContrastAudit, name: str) -> Shortcut:
    return next(one for one in found.shortcuts if one.name == name)


def value(found: ContrastAudit, name: str) -> float:
    one = named(found, name).accuracy
    assert one is not None
    return one.number


def sides(lexicon: Lexicon, pairs: list[tuple[str, str]], folds: list[int]) -> PairSides:
    kind, cold = (lexicon.read(texts) for texts in zip(*pairs, strict=True))
    return PairSides(kind, cold, np.array(folds, dtype=np.int64))


SIX = [("Oh dear friend", "Noted, friend."), ("Oh, dear!", "noted. Noted"), ("oh", "Dear")]


def test_the_closed_forms_have_the_values_derived_by_hand() -> None:
    lexicon = Lexicon()
    learned = FeatureClassifier(WordFeatures(lexicon), tuple(FORMS)).learn(sides(lexicon, SIX, [0, 1, 2]))

    def found(form: str) -> dict[str, float]:
        return dict(zip(lexicon.words, (FORMS[form].weights(learned.whole) / UNIT).tolist(), strict=True))

    # Six words in kind texts and five in cold ones, four different ones; every count is one higher.
    odds = {
        "oh": Fraction(3 + 1, 6 + 4) / Fraction(0 + 1, 5 + 4),
        "dear": Fraction(2 + 1, 6 + 4) / Fraction(1 + 1, 5 + 4),
        "friend": Fraction(1 + 1, 6 + 4) / Fraction(1 + 1, 5 + 4),
        "noted": Fraction(0 + 1, 6 + 4) / Fraction(3 + 1, 5 + 4),
    }
    assert found("log-odds") == pytest.approx({word: math.log(one) for word, one in odds.items()}, abs=1e-6)
    # Differences by pair: oh 1, 1, 1; dear 1, 1, -1; friend 0, 0, 0; noted -1, -2, 0.
    mean = {"oh": Fraction(3, 3), "dear": Fraction(1, 3), "friend": Fraction(0), "noted": Fraction(-3, 3)}
    variance = {"oh": Fraction(0), "dear": Fraction(3, 3) - Fraction(1, 9), "friend": Fraction(0), "noted": Fraction(5, 3) - 1}
    spread = {word: math.sqrt(one) + 0.01 for word, one in variance.items()}
    assert found("mean-over-spread") == pytest.approx({word: float(one) / spread[word] for word, one in mean.items()}, abs=1e-6)
    over = {word: float(mean[word] / (variance[word] + Fraction(1, 20))) for word in mean}
    assert found("mean-over-variance") == pytest.approx(over, abs=1e-6)
    assert found("standardised") == pytest.approx({word: float(one) / spread[word] ** 2 for word, one in mean.items()}, abs=1e-6)


def test_a_pair_is_scored_by_what_the_other_folds_teach_and_an_unknown_word_weighs_nothing() -> None:
    lexicon = Lexicon()
    learned = FeatureClassifier(WordFeatures(lexicon), ("log-odds",)).learn(
        sides(lexicon, [*SIX[:2], ("oh never-seen", "dear friend")], [0, 0, 1])
    )
    # Pairs 1 and 2 have five words in kind texts and four in cold ones, four different ones.
    oh = dear = Fraction(2 + 1, 5 + 4) / Fraction(0 + 1, 4 + 4)
    friend = Fraction(1 + 1, 5 + 4) / Fraction(1 + 1, 4 + 4)
    assert learned.margins[2] / UNIT == pytest.approx(math.log(oh) - math.log(dear) - math.log(friend), abs=3e-6)


def test_the_form_that_is_more_often_right_is_taken_and_the_first_of_equals() -> None:
    lexicon = Lexicon()
    words_alone = FeatureClassifier(WordFeatures(lexicon), ("log-odds", "mean-over-spread", "mean-over-variance"))
    assert words_alone.learn(sides(lexicon, [("oh", "noted")] * 4, [0, 1, 0, 1])).form == "log-odds"
    # By counts "rare" is the most telling word, but whether a pair has it says little of its stance.
    lexicon = Lexicon()
    pairs = [("steady " + "rare " * 9 * (one == 0), "dull " + "rare " * 5 * (one in (3, 5))) for one in range(8)]
    both = {
        form: FeatureClassifier(WordFeatures(lexicon), (form,)).learn(sides(lexicon, pairs, [0, 1] * 4)).won.sum()
        for form in words_alone.forms
    }
    best = FeatureClassifier(WordFeatures(lexicon), words_alone.forms).learn(sides(lexicon, pairs, [0, 1] * 4))
    assert both["mean-over-spread"] > both["log-odds"] and best.form == "mean-over-spread"


def test_folds_never_part_a_dialogue_are_of_one_size_and_hang_on_the_seed() -> None:
    dialogues = [f"{one // 3:03d}-seed" for one in range(60)]
    found = assign_folds(dialogues, 2026)
    assert all(len(set(found[start : start + 3])) == 1 for start in range(0, 60, 3))
    assert np.bincount(found).tolist() == [12] * 5
    assert found.tolist() != assign_folds(dialogues, 2027).tolist()
    assert sorted(assign_folds(["a", "b", "c", "a"], 1).tolist()[:3]) == [0, 1, 2]


def test_the_figures_of_the_document_are_those_of_the_curated_seeds(audited: ShortcutAudit) -> None:
    for one in audited.contrasts:
        line = one.line
        assert line is not None and line.accuracy is not None
        found = (*(value(one, name) for name in ("words alone", "characters", "length")), line.accuracy.value)
        assert found == pytest.approx(SAID[one.contrast], abs=0.005), one.contrast
        assert [row.name for row in one.shortcuts] == SHORTCUTS and {row.pairs for row in one.shortcuts} == {one.pairs}
        assert line.accuracy.number == max(row.accuracy.number for row in one.shortcuts if row.accuracy)
        for row in one.shortcuts:
            assert row.accuracy and row.accuracy.low is not None and row.accuracy.low <= row.accuracy.number <= (row.accuracy.high or 0)
            assert row.trained == ("folds:5|by:dialogue" in row.signature) and "resamples:200" in row.signature
        if one.contrast == STANCE:
            assert not any((one.telltale_kind, one.telltale_cold, one.easiest, one.hardest))
            continue
        easiest, hardest = ([pair.margin for pair in pairs] for pairs in (one.easiest, one.hardest))
        assert easiest == sorted(easiest, reverse=True) and hardest == sorted(hardest) and hardest[0] < 0 and hardest[-1] < easiest[-1]
        assert len(one.telltale_kind) == len(one.telltale_cold) == 20 and one.telltale_kind[-1].weight > 0 > one.telltale_cold[-1].weight
    assert [(one.pairs, one.dialogues, one.folds) for one in audited.contrasts] == [
        (465, 60, 5), (416, 60, 5), (416, 60, 5), (465, 60, 5), (416, 60, 5),
    ]  # fmt: skip


def test_no_list_of_words_solves_the_curated_seeds(audited: ShortcutAudit) -> None:
    most = {STANCE_NEAR: 0.76, STANCE_FAR: 0.76, "reference - apathetic": 0.82}
    for one in audited.contrasts:
        if one.contrast in most:
            assert value(one, "words alone") <= most[one.contrast]
            # These were not looked at while the seeds were written.
            assert max(value(one, name) for name in ("words and pairs of words", "characters")) <= most[one.contrast] + 0.05
            assert abs(value(one, "length") - 0.5) <= 0.1, "neither the longer nor the shorter is the kind one"


def logistic(counts: Any, stance: Any, twice: Any, inverse_penalty: float, *, plain: bool) -> float:
    """How often a logistic regression over differences of pairs is right, ties half; each pair by a model of the other folds.

    Of plain counts, or of counts weighted by how rare a word is.
    """
    folds = np.split(twice, 2)[0]
    won = np.zeros(len(folds))
    for fold in range(5):
        weighted = counts if plain else TfidfTransformer(sublinear_tf=True).fit(counts[twice != fold]).transform(counts)
        difference = weighted[stance == 1] - weighted[stance == 0]
        # A pair either way round: without a second class there is nothing to fit, and without an intercept both say the same.
        taught = difference[folds != fold]
        labels = np.repeat([1, 0], taught.shape[0])
        model = LogisticRegression(C=inverse_penalty, fit_intercept=False, max_iter=2000).fit(vstack([taught, -taught]), labels)
        won[folds == fold] = (np.sign(model.decision_function(difference[folds == fold])) + 1) / 2
    return float(won.mean())


@pytest.mark.parametrize("place", range(len(AUDITED)))
def test_words_alone_is_within_three_points_of_logistic_regression_on_the_same_folds(
    place: int, seeds: Path, audited: ShortcutAudit
) -> None:
    name, config, kind, cold = AUDITED[place]
    corpus = read_corpus(seeds, config, PAIR_VARIANTS if config == "pairs" else CELLS)
    texts = corpus.variants | {"reference": corpus.references}
    counts = CountVectorizer(analyzer=words).fit_transform([*texts[kind], *texts[cold]])
    stance, twice = np.repeat([1, 0], len(corpus)), np.tile(assign_folds(corpus.dialogues, 2026), 2)
    # Its penalty is the best for it on the very pairs that it is measured on, as the form of words alone is.
    best = max(logistic(counts, stance, twice, 10.0**power, plain=plain) for power in range(-2, 2) for plain in (True, False))
    found = audited.contrasts[place]
    assert found.contrast == name and value(found, "words alone") == pytest.approx(best, abs=0.03)


def test_at_equal_closeness_a_shortcut_is_right_as_often_as_near_and_far_together(audited: ShortcutAudit) -> None:
    by_name = {one.contrast: one for one in audited.contrasts}
    stance, near, far = (by_name[name] for name in (STANCE, STANCE_NEAR, STANCE_FAR))
    for name in SHORTCUTS:
        assert value(stance, name) == pytest.approx((value(near, name) + value(far, name)) / 2, abs=2e-6)
        one = named(stance, name).accuracy
        assert one and one.low is not None and one.high is not None and one.low <= one.number <= one.high
        assert named(stance, name).signature.startswith("mean:near,far|")
    assert (stance.kind, stance.cold) == ("near_empathetic and empathetic", "apathetic and far_apathetic")
    assert len({named(one, "echo").signature.partition("share:")[2] for one in (stance, near, far)}) == 1


def test_difficulty_is_the_margin_of_words_alone_on_the_released_contrast(audited: ShortcutAudit, seeds: Path) -> None:
    raw = audited.contrasts[0]
    assert list(audited.word_margins) == read_corpus(seeds, "pairs", PAIR_VARIANTS).pair_ids
    assert [(one.pair_id, one.margin) for one in raw.hardest] == sorted(audited.word_margins.items(), key=lambda one: one[1])[:5]
    right = sum(one > 0 for one in audited.word_margins.values()) / len(audited.word_margins)
    assert right == pytest.approx(value(raw, "words alone"), abs=0.003)
    assert all(one == round(one, 6) for one in audited.word_margins.values())


@pytest.mark.e2e
def test_scores_that_are_known_are_not_made_again(seeds: Path, audited: ShortcutAudit, monkeypatch: pytest.MonkeyPatch) -> None:
    held = AuditInput.of(seeds)
    given = [(held.pairs, PAIR_VARIANTS), (held.controls, CONTROLS)]
    known = {name: one for corpus, some in given for name, one in statistics_of([Vader()], corpus.pairs(some))["VADER"].rows.items()}
    scored = list[str]()

    def counting(metrics: Any, pairs: Pairs, scoring: Any) -> Any:
        scored.extend(pairs.variants)
        return statistics_of(metrics, pairs, scoring)

    monkeypatch.setattr(shortcut_texts, "statistics_of", counting)
    again = audit_held(replace(held, known={"VADER": known}), ResamplingSettings(200, 0, 2026))
    assert again == replace(audited, provenance=None) and scored == ["reference", "apathetic", "empathetic"]


@pytest.mark.e2e
def test_a_planted_word_is_named_first_and_gives_everything_away(seeds: Path, tmp_path: Path) -> None:
    def plant(row: Row) -> Row:
        return row | {name: f"{row[name]} Zzyx." for name in ("apathetic", "far_apathetic") if name in row}

    for one in audit(changed(seeds, tmp_path / "r", plant)).contrasts:
        assert one.line and one.line.accuracy == Estimate(1.0, 1.0, 1.0)
        if one.contrast == STANCE:
            continue
        assert one.telltale_cold[0].word == "zzyx" and (one.telltale_cold[0].kind, one.telltale_cold[0].cold) == (0, one.pairs)
        assert one.telltale_cold[0].weight < 0 < one.telltale_kind[0].weight
        assert value(one, "words alone") == 1.0 and one.hardest[0].margin > 0


def test_where_stances_are_drawn_at_random_words_alone_is_right_by_chance(seeds: Path) -> None:
    corpus, lexicon = read_corpus(seeds, "pairs", PAIR_VARIANTS), Lexicon()
    texts = list(zip(*(corpus.variants[name] for name in PAIR_VARIANTS), strict=True))
    learner = FeatureClassifier(WordFeatures(lexicon), ("log-odds", "mean-over-spread"))
    folds, found = assign_folds(corpus.dialogues, 2026).tolist(), list[Estimate]()
    for seed in range(20):
        rng = random.Random(seed)
        drawn = [(one, other) if rng.random() < 0.5 else (other, one) for one, other in texts]
        found += accuracies([learner.learn(sides(lexicon, drawn, folds)).won], corpus.clusters, ResamplingSettings(200, 0, 2026))
    assert sum(one.number for one in found) / len(found) == pytest.approx(0.5, abs=0.02)
    assert sum((one.low or 0) <= 0.5 <= (one.high or 0) for one in found) >= 17


@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_from_the_same_words_is_separated_by_chance(seed: int) -> None:
    rng, lexicon = random.Random(seed), Lexicon()
    known = [f"w{one}" for one in range(200)]

    def text() -> str:
        return " ".join(rng.choices(known, k=rng.randint(5, 30))) + rng.choice(".?!")

    some = sides(lexicon, [(text(), text()) for _ in range(400)], [one % 5 for one in range(400)])
    for learner in (
        FeatureClassifier(WordFeatures(lexicon), ("log-odds", "mean-over-spread")),
        FeatureClassifier(WordPairFeatures(lexicon), ("log-odds",)),
        FeatureClassifier(CharacterFeatures(), ("log-odds",)),
        FeatureClassifier(LengthFeatures(), ("standardised",)),
    ):
        assert abs(learner.learn(some).won.mean() - 0.5) < 3.5 * 0.5 / math.sqrt(400), learner.features.signature


def test_hashed_runs_stay_within_their_text_and_are_the_same_in_any_company() -> None:
    lexicon = Lexicon()
    one, other = lexicon.read(["Oh dear!"]), lexicon.read(["I hear you, I hear you"])
    for features in (WordPairFeatures(lexicon), CharacterFeatures()):
        alone, both = features.bag(other), features.bag(lexicon.read([*one.texts, *other.texts, ""]))
        assert sorted(both.places[both.rows == 1]) == sorted(alone.places) and 2 not in both.rows
    # Six words and five pairs, of which three words and two pairs come twice.
    assert sorted(np.unique(WordPairFeatures(lexicon).bag(other).places, return_counts=True)[1]) == [1, 2, 2, 2, 2, 2]
    assert len(CharacterFeatures().bag(one).places) == 6 + 5 + 4


def test_marks_are_counted_in_all_their_forms() -> None:
    counts = LengthFeatures().bag(Lexicon().read(["“I’m” 'so', so; sad… — “why”?: no. No!"])).counts
    assert counts.tolist() == [7, 38, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4]


def test_echo_is_the_share_of_words_that_the_seeker_said_before(light: Path, tmp_path: Path) -> None:
    said = [{"role": "seeker", "text": "My dog died."}, {"role": "helper", "text": "Oh no."}]

    def echoing(row: Row) -> Row:
        return row | {"context": said, "empathetic": "Your dog DIED", "apathetic": "Oh no, dog"}

    found = audit(changed(light, tmp_path / "r", echoing)).contrasts[0]
    assert value(found, "echo") == 1.0 and value(found, "length") == 0.5
    empty = changed(light, tmp_path / "e", lambda row: row | {"context": [{"role": "seeker", "text": None}]})
    with pytest.raises(InputError, match='a turn of the column "context" of pairs is empty'):
        audit(empty)


def test_few_dialogues_are_fewer_folds_and_one_teaches_nothing(light: Path, tmp_path: Path) -> None:
    assert {one.folds for one in audit(light).contrasts} == {3}
    first = pq.read_table(file_of(light, "pairs", "train"))["dialogue_id"].to_pylist()[0]
    alone = changed(light, tmp_path / "one", lambda row: row if row["dialogue_id"] == first else None)
    for found in audit(alone).contrasts:
        told = {row.name: row.why for row in found.shortcuts}
        assert told["words alone"] == "all pairs are of one dialogue: there is no other to learn from" and told["VADER"] is None
        length = named(found, "length").accuracy
        assert length is not None and length.low is None and not found.telltale_kind and not found.easiest
        assert found.line is not None and not found.line.trained
    scenarios = audit(light, by="scenario")
    assert "by:scenario" in scenarios.contrasts[0].shortcuts[0].signature


def test_contrasts_without_pairs_have_empty_rows(light: Path, tmp_path: Path) -> None:
    found = audit(changed(light, tmp_path / "none", lambda row: row if "near_empathetic" not in row else None))
    near = found.contrasts[1]
    assert [row.name for row in near.shortcuts] == SHORTCUTS[:-1] and near.line is None and near.to_json()["line"] is None
    assert {(row.pairs, row.accuracy, row.why) for row in near.shortcuts} == {(0, None, "there are no pairs")}
    assert found.contrasts[0].line is not None
    assert len(audit(changed(light, tmp_path / "nothing", lambda row: None)).contrasts) == 5


def test_by_has_two_ways_and_the_frame_has_a_row_a_shortcut(light: Path) -> None:
    with pytest.raises(InputError, match='"turn" is not known'):
        audit(light, by="turn")
    frame = audit(light).to_pandas()
    assert len(frame) == 5 * len(SHORTCUTS) and frame["accuracy"].dtype == "float64" and frame["trained"].dtype == "bool"
    assert set(frame["contrast"]) == {STANCE, *(name for name, *_ in AUDITED)}


def test_an_audit_changes_nothing_in_the_folder(light: Path) -> None:
    def state() -> dict[str, str]:
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(light.rglob("*")) if path.is_file()}

    before = state()
    audit(light)
    assert state() == before
