"""Fitting styles: known covariances come back, with noise too, and errors say how far off they are."""

import numpy as np
import pytest

from polyurn import LocalAggregator, PrivacyLedger, PrivateAggregator, Records, fit_style
from polyurn.errors import BudgetError, FitError, ParameterError
from style_cases import drawn_world, whole_space

PRIVATE = {"epsilon": 1.0, "delta": 1e-6}


def seeded(seed):
    rng = np.random.default_rng(seed)
    return lambda n, scale: np.rint(rng.normal(scale=scale, size=n)).astype(np.int64)


def no_noise(n, _):
    return np.zeros(n, np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_clients_of_fifty_points_give_b_v_and_e_within_a_tenth(seed):
    world = drawn_world(1000, seed=seed)
    style = fit_style(LocalAggregator(world.records), whole_space())
    assert max(world.off(style)) < 0.1
    assert style.n_clients == 1000
    assert style.alarm is None


def test_sizes_from_one_point_to_many_do_not_bias_the_estimates():
    """Averages over 20 worlds are within three of their standard errors."""
    signed = []
    for seed in range(20):
        world = drawn_world(300, sizes=(1, 60), n_directions=2, n_labels=4, seed=seed)
        style = fit_style(LocalAggregator(world.records), whole_space(2, 4, radius=50.0))
        true = (world.shared, world.by_label, world.within)
        got = (style.shared, style.by_label, style.within)
        signed.append([np.trace(a - b) for a, b in zip(got, true, strict=True)])
    means, spread = np.mean(signed, axis=0), np.std(signed, axis=0, ddof=1)
    assert (np.abs(means) < 3 * spread / np.sqrt(20)).all()


@pytest.mark.parametrize("seed", range(2))
def test_with_noise_of_epsilon_1_ten_thousand_clients_give_them_within_a_fifteenth(seed):
    world = drawn_world(10_000, sizes=(20, 81), seed=seed)
    clients = LocalAggregator(world.records)
    style = fit_style(clients, whole_space(), **PRIVATE, noise=seeded(seed))
    assert max(world.off(style)) < 1 / 15
    assert abs(style.n_clients - 10_000) < 200


@pytest.mark.parametrize("private", [False, True])
def test_standard_errors_are_the_spread_over_worlds(private):
    """Of 30 worlds: the mean of z² over all entries is within a third of 1."""
    space, z = whole_space(2, 5, radius=6.0), []
    more = {**PRIVATE, "clip": 8.0} if private else {}
    for seed in range(30):
        world = drawn_world(400, sizes=(5, 40), n_directions=2, n_labels=5, seed=100 + seed)
        options = {**more, "noise": seeded(seed)} if private else {}
        style = fit_style(LocalAggregator(world.records), space, **options)
        errors, lower = style.errors, np.tril_indices(2)
        for name in ("shared", "by_label", "within"):
            apart = getattr(style, name) - getattr(world, name)
            z.append((apart / getattr(errors, name))[lower])
        z.append(style.mean / errors.mean)
    assert np.mean(np.concatenate(z) ** 2) == pytest.approx(1, abs=1 / 3)


def test_a_tight_clip_makes_the_errors_as_large_as_what_it_takes_away():
    world = drawn_world(3_000, seed=1)
    clients, space = LocalAggregator(world.records), whole_space()
    tight = fit_style(clients, space, **PRIVATE, clip=2.0, noise=no_noise)
    loose = fit_style(clients, space, **PRIVATE, clip=13.0, noise=no_noise)
    taken = np.diag(loose.shared - tight.shared)
    assert (taken > 0.02).all()
    assert (np.diag(tight.errors.shared) > 0.4 * taken).all()


def test_ties_come_back_and_carry_the_covariance_of_labels_and_style():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(2000), 40)
    shares = rng.dirichlet([2.0, 2.0], size=2000)
    labels = (rng.random(len(owner)) > shares[owner, 0]).astype(int)
    h = np.bincount(owner, labels) / 40  # the share of label 1
    z = 2 * (h - 0.5)[owner, None] + rng.normal(size=(len(owner), 1)) * 0.8
    style = fit_style(
        LocalAggregator(Records(z, labels, owner)), whole_space(1, 2), label_effect=True
    )
    assert style.label_effect[1, 0] - style.label_effect[0, 0] == pytest.approx(2, abs=0.1)
    assert style.untied[0, 0] < 0.05 * style.shared[0, 0]
    noised = fit_style(
        LocalAggregator(Records(z, labels, owner)), whole_space(1, 2), label_effect=True, **PRIVATE,
        noise=seeded(1),
    )  # fmt: skip
    assert noised.label_effect[1, 0] - noised.label_effect[0, 0] == pytest.approx(2, abs=0.5)


