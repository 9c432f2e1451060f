"""A node's policy as a TOML file, under the names of `NodePolicy`.

For instance:

    secure_only = true
    largest_max_size = 500
    most_numbers = 50000
    narrowest_part = 0.001
    fewest = 5
    majority = 0.5
    rounds_per_day = 100
    least_noise = 0.0
    most_epsilon = 0.0
    delta = 1e-6

What a name means is `client/node_policy.py`.
"""

import os
import tomllib
from dataclasses import fields

from polyurn.client.node_policy import NodePolicy
from polyurn.errors import FileError
from polyurn.storage.places import read_regular
from polyurn.typed.records import read_record, shown


def read_policy(path: str | os.PathLike[str]) -> NodePolicy:
    """The policy in a file; what it does not say is as strict as `NodePolicy` has it.

    Raises
    ------
    FileError
        It cannot be read, is no TOML, or has a name or a value that no policy has: a limit that is
        misspelt would not be one.
    """
    try:
        record = tomllib.loads(read_regular(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise FileError(f"{path} is no policy: expected TOML, got {text}") from error
    names = [field.name for field in fields(NodePolicy)]
    for name in record:
        if name not in names:
            raise FileError(f"{path}: expected {', '.join(names)}, got {shown(name)}")
    try:
        return read_record(NodePolicy, record)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
