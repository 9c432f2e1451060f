"""A codebook and a mixture over its codes, as commands that simulate clients read them.

Clients' label totals come from elsewhere; how codes are drawn given these is `model/given_labels.py`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.tables import known_codes
from polyurn.commands._shared.client_tables import naming
from polyurn.commands._shared.coded_points import CODE
from polyurn.commands._shared.model_files import read_model
from polyurn.errors import CountsError, FileError, ParameterError, RowError, ShortfallError
from polyurn.model.codebooks import Codebook
from polyurn.model.mdm import MDM
from polyurn.model.populations import GivenLabels, Population
from polyurn.storage.models import Saved, codes_of, labels_of, load_saved


@dataclass(frozen=True, eq=False)
class CodeModel:
    """A mixture over codes, and the codebook that they are of.

    Attributes
    ----------
    book_path, mdm_path : Path
    book : Saved
    mdm : MDM
    categories : tuple of str
        The codes that the mixture knows: all of the book's, or those that its clients had.
    """

    book_path: Path
    mdm_path: Path
    book: Saved[Codebook]
    mdm: MDM
    categories: tuple[str, ...]

    @property
    def labels(self) -> int | tuple[str, ...]:
        """How many labels the book has, or their names."""
        return self.book.categories or self.book.model.n_labels

    def codes_of(
        self,
        points: Any,
        where: Path,
        labels: NDArray[np.int64] | None = None,
        names: Sequence[str] = (),
    ) -> NDArray[np.int64]:
        """The category of each encoded point, -1 where the mixture does not know its code.

        Parameters
        ----------
        points : pyarrow.Table
            As `codebook encode` writes it.
        where : Path
        labels : int array of shape (n_points,), optional
            Their labels, which have to be those of the codes.
        names : sequence of str
            The name of each label.
        """
        if CODE not in points.column_names:
            raise FileError(
                f"{where} has no column {CODE!r}: expected encoded points; make them with `polyurn "
                f"codebook encode {self.book_path} {where}`"
            )
        again = f"; encode these points with {self.book_path}"
        with naming(where):
            codes = known_codes(points, codes_of(self.book), category=CODE)
            if (codes < 0).any():
                raise RowError(
                    f"column {CODE!r}: expected codes of {self.book_path}, got others, the first",
                    int(np.argmax(codes < 0)), again,
                )  # fmt: skip
            if labels is not None:
                wrong = self._numbered(names)[self.book.model.label_of[codes]] != labels
                if wrong.any():
                    raise RowError(
                        f"column {CODE!r}: expected codes of each point's own label, got another's, "
                        "the first",
                        int(np.argmax(wrong)), again,
                    )  # fmt: skip
            found = known_codes(points, self.categories, category=CODE)
            if not (found >= 0).any():
                raise CountsError(f"expected points of codes that {self.mdm_path} has, got none")
            return found

    def given_labels(
        self, labels: Population, names: Sequence[str], codes: NDArray[np.int64] | None
    ) -> GivenLabels:
        """Clients with the label totals of a population, whose labels have these names.

        Parameters
        ----------
        labels : Population
        names : sequence of str
        codes : int array of shape (n_points,), optional
            Of the proxy points: clients hold nothing that these lack.
        """
        label_of = self._numbered(names)[labels_of(self.book, self.categories)]
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
        own = self.book.categories or tuple(map(str, range(self.book.model.n_labels)))
        if sorted(own) != sorted(names):
            raise ParameterError(
                f"expected clients with the labels of {self.book_path}, {_listed(own)}, got "
                f"{_listed(names)}"
            )
        return np.array([list(names).index(name) for name in own], np.int64)


def read_code_model(book: Path, mdm: Path) -> CodeModel:
    """A codebook file, and the MDM file of a fit to its codes."""
    saved, fitted = load_saved(book, Codebook), read_model(mdm)
    names = fitted.categories
    if names is None and fitted.model.n_categories == saved.model.n_categories:
        names = codes_of(saved)
    try:
        labels_of(saved, names or tuple(map(str, range(fitted.model.n_categories))))
    except ParameterError as error:
        raise CountsError(
            f"{mdm} is no mixture over the codes of {book}: {error}; fit it with --category {CODE}"
        ) from None
    return CodeModel(book, mdm, saved, fitted.model, names or ())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