def test_a_federation_of_another_mean_style_raises_the_alarm():
    world = drawn_world(300, mean=0.6, seed=2)
    style = fit_style(LocalAggregator(world.records), whole_space())
    assert "mean style is not the proxy data's" in style.alarm
    assert style.far_share > 0.02


def test_noise_in_the_share_of_far_points_raises_no_alarm():
    # Without regard for noise, half of these seeds would raise one.
    world, space = drawn_world(150, seed=6), whole_space()
    clients = LocalAggregator(world.records)
    for seed in range(8):
        style = fit_style(clients, space, epsilon=4.0, delta=1e-6, noise=seeded(seed))
        assert style.errors.far_share > 0.03
        assert style.alarm is None
    assert fit_style(clients, space).errors.far_share == 0.0


def test_clients_of_one_label_each_have_all_of_it_in_b():
    rng = np.random.default_rng(1)
    owner = np.repeat(np.arange(500), 20)
    z = rng.normal(size=500)[owner, None] * 0.7 + rng.normal(size=(10_000, 1)) * 0.7
    records = Records(z, owner % 2, owner)
    style = fit_style(LocalAggregator(records), whole_space(1, 2))
    assert style.by_label.tolist() == [[0.0]]
    assert style.shared[0, 0] == pytest.approx(0.49, rel=0.2)


def test_clients_without_two_points_of_a_label_are_not_enough():
    records = Records(np.zeros((4, 1)), [0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(FitError, match="two points of the same label"):
        fit_style(LocalAggregator(records), whole_space(1, 2))


def test_a_private_fit_is_charged_to_its_ledger_once():
    world, ledger = drawn_world(500, seed=3), PrivacyLedger(1.0, 1e-6)
    clients = PrivateAggregator(LocalAggregator(world.records), ledger=ledger)
    fit_style(clients, whole_space(), **PRIVATE)
    assert [charge.what for charge in ledger.charges] == ["bounded_style"]
    assert clients.guarantee().epsilon == pytest.approx(1.0)
    with pytest.raises(BudgetError):
        fit_style(clients, whole_space(), **PRIVATE)


def test_local_noise_makes_errors_that_grow_with_the_root_of_the_clients():
    world, space = drawn_world(2_000, seed=4), whole_space()
    clients = LocalAggregator(world.records)
    loud = {"epsilon": 20.0, "delta": 1e-6}
    central = fit_style(clients, space, **loud, noise=seeded(0))
    local = fit_style(clients, space, **loud, trust="local")
    assert local.errors.within[0, 0] > 5 * central.errors.within[0, 0]


def test_noise_that_hides_whether_clients_have_two_points_of_a_label_is_said_to():
    world = drawn_world(300, seed=4)
    with pytest.raises(FitError, match="more noise than signal"):
        fit_style(
            LocalAggregator(world.records), whole_space(), epsilon=0.02, delta=1e-6, noise=seeded(0)
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delta": 1e-6}, "expected epsilon"),
        ({"clip": 3.0}, "expected epsilon"),
        ({"epsilon": 1.0}, "expected delta"),
        ({**PRIVATE, "clip": -3.0}, "clip above 0"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options, said):
    clients = LocalAggregator(drawn_world(20, seed=5).records)
    with pytest.raises(ParameterError, match=said):
        fit_style(clients, whole_space(), **options)


def test_clients_of_two_points_that_rarely_share_a_label_are_enough():
    rng = np.random.default_rng(0)
    owner, labels = np.repeat(np.arange(2_000), 2), rng.integers(10, size=4_000)
    z = rng.normal(size=(2_000, 2))[owner] + rng.normal(size=(4_000, 2))
    records = Records(z, labels, owner, n_labels=10)
    style = fit_style(LocalAggregator(records), whole_space(2, radius=9.0))
    assert np.abs(style.within - np.eye(2)).max() < 4 * style.errors.within.max()
    assert np.isfinite(style.errors.shared).all()
