"""Settings that all tests share."""

from hypothesis import settings

# The first call of a kernel compiles it; machines are noisy: no test is timed. Derandomised, so that
# a run on one machine says what it says on another.
settings.register_profile("polyurn", deadline=None, derandomize=True)
settings.load_profile("polyurn")
