"""What clients are asked about their style: moments of their points' coordinates, at three levels.

z are the coordinates of a client's n points in a `StyleSpace`, clipped at its radius r; z̄ is their mean,
z̄_l the mean of the n_l points of label l, and L_i the number of labels that the client has. One client
adds the matrices

    T1 = z̄ z̄',   A = Σ_l (n_l / n) (z̄_l - z̄)(z̄_l - z̄)',   W = Σ_j (z_j - z̄_l(j))(z_j - z̄_l(j))' / n,

of which only the lower triangle is sent. `client/style_answers.py` computes them, and
`server/style_fit.py` estimates a style from their sums.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from polyurn.model.style_coordinates import StyleSpace
from polyurn.typed.declared import Above, Floats, Shape
from polyurn.wire.private_queries import BoundedStatistics
from polyurn.wire.query import Query, S, Statistics

# Parts of the squared norm: of the count of clients, of 1 / n and the two beside it, of the far share,
# of z̄ and of the matrices, from which everything is estimated; and of the label effect, if asked for.
PARTS = (0.04, 0.06, 0.02, 0.08, 0.80)
LABEL_EFFECT_PARTS = (0.04, 0.04, 0.02, 0.05, 0.45, 0.40)
# The same of the three blocks of the label effect: h, h h' and h z̄'.
_OF_LABEL_EFFECT = (0.1, 0.3, 0.6)


@dataclass(frozen=True, eq=False, repr=False)
class StyleStatistics(Statistics):
    """Answer to `StyleMoments`: the moments of clients' styles, each client with the same weight.

    m is the number of directions, L that of labels and h = n_l / n a client's label shares. T1, A and W
    are positive semidefinite and their traces add up to Σ_j |z_j|² / n ≤ r²: so none of their entries
    exceeds r², and the norm of all three together, as matrices, is at most r².

    What one client adds, and its L2 sensitivity (the largest norm of one client's block):

    - `n_clients`: 1.
    - `inverse_sizes`, `squared_shares`, `labels_per_point`: 1 / n, Σ_l (n_l / n)² and L_i / n; at most 1
      each.
    - `far`: the share of its points beyond the radius; at most 1.
    - `means` (m,): z̄; sensitivity r.
    - `between_clients`, `between_labels`, `within_labels` (m (m + 1) / 2,): the lower triangles of T1, A
      and W; sensitivity r² each.
    - `label_effect` (0 or L + L (L + 1) / 2 + L m,): h, lower triangle of h h', and h z̄', by label;
      entries of at most 1, 1 and r; sensitivity 1, 1 and r.
    """

    n_clients: float
    inverse_sizes: float
    squared_shares: float
    labels_per_point: float
    far: float
    means: Annotated[Floats, Shape("M")]
    between_clients: Annotated[Floats, Shape("T")]
    between_labels: Annotated[Floats, Shape("T")]
    within_labels: Annotated[Floats, Shape("T")]
    label_effect: Annotated[Floats, Shape("H")]


class AboutStyle(Query[S]):
    """A question to clients with records, in a `StyleSpace`."""

    method = "fit_style"
    max_size = None

    space: StyleSpace
    label_effect: bool

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.space.n_labels

    @property
    def n_features(self) -> int:
        return self.space.n_features


@dataclass(frozen=True)
class StyleMoments(AboutStyle[StyleStatistics], kind="style_moments"):
    """How do you differ from the proxy data, over all your labels, by label, and within labels?

    For clients with records. `label_effect` asks also for label shares and their products with the mean
    style, for federations where label and style are correlated.
    """

    answer_type = StyleStatistics

    space: StyleSpace
    label_effect: bool = False

    @property
    def lengths(self) -> Mapping[str, int]:
        m, n_labels = self.space.n_directions, self.space.n_labels
        n_effects = n_labels + n_labels * (n_labels + 1) // 2 + n_labels * m
        return {"M": m, "T": m * (m + 1) // 2, "H": n_effects if self.label_effect else 0}

    def largest(self) -> Mapping[str, ArrayLike]:
        """Shares are at most 1, |z̄| ≤ r, and the matrices' traces add up to at most r²."""
        n_labels, r = self.space.n_labels, self.space.radius
        found: dict[str, ArrayLike] = {"means": r}
        found |= dict.fromkeys(("between_clients", "between_labels", "within_labels"), r * r)
        if self.label_effect:
            ones = np.ones(n_labels + n_labels * (n_labels + 1) // 2)
            found["label_effect"] = np.append(ones, np.full(n_labels * self.space.n_directions, r))
        return found


@dataclass(frozen=True)
class BoundedStyle(AboutStyle[BoundedStatistics], kind="bounded_style"):
    """`StyleMoments` as a vector of norm at most 1, which noise can protect.

    One client sends, with the parts p of the squared norm and clip c,

        √p₀,  √(p₁/3) (1 / n, Σ_l (n_l / n)², L_i / n),  √p₂ far,  √p₃ z̄ / √c,  √p₄ (T1, A, W) / c

    with every entry beside a diagonal times √2, so that the norm of a triangle is that of its matrix.
    (T1, A, W) is scaled down to norm c if it is longer, and z̄ to √c: the squared norm is at most Σ p.
    With `label_effect`, three more blocks share p₅: h, of norm at most 1, h h', of norm |h|² ≤ 1, and
    h z̄' / √c.

    The mean of |z|² over the proxy points is m, and `fit_style` takes c = m: only clients whose points
    lie farther from the proxy mean than proxy points on average are scaled down.
    """

    answer_type = BoundedStatistics
    unit_norm = True

    space: StyleSpace
    clip: Annotated[float, Above(0)]
    label_effect: bool = False

    @property
    def moments(self) -> StyleMoments:
        """The same question without bounds."""
        return StyleMoments(self.space, self.label_effect)

    @property
    def n_numbers(self) -> int:
        return self.moments.n_numbers

    @property
    def scales(self) -> Floats:
        """What each number of `StyleMoments` is multiplied by, shape (n_numbers,)."""
        m, n_labels, root = self.space.n_directions, self.space.n_labels, math.sqrt(self.clip)
        parts = np.sqrt(LABEL_EFFECT_PARTS if self.label_effect else PARTS)
        blocks = [
            parts[:1],
            np.full(3, parts[1] / math.sqrt(3)),
            parts[2:3],
            np.full(m, parts[3] / root),
            np.tile(parts[4] / self.clip * _of_triangle(m), 3),
        ]
        if self.label_effect:
            of_h, of_products, of_means = parts[5] * np.sqrt(_OF_LABEL_EFFECT)
            blocks += [
                np.full(n_labels, of_h),
                of_products * _of_triangle(n_labels),
                np.full(n_labels * m, of_means / root),
            ]
        return np.concatenate(blocks)

    def unscaled(self, values: Floats) -> StyleStatistics:
        """The moments whose scaled sum, with noise or without, is `values`."""
        return self.moments.shaped(values / self.scales)


def triangle(matrix: Floats) -> Floats:
    """The lower triangle of the last two axes, row by row, shape (..., n (n + 1) / 2)."""
    rows, columns = np.tril_indices(matrix.shape[-1])
    return matrix[..., rows, columns]


def _of_triangle(n: int) -> Floats:
    """1 on the diagonal, √2 beside it: each of those stands for two entries of the matrix."""
    rows, columns = np.tril_indices(n)
    return np.where(rows == columns, 1.0, math.sqrt(2.0))
