"""A style: what it says of clients, and that its draws have the covariances that it names."""

import numpy as np
import pytest

from polyurn.errors import ParameterError
from polyurn.model.style import Style, StyleErrors, nearest_covariance
from polyurn.model.style_coordinates import StyleSpace
from style_cases import centres

SPACE = StyleSpace(np.zeros((3, 2)), np.eye(2), np.stack([np.eye(2)] * 3), 4.0, 0.01)
B, V, E = np.array([[0.4, 0.1], [0.1, 0.2]]), np.diag([0.1, 0.3]), np.diag([0.5, 0.5])


def some_style(**changed):
    return Style(
        **{"space": SPACE, "mean": [0.1, 0.0], "shared": B, "by_label": V, "within": E} | changed
    )


def test_drawn_styles_have_the_covariances_of_the_law():
    """Standard errors of a covariance of 20,000 clients are below 0.004; five of them."""
    drawn = centres(some_style(), np.ones((20_000, 3), int), rng=0)
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), [0.1, 0.0], atol=0.02)
    np.testing.assert_allclose(np.cov(drawn[:, 0].T), B + V, atol=0.02)
    between_labels = np.cov(drawn[:, 0].T, drawn[:, 1].T)[:2, 2:]
    np.testing.assert_allclose(between_labels, B, atol=0.02)


def test_with_ties_style_follows_the_label_shares_and_keeps_its_covariance():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(50, rng.dirichlet([1.0, 1.0, 1.0], size=20_000))
    shares = counts / 50
    tie = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    style = some_style(
        label_effect=tie, label_shares=shares.mean(axis=0), label_covariance=np.cov(shares.T)
    )
    drawn = style.clients(counts, rng=1)
    np.testing.assert_allclose(np.cov(drawn.T), B, atol=0.02)
    joint = np.cov(shares.T, drawn.T)[:3, 3:]
    np.testing.assert_allclose(joint, np.cov(shares.T) @ tie, atol=0.01)


def test_a_singular_covariance_can_be_drawn_from():
    style = some_style(shared=np.diag([1.0, 0.0]), by_label=np.zeros((2, 2)))
    drawn = centres(style, [[1, 1, 1]] * 5, rng=0)
    assert np.array_equal(drawn[:, 0], drawn[:, 2])
    assert not drawn[:, :, 1].any()


def test_shares_carried_and_between_are_those_of_the_traces():
    style = some_style()
    assert style.carried.tolist() == pytest.approx([0.5, 0.5])
    assert style.between == pytest.approx(0.5)
    np.testing.assert_allclose(style.eigenvalues[1], [0.3, 0.1])
    still = some_style(shared=0 * B, by_label=0 * V)
    assert still.carried.tolist() == [0, 0]
    assert still.between == 0


def test_the_alarm_is_for_a_mean_that_is_not_the_pools_and_for_far_points():
    errors = StyleErrors(np.array([0.05, 0.05]), B, V, E)
    assert some_style(errors=errors, far_share=0.02).alarm is None
    assert "mean style is not the proxy data's: it lies 1.00" in some_style(mean=[0.0, 1.0]).alarm
    assert "direction 2" in some_style(mean=[0.0, 1.0], errors=errors).alarm
    unsure = StyleErrors(np.array([0.5, 0.5]), B, V, E)
    assert some_style(mean=[0.0, 1.0], errors=unsure).alarm is None
    assert "22.0% of the clients' points lie far" in some_style(far_share=0.22).alarm
    noisy = StyleErrors(np.array([0.05, 0.05]), B, V, E, far_share=0.05)
    assert some_style(far_share=0.22, errors=noisy).alarm is None
    assert "62.0% of the clients' points" in some_style(far_share=0.62, errors=noisy).alarm


def test_the_nearest_covariance_has_no_negative_eigenvalue_and_keeps_the_others():
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    np.testing.assert_allclose(np.linalg.eigvalsh(nearest_covariance(matrix)), [0, 3], atol=1e-12)
    np.testing.assert_allclose(nearest_covariance(B), B)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mean": [0.0]}, "mean of shape"),
        ({"shared": [[1.0, 0.5], [0.0, 1.0]]}, "not symmetric"),
        ({"by_label": -V}, "negative eigenvalue"),
        ({"within": [[np.nan, 0], [0, 1]]}, "finite"),
        ({"label_effect": np.zeros((3, 2))}, "or none of them"),
        ({"n_clients": -1}, "n_clients of at least 0"),
        ({"far_share": 1.5}, "far_share from 0 to 1"),
        ({"errors": StyleErrors(np.zeros(1), *np.zeros((3, 1, 1)))}, "mean of shape"),
    ],
)
def test_a_style_whose_parts_do_not_fit_is_refused(changed, said):
    with pytest.raises(ParameterError, match=said):
        some_style(**changed)


def test_errors_whose_parts_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match="far_share of at least 0"):
        StyleErrors(np.zeros(2), B, V, E, np.nan)
    with pytest.raises(ParameterError, match=r"mean of shape \(2\), got \(1,\)"):
        StyleErrors(np.zeros(1), B, V, E)
