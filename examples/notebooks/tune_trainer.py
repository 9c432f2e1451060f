# %% [markdown]
# # Tune a trainer of your own, and read the verdict
#
# At the end you have chosen a learning rate on simulated clients, and know what that choice costs on the true ones. It needs the
# extras `sklearn`, `train` and `report`, and about a minute. The trainer here is twenty lines of NumPy; yours may be [a
# command](../training.md#your-own-trainer) or [a Flower app](../guides/flower.md).

# %%
import numpy as np
from sklearn.datasets import load_digits

import polyurn as pu

images, labels = load_digits(return_X_y=True)
images = images / 16
n_train = 1_400
test = slice(n_train, None)


def train(clients, settings, seed):
    """Federated averaging of softmax regression; `clients` has the rows that each client holds."""
    rng, weights = np.random.default_rng(seed), np.zeros((64, 10))
    for round_ in range(1, 21):
        cohort = rng.choice(len(clients), size=10, replace=False)
        weights = np.mean([trained(weights, clients[i], settings) for i in cohort], axis=0)
        right = (images[test] @ weights).argmax(axis=1) == labels[test]
        yield {"round": round_, "accuracy": float(right.mean())}


def trained(weights, rows, settings):
    """One client's weights after some steps on all of its rows."""
    x, y = images[rows], np.eye(10)[labels[rows]]
    for _ in range(settings["steps"]):
        odds = np.exp(x @ weights - (x @ weights).max(axis=1, keepdims=True))
        gradient = x.T @ (odds / odds.sum(axis=1, keepdims=True) - y) / len(x)
        weights = weights - settings["rate"] * gradient
    return weights


# %% [markdown]
# ## True clients, and two stand-ins
#
# The true clients here hold digits as celebrities have hair colours. What we can have of them is a mixture, learned from sums; and, as papers
# do, IID clients of the same sizes.

# %%
like = pu.zoo.like("celeba_hair", labels[:n_train])
true = pu.partition(labels[:n_train], like, n_clients=200, rng=0)
histograms = true.histograms(labels[:n_train], 10)
mdm = pu.fit(histograms, rng=0).mdm
populations = {"true": true, "mdm": mdm, "iid": pu.IID.like(histograms)}

# %% [markdown]
# ## The sweep
#
# Every setting, on every population, under four seeds. The true clients are trained once more, "again", with other cohorts: what
# differs there is chance.

# %%
done = pu.sweep_trainer(
    train, labels[:n_train], populations=populations, seeds=[0, 1, 2, 3], n_jobs=1,
    grid={"rate": [1.0, 3.0, 10.0, 30.0, 100.0], "steps": [5]},
)  # fmt: skip
len(done.runs), len(done.failed)

# %% [markdown]
# ## Which settings?
#
# Chosen on clients of the mixture. The last sentence says what the choice loses on the true clients.

# %%
for sentence in pu.best_settings(done.runs).sentences():
    print(sentence)

# %% [markdown]
# ## Could the simulated clients be believed?
#
# The first sentence is about the accuracy that they promise, the second about the settings that they choose.

# %%
verdict = pu.compare_sweeps(done.runs)
print(verdict.sentence())
print(verdict.regret_sentence())

# %%
pu.report_on(runs=done.runs)["agreement"]

# %% [markdown]
# Points on the diagonal are promises that were kept. IID clients promise more than the true clients give.
# Next: [the numbers of a verdict](../training.md#the-verdict), and [a sweep as a file](../training.md#a-sweep-as-a-file).
