"""The exceptions that polyurn raises on purpose.

PolyurnError
├── InputError            (also a ValueError)   what the caller passed cannot be used
│   ├── CountsError                             histograms that are not histograms
│   ├── SizeError                               a client larger than the declared max_size
│   ├── PartitionError                          proxy data that cannot give clients what they ask for
│   └── ParameterError                          parameters or settings out of range
├── FitError              (also a RuntimeError) the fit cannot go on
│   ├── EmptyComponentError                     a component received no client
│   └── ZeroLikelihoodError                     a client is impossible under the current parameters
├── TrainingError         (also a RuntimeError) a training run or a sweep cannot go on
├── FileError             (also an OSError)     a file is unreadable, damaged or too new
└── MissingDependencyError (also an ImportError) an optional package is not installed

Nothing is caught or logged here.
"""


class PolyurnError(Exception):
    """Base of every exception that polyurn raises on purpose."""


class InputError(PolyurnError, ValueError):
    """What the caller passed cannot be used."""


class CountsError(InputError):
    """Counts that are negative, fractional, missing, too large, empty or of the wrong shape."""


class SizeError(InputError):
    """A client holds more points than the declared `max_size`."""


class PartitionError(InputError):
    """Proxy data that cannot give clients what they ask for: labels out of range, too few points."""


class ParameterError(InputError):
    """Parameters of a distribution, or settings of a fit, are out of range."""


class FitError(PolyurnError, RuntimeError):
    """The fit cannot go on."""


class EmptyComponentError(FitError):
    """A component received no client, so that its parameters are not defined."""


class ZeroLikelihoodError(FitError):
    """A client of the cohort has probability zero under every component."""


class TrainingError(PolyurnError, RuntimeError):
    """A training run or a sweep cannot go on."""


class FileError(PolyurnError, OSError):
    """A file cannot be read or written, is damaged, or was written by a later version."""


class MissingDependencyError(PolyurnError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'polyurn[{extra}]'")
