"""The figures for papers."""

import pytest

import polyurn as pu
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from report_material import NAMES, comparison, runs, selection, true_clients

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.figure import Figure  # noqa: E402

from polyurn.report import plots  # noqa: E402

CLIENTS = {"true": true_clients(), "iid": true_clients()[::-1]}
PLOTS = {
    "weights": lambda ax: plots.plot_weights(selection().mdm, ax=ax),
    "profiles": lambda ax: plots.plot_profiles(selection().mdm, categories=NAMES, ax=ax),
    "telling": lambda ax: plots.plot_telling(selection().mdm, ax=ax),
    "component_sizes": lambda ax: plots.plot_component_sizes(truth("medium/2"), ax=ax),
    "candidates": lambda ax: plots.plot_candidates(selection(), ax=ax),
    "paths": lambda ax: plots.plot_paths(selection(), ax=ax),
    "plane": lambda ax: plots.plot_plane(CLIENTS, ax=ax),
    "strips": lambda ax: plots.plot_strips(true_clients(), ax=ax),
    "population_sizes": lambda ax: plots.plot_population_sizes(CLIENTS, ax=ax),
    "distances": lambda ax: plots.plot_distances(comparison(), ax=ax),
    "sweep": lambda ax: plots.plot_sweep(runs(), "local_learning_rate", ax=ax),
    "agreement": lambda ax: plots.plot_agreement(runs(), ax=ax),
}


def test_every_plot_is_tested():
    assert {f"plot_{name}" for name in PLOTS} == {n for n in dir(plots) if n.startswith("plot_")}


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_draws_on_the_axes_it_is_given_or_on_its_own(name, tmp_path):
    ax = Figure().add_subplot()
    assert PLOTS[name](ax) is ax
    own = PLOTS[name](None)
    assert own is not ax
    assert own.has_data()
    own.figure.savefig(tmp_path / "figure.png")


def test_the_line_of_true_clients_is_dotted():
    ax = plots.plot_sweep(runs(), "local_learning_rate")
    lines = {text.get_text(): line for text, line in zip(*_legend(ax), strict=True)}
    assert lines["true"].get_linestyle() != "-"
    assert lines["mdm"].get_linestyle() == "-"


def _legend(ax):
    legend = ax.get_legend()
    handles, _ = ax.get_legend_handles_labels()
    return legend.get_texts(), [handle.lines[0] for handle in handles]


def test_components_that_do_not_differ_cannot_be_told_apart():
    with pytest.raises(ParameterError, match="nothing tells these apart"):
        plots.plot_telling(truth("low/1"))


def test_a_sweep_without_true_clients_does_not_agree_with_them():
    with pytest.raises(ParameterError, match="expected runs on 'true'"):
        plots.plot_agreement(runs(populations=("mdm",)))


def test_the_winning_path_ends_at_the_best_likelihood():
    clients = pu.LocalAggregator(true_clients(), rng=1)
    done = pu.fit(clients, n_components=2, n_categories=10, max_size=20, max_rounds=6, rng=0)
    ends = [line.get_ydata()[-1] for line in plots.plot_paths(done).lines]
    assert max(ends) == pytest.approx(done.log_likelihoods[-1], abs=1e-6)
