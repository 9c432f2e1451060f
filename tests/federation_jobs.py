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
    }
    return Job(**{**usual, **settings})
