"""Codes of label and style: points encoded by a codebook, and mixtures over its codes.

An encoded table has the clients, if there are any, the labels, and a column of codes. What a code is, is
`model/codebooks.py`'s; how codes are drawn given label totals, `model/given_labels.py`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import plain_column
from polyurn.client.tables import known_codes
from polyurn.errors import CountsError, FileError, ParameterError, RowError, ShortfallError
from polyurn.model.given_labels import GivenLabels
from polyurn.model.mdm import MDM
from polyurn.model.population import Population
from polyurn.sources.clients import Say, naming
from polyurn.sources.points import PointFile
from polyurn.storage.codebook_json import SavedCodebook, load_codebook
from polyurn.storage.mdm_json import SavedMDM
from polyurn.storage.table_files import table_with_names

CODE = "code"  # the column of codes


def encode_file(
    book: Path,
    path: Path,
    *,
    label: str | None,
    client: str | None,
    features: Sequence[str] | None,
    say: Say,
) -> tuple[Any, NDArray[np.bool_]]:
    """A pyarrow.Table with the code of each point of a file, and which of them the pool lacks.

    What the options do not name stands in the book.
    """
    saved, file = load_codebook(book), PointFile.read(path, say)
    file.refuse_names({"--label": label, "--client": client, "--features": features})
    if file.array is not None and saved.labels is not None:
        raise FileError(
            f"expected a table, whose labels have names as in the codebook, got {path.name!r}"
        )
    names = features or saved.features
    if file.array is None and names is None:
        raise ParameterError(
            f"expected --features, columns of {path}: {book} does not say what they are called"
        )
    column = file.label_column(label)
    kept = [column]
    if client is not None or "client" in file.columns:
        kept = [file.client_column(client), column]
    if CODE in kept:
        raise ParameterError(
            f"{path}: the column of codes will be called {CODE!r}; rename the one that is there"
        )
    with naming(path):
        columns = {name: plain_column(file.table, name) for name in kept}
    labels = file.codes(saved.labels or saved.book.n_labels, column, lacks=f"{book} has no style")
    rows = file.features(names)
    file.check_n_features(rows, saved.book.n_features, book)
    try:
        codes = saved.book.encode(rows, labels)
    except ParameterError as error:  # numbers that cannot be squared
        raise CountsError(f"{path}: {error}") from None
    return table_with_names(columns, CODE, saved.categories, codes), saved.book.is_other[codes]


@dataclass(frozen=True, eq=False)
class CodeModel:
    """A mixture over the codes of a codebook; `categories` are the codes that the mixture knows."""

    book_path: Path
    mdm_path: Path
    book: SavedCodebook
    mdm: MDM
    categories: tuple[str, ...]

    @classmethod
    def of(cls, book: Path, mdm: Path, fitted: SavedMDM) -> "CodeModel":
        """A codebook file, and the MDM file of a fit to its codes."""
        saved, names = load_codebook(book), fitted.categories
        if names is None and fitted.mdm.n_categories == saved.book.n_categories:
            names = saved.categories
        try:
            saved.label_of(names or tuple(str(j) for j in range(fitted.mdm.n_categories)))
        except ParameterError as error:
            raise CountsError(
                f"{mdm} is no mixture over the codes of {book}: {error}; fit it with --category {CODE}"
            ) from None
        return cls(book, mdm, saved, fitted.mdm, names or ())

    @property
    def labels(self) -> int | tuple[str, ...]:
        """How many labels the book has, or their names."""
        return self.book.labels or self.book.book.n_labels

    def codes_of(
        self,
        file: PointFile,
        positions: NDArray[np.int64] | None = None,
        labels: NDArray[np.int64] | None = None,
        names: Sequence[str] = (),
    ) -> NDArray[np.int64]:
        """The category of each encoded point, -1 where the mixture does not know its code.

        With `positions`, of these rows only; their labels, which have these names, have to be those of
        the codes.
        """
        if CODE not in file.columns:
            raise FileError(
                f"{file.path} has no column {CODE!r}: expected encoded points; make them with `polyurn "
                f"codebook encode {self.book_path} {file.path}`"
            )
        points = file.table if positions is None else file.table.take(positions)
        codes = known_codes(points, self.book.categories, category=CODE)
        self._refuse(file, codes < 0, f"codes of {self.book_path}, got others")
        if labels is not None:
            wrong = self._numbered(names)[self.book.book.label_of[codes]] != labels
            self._refuse(file, wrong, "codes of each point's own label, got another's")
        found = known_codes(points, self.categories, category=CODE)
        if not (found >= 0).any():
            raise CountsError(
                f"{file.path}: expected points of codes that {self.mdm_path} has, got none"
            )
        return found

    def _refuse(self, file: PointFile, wrong: NDArray[np.bool_], expected: str) -> None:
        if wrong.any():
            with naming(file.path):
                raise RowError(
                    f"column {CODE!r}: expected {expected}, the first", int(np.argmax(wrong)),
                    f"; encode these points with {self.book_path}",
                )  # fmt: skip

    def given_labels(
        self, labels: Population, names: Sequence[str], codes: NDArray[np.int64] | None
    ) -> GivenLabels:
        """Clients with the label totals of a population, whose labels have these names.

        With the codes of proxy points, clients hold nothing that these lack.
        """
        label_of = self._numbered(names)[self.book.label_of(self.categories)]
        given = GivenLabels(self.mdm, labels, label_of, codes)
        if isinstance(labels, MDM):  # which can draw any label
            lacking = np.setdiff1d(np.arange(len(names)), label_of[given.possible])
            if len(lacking):
                raise ShortfallError(
                    "there is no proxy point, or no code, of labels that clients may hold: {}; take "
                    "proxy points of every label, or declare those that there are (--categories)",
                    lacking.tolist(),
                ).named(names)
        return given

    def _numbered(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The number of each label of the book among `names`, which are the same labels."""
        own = self.book.labels or tuple(str(label) for label in range(self.book.book.n_labels))
        if sorted(own) != sorted(names):
            raise ParameterError(
                f"expected clients with the labels of {self.book_path}, {_listed(own)}, got "
                f"{_listed(names)}"
            )
        return np.array([list(names).index(name) for name in own], np.int64)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
