"""Results as pandas data frames, for who has pandas."""

from collections.abc import Mapping, Sequence
from typing import Any

from polyurn.errors import MissingDependencyError


def data_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str] | None = None) -> Any:
    """A data frame of these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError("pandas", "pandas", "data frames of results") from error
    return pd.DataFrame(dict(columns), index)
