"""The 2 x 2: which cells there are, and what is weighed against what."""

from empathy_eval.design.contrasts import CELLS, CONTROLS, FAR, NEAR, PAIR_VARIANTS, PAIRS, STANCE_OF, TWO_BY_TWO


def test_two_variants_and_two_controls_fill_a_cell_of_each_closeness_and_stance() -> None:
    assert sorted(CELLS) == sorted((*PAIR_VARIANTS, *CONTROLS)) == sorted(STANCE_OF) == sorted((*NEAR, *FAR))
    assert {(name in NEAR, STANCE_OF[name]) for name in CELLS} == {(near, stance) for near in (True, False) for stance in PAIR_VARIANTS}
    assert [name in NEAR for name in PAIR_VARIANTS] == [True, False]


def test_the_contrasts_weigh_the_cells_as_their_names_say() -> None:
    weights = {one.name: [one.weights.get(name, 0) for name in ("near_empathetic", "apathetic", "empathetic", "far_apathetic")]
               for one in (*PAIRS, *TWO_BY_TWO)}  # fmt: skip
    assert weights == {
        "empathetic - apathetic": [0, -1, 1, 0],
        "stance": [0.5, -0.5, 0.5, -0.5],
        "stance, near": [1, -1, 0, 0],
        "stance, far": [0, 0, 1, -1],
        "closeness": [0.5, 0.5, -0.5, -0.5],
        "interaction": [1, -1, -1, 1],
    }


def test_the_exchange_of_variants_turns_the_sign_of_its_contrast() -> None:
    for one in (*PAIRS, *TWO_BY_TWO):
        assert one.mirror.keys() == one.weights.keys()
        assert all(one.weights[other] == -one.weights[name] and one.mirror[other] == name for name, other in one.mirror.items())
