from fuzz.defective import judge
from fuzz.pool import run_all


def test_a_worker_that_dies_or_hangs_is_a_defect_of_its_case_and_the_others_go_on():
    names = ["fine/0", "deadly/0", "mistaken/0", "fine/1", "endless/0", "fine/2"]
    done = dict(run_all(names, judge, n_workers=2, patience=2.0))
    found = {name: [defect.what for defect in outcome.defects] for name, outcome in done.items()}
    assert found == {
        "fine/0": [], "fine/1": [], "fine/2": [], "deadly/0": ["death"], "mistaken/0": ["harness"],
        "endless/0": ["slow"],
    }  # fmt: skip
