"""A disk without space, for tests of what is written."""

import contextlib
import resource


@contextlib.contextmanager
def full_disk(n_bytes):
    """Writing more than `n_bytes` to a file fails, for root too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
