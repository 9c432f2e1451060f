# %% [markdown]
# # The Twins microbiome, for statisticians
#
# At the end you have chosen a mixture of Dirichlet-multinomials for a table of 278 samples and 130 genera, looked at its
# components, and simulated new samples from it. It needs the extras `sklearn` and `report`, and half a minute.
#
# The table is that of Turnbaugh et al. (2009), on which Holmes, Harris and Quince (2012) fitted four components. The zoo has parameters
# that were fitted to it, from which we draw as many samples. With the table at hand, put it in the place of `counts`.

# %%
import warnings

import numpy as np

import polyurn as pu
from polyurn.integrations.sklearn import DirichletMultinomialMixture

fitted = pu.zoo.load("twins")
counts = fitted.sample(278, rng=0)  # or your table, an array of samples x genera
counts.shape, int(counts.sum())

# %% [markdown]
# ## How many components?
#
# The evidence by Laplace's approximation, as in R's DirichletMultinomial: lower is better. On the true table
# four components are best, as in the paper.

# %%
warnings.simplefilter("ignore")  # a fit may stop at its last round before it has converged
fits = [DirichletMultinomialMixture(k, random_state=0).fit(counts) for k in range(1, 7)]
evidence = {fit.n_components: fit.laplace(counts) for fit in fits}
for k, value in evidence.items():
    print(f"K = {k}: {value:,.0f}")

# %% [markdown]
# Held-out samples say it without a prior: `pu.fit` keeps a fifth of the samples apart and fits each K to all others.

# %%
choice = pu.fit(counts, n_components=[1, 2, 3, 4, 5, 6], rng=0)
choice

# %% [markdown]
# ## What are they?
#
# A component has a weight, a mean (its genera's shares) and a concentration: the smaller it is, the more samples of the component
# differ. The concentration is what a multinomial mixture lacks.

# %%
best = fits[min(evidence, key=evidence.get) - 1]
names = np.array(fitted.categories)
for weight, alpha in zip(best.weights_, best.alphas_, strict=True):
    most = np.argsort(-alpha)[:3]
    shares = ", ".join(f"{names[j]} {alpha[j] / alpha.sum():.0%}" for j in most)
    print(f"weight {weight:.2f}, concentration {alpha.sum():.0f}: {shares}")

# %% [markdown]
# How sure are we of the weights? A parametric bootstrap is a loop, because a fit takes a fraction of a second.

# %%
weights = []
for seed in range(10):
    again = DirichletMultinomialMixture(best.n_components, random_state=0)
    weights.append(again.fit(best.mdm_.sample(278, rng=seed)).weights_)
whole = [w for w in weights if len(w) == best.n_components]
print("standard errors of the weights:", np.std(whole, axis=0, ddof=1).round(3))

# %% [markdown]
# ## Does it describe the samples?
#
# Simulated samples beside held-out ones. A classifier's AUC of 0.5 would mean that it cannot tell them apart.

# %%
split = pu.split_clients(counts, held_out=0.3, rng=1)
largest = int(counts.sum(axis=1).max())
model = pu.fit(split.fitted, n_components=best.n_components, max_size=largest, rng=0).mdm
compared = pu.compare({"mdm": model, "iid": pu.IID.like(split.fitted)}, split, rng=0)
compared

# %% [markdown]
# Next: [which numbers of the two programs may be compared](../guides/dmn.md), and [how a fit works](../method.md).
