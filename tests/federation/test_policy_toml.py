"""A policy in a file."""

import pytest

from polyurn.errors import FileError
from polyurn.federation.policy import NodePolicy, read_policy


def test_a_file_has_the_names_of_the_policy(tmp_path):
    (tmp_path / "policy.toml").write_text(
        "questions = ['fit']\nsecure_only = false\nmost_numbers = 10\nnarrowest_part = 0.5\n"
        "fewest = 5\nmajority = 0.6\nrounds_per_day = 7\n"
    )
    expected = NodePolicy(
        questions=("fit",), secure_only=False, most_numbers=10, narrowest_part=0.5, fewest=5,
        majority=0.6, rounds_per_day=7,
    )  # fmt: skip
    assert read_policy(tmp_path / "policy.toml") == expected


def test_what_a_file_does_not_say_is_as_strict_as_ever(tmp_path):
    (tmp_path / "policy.toml").write_text("# nothing\n")
    assert read_policy(tmp_path / "policy.toml") == NodePolicy()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("secure_olny = true", "expected questions, secure_only, .* got 'secure_olny'"),
        ("secure_only = 1", "secure_only: expected true or false, got 1"),
        ("fewest = 2.5", "fewest: expected an integer of at least 2, got 2.5"),
        ("fewest = 1", "fewest: expected an integer of at least 2, got 1"),
        ("majority = nan", "majority: expected a number"),
        ("majority = inf", "majority: expected a number"),
        ("fewest = ", "expected TOML"),
        ("[node]\nfewest = 3", "got 'node'"),
        (b"\xff", "expected TOML"),
    ],
)
def test_a_file_that_is_no_policy_is_one_line_with_its_name(tmp_path, text, why):
    place = tmp_path / "policy.toml"
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match=why) as error:
        read_policy(place)
    assert str(place) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_that_is_not_there_is_an_error_and_no_default(tmp_path):
    with pytest.raises(FileError, match="cannot read"):
        read_policy(tmp_path / "policy.toml")
