"""The modelled category of a sweep's points: known, unknown and missing ones."""

import numpy as np
import pytest

from polyurn.client.crossing import crossed
from polyurn.errors import CountsError, ParameterError
from polyurn.sweeps.inputs import (
    category_codes,
    lacking_categories,
    modelled_names,
)

ROUTES = ("EWR × ATL", "JFK × ATL", "JFK × DEN")


def test_few_unknown_combinations_come_after_the_known_ones_and_are_said():
    routes = np.array(["JFK × DEN", "EWR × ATL", "LGA × ATL"])
    codes, _, remarks = category_codes(routes, "route", ROUTES)
    assert codes.tolist() == [2, 0, 3]
    assert remarks == [
        "1 of 3 points have categories that the MDM does not have: it never draws them"
    ]


@pytest.mark.parametrize("names", [("dest", "origin"), ("dest",)])
def test_columns_in_another_order_than_the_fitted_ones_are_refused_by_name(names):
    table = {"origin": np.array(["EWR", "JFK"]), "dest": np.array(["ATL", "DEN"])}
    columns = [table[name] for name in names]
    values = columns[0] if len(columns) == 1 else crossed(*columns)
    with pytest.raises(ParameterError, match="of 0 of 2 points only, 'route'"):
        category_codes(values, "route", ROUTES)


def test_columns_are_found_as_on_the_command_line():
    assert modelled_names(["origin", "dest"], "Origin, Dest") == ("origin", "dest")
    for wrong, said in (("dest,", "columns to cross"), ("dest,dest", "'dest' twice")):
        with pytest.raises(CountsError, match=said):
            modelled_names(["origin", "dest"], wrong)


def test_what_the_data_have_none_of_is_said_by_name_and_most_of_it_is_an_error():
    asked = np.array([90.0, 9.0, 1.0])
    said = lacking_categories(asked, np.array([True, True, False]), ROUTES)
    assert said.startswith("1.00% of the points that they ask for are left out")
    assert "'JFK × DEN'" in said
    assert lacking_categories(asked, np.array([True, True, True]), ROUTES) == ""
    with pytest.raises(ParameterError, match=r"90% of what the clients hold .* 'EWR × ATL'"):
        lacking_categories(asked, np.array([False, True, True]), ROUTES)
