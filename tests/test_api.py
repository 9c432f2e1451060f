"""Everything public, called with one argument that is wrong: our error in one line, or it works."""

import contextlib
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import polyurn
from api_calls import VALID_CALLS, clients, mdm, parts
from polyurn.errors import PolyurnError

FOREIGN = {
    "None": lambda: None, "True": lambda: True, "''": lambda: "", "'x'": lambda: "x",
    "'a\\0b'": lambda: "a\0b", "-1": lambda: -1, "0": lambda: 0, "2.5": lambda: 2.5,
    "nan": lambda: float("nan"), "inf": lambda: float("inf"), "10**12": lambda: 10**12,
    "10**20": lambda: 10**20, "1j": lambda: 1j, "b'x'": lambda: b"x", "[]": list, "{}": dict,
    "{1}": lambda: {1}, "[None]": lambda: [None], "['x']": lambda: ["x"],
    "[[1], [1, 2]]": lambda: [[1], [1, 2]], "{'a': object}": lambda: {"a": object()},
    "{None: 1}": lambda: {None: 1}, "object": object, "function": lambda: lambda *_, **__: None,
    "generator": lambda: (i for i in range(3)), "0-d array": lambda: np.array(3),
    "integers": lambda: np.array([1, 2, 3]), "negative": lambda: np.array([[-1, -2, 3]]),
    "fractions": lambda: np.array([[0.5, np.nan]]), "texts": lambda: np.array(["a", "b"]),
    "objects": lambda: np.array([None, {}], dtype=object), "3-d array": lambda: np.zeros((2, 2, 2)),
    "dates": lambda: np.array(["2020-01-01"], dtype="M8[D]"), "huge": lambda: [10**30, 2],
    "csr_array": lambda: sparse.csr_array([[1, 0, 2], [0, 1, 0]]),
    "data frame": lambda: pd.DataFrame({"a": [1, 2]}), "MDM": mdm, "aggregator": clients,
    "Partition": parts,
}  # fmt: skip

# A wrong value that is right here, and takes seconds.
SLOW = {(name, "n_jobs", n) for name in ("sweep", "sweep_trainer") for n in ("-1", "None")}
# Each page of a report that is made takes a second, and each private choice of K more than that.
_SOME = ("None", "True", "'x'", "2.5", "[None]", "{'a': object}", "objects", "MDM")
FEW = dict.fromkeys(("report_on", "fit_private", "fit_style", "pack_shards"), _SOME)


def test_every_public_name_has_a_valid_call_with_all_its_arguments():
    protocols = {"Population"}
    assert {name.split(".")[0] for name in VALID_CALLS} >= set(polyurn.__all__) - protocols
    for name, make in VALID_CALLS.items():
        function, given = make()
        assert set(given) <= set(signature(function).parameters), name
        function(**given)


@pytest.mark.parametrize("name", VALID_CALLS)
def test_a_wrong_argument_is_an_error_of_ours_in_one_line(name, tmp_path, monkeypatch):
    """Of the report: `pu.fit(counts)`, `pu.save(None)`, `pu.sweep(grid=3)` and 140 others."""
    monkeypatch.chdir(tmp_path)
    for argument in VALID_CALLS[name]()[1]:
        for what in FEW.get(name, FOREIGN):
            if (name, argument, what) not in SLOW:
                _call_with(name, argument, what)


def _call_with(name, argument, what):
    function, given = VALID_CALLS[name]()
    given[argument] = FOREIGN[what]()
    call = f"{name}({argument}={what})"
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        try:
            function(**given)
        except PolyurnError as error:
            said = str(error)
            assert said, call
            assert "\n" not in said, f"{call}: {said}"
            assert len(said) < 500, f"{call}: {said}"
