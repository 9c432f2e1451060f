"""LEAF's JSON, one client at a time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.leaf_json import user_data

WHOLE = json.dumps(
    {"users": ["a", "b"], "user_data": {"a": {"x": [[0.5]], "y": [1]}, "b": {"y": [2], "x": [[1]]}}}
)


@given(st.integers(0, len(WHOLE) - 1))
def test_json_that_was_cut_off_is_refused(end):
    with pytest.raises(ValueError):
        user_data(WHOLE[:end])


@given(
    st.dictionaries(st.text(max_size=5), st.lists(st.integers(0, 99), min_size=1), max_size=4),
    st.sampled_from([None, 0, 1, "\t"]),
    st.booleans(),
)
def test_json_is_read_however_it_is_spaced(clients, indent, last):
    data = {name: {"x": [[y / 4] for y in ys], "y": ys} for name, ys in clients.items()}
    record = {"user_data": data, "users": list(data)} if last else {"users": [], "user_data": data}
    read = user_data(f" \n{json.dumps(record, indent=indent)}\r\n")
    assert [(name, x.tolist(), y.tolist()) for name, x, y in read] == [
        (name, d["x"], d["y"]) for name, d in data.items()
    ]
