"""Records as they are not meant to be: JSON with a few parts missing, foreign or out of range."""

import copy

FOREIGN = (
    None, True, "", "x", "Infinity", "\ud800", "a\nb", 0, -1, 3, 2.5, -0.0, 1e-320, 1e308, -1e308,
    10**400, float("nan"), float("inf"), [], [1], ["x", None], {}, {"a": 1}, [[[[[]]]]],
)  # fmt: skip


def damaged(record, *, rng):
    """A copy of a record with one to three of its parts left out, doubled, renamed or replaced."""
    holder = {"record": copy.deepcopy(record)}
    for _ in range(rng.integers(1, 4)):
        where, key = _somewhere(holder, "record", rng)
        match rng.integers(5):
            case 0 if where is not holder:
                del where[key]
            case 1 if isinstance(where, list):
                where.append(copy.deepcopy(where[key]))
            case 1 if where is not holder:
                where[f"{key}_"] = where.pop(key)
            case _:
                where[key] = copy.deepcopy(FOREIGN[rng.integers(len(FOREIGN))])
    return holder["record"]


def _somewhere(where, key, rng):
    """A container in a record and one of its keys, as often near the top as deep inside."""
    value = where[key]
    keys = (
        [*value] if isinstance(value, dict) else [*range(len(value))] if type(value) is list else []
    )
    if not keys or rng.random() < 0.1:
        return where, key
    return _somewhere(value, keys[rng.integers(len(keys))], rng)
