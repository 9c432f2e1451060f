"""Jobs of a federation, for the tests: small ones, each with what a test wants otherwise."""

from polyurn.federation.jobs import MixtureJob, StyleJob
from style_cases import whole_space


def job_of(folder, **settings):
    """A secure fit of two components in a few rounds."""
    usual = {
        "federation": str(folder),
        "command": None,
        "selects": False,
        "components": (2,),
        "max_size": 20,
        "max_rounds": 4,
    }
    return MixtureJob(**{**usual, **settings})


def style_job_of(folder, **settings):
    """A secure question about style, of ten labels and features as they are."""
    usual = {"federation": str(folder), "command": None, "space": whole_space(2)}
    return StyleJob(**{**usual, **settings})
