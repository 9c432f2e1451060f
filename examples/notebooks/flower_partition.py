# %% [markdown]
# # A realistic partition for a Flower app
#
# At the end you have a Flower app whose 100 clients hold digits as real people hold labels, and know how that differs from Dirichlet(0.1).
# It needs the extras `flower` and `report`, and half a minute.

# %% [markdown]
# ## The partition
#
# The dataset is the digits of scikit-learn; any dataset with a column of labels will do. `MDMPartitioner` is a partitioner of
# `flwr-datasets`. `like` takes a federation of the zoo: here celebrities by the colour of their hair, of whom each has few
# colours. The most frequent colour becomes the most frequent digit.

# %%
import numpy as np
from sklearn.datasets import load_digits

import polyurn as pu
from datasets import Dataset
from polyurn.integrations.flwr_datasets import MDMPartitioner

images, labels = load_digits(return_X_y=True)
digits = Dataset.from_dict({"image": images.tolist(), "label": labels.tolist()})

partitioner = MDMPartitioner.like("celeba_hair", num_partitions=100, seed=1)
partitioner.dataset = digits
partitioner.load_partition(0)["label"][:]

# %% [markdown]
# In the app, the partitioner goes where any other does. This is all that changes:
#
# ```
# federated = FederatedDataset(dataset="mnist", partitioners={"train": partitioner})
# batch = federated.load_partition(context.node_config["partition-id"])
# ```

# %% [markdown]
# ## How it looks
#
# The same number of clients of the usual size, cut by Dirichlet(0.1) and IID, beside it.

# %%
clients = np.array([
    np.bincount(partitioner.load_partition(i)["label"], minlength=10) for i in range(100)
])  # fmt: skip
sizes = clients.sum(axis=1)
others = {
    "celebrities": clients,
    "Dirichlet(0.1)": pu.Dirichlet([0.1] * 10, sizes=sizes).sample(100, rng=0),
    "iid": pu.IID(np.bincount(labels), sizes=sizes).sample(100, rng=0),
}
pu.report_on(clients=others, true="celebrities")["strips"]

# %% [markdown]
# ## Which federation is it like?
#
# `pu.zoo.nearest` compares any clients with all federations of the zoo. A distance of about 0 is that of two draws of one federation.

# %%
for name in ("celebrities", "Dirichlet(0.1)"):
    near = pu.zoo.nearest(others[name], rng=0).rows[:3]
    print(name, "->", ", ".join(f"{one.name} ({one.labels.value:.3f})" for one in near))

# %% [markdown]
# Next: [train on it](../guides/flower.md), or choose another federation on [the zoo page](../zoo.md). If a paper has one partition, say which and
# why; [this page](../which-partition.md) has the BibTeX.
