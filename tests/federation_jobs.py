"""Jobs of a federation, for the tests: small ones, each with what a test wants otherwise."""

from polyurn.storage.federation_job import Job


def job_of(folder, **settings):
    """A secure fit of two components in a few rounds."""
    usual = {
        "federation": str(folder),
        "command": None,
        "selects": False,
        "components": (2,),
        "max_size": 20,
        "rounds": 4,
        "patience": 3,
        "max_upload": 50_000,
        "seed": 0,
        "tol": 1e-3,
        "held_out": 0.2,
        "cohort": None,
        "sizes": "binned",
        "secure": True,
        "min_nodes": 3,
        "retries": 2,
        "min_fraction": 0.7,
        "timeout": 60.0,
        "settling": 60.0,
        "dropout": 0.3,
        "checkpoint": None,
    }
    return Job(**{**usual, **settings})
