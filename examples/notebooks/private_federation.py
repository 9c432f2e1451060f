# %% [markdown]
# # A federation on one machine, private
#
# At the end three nodes with 4,000 clients each have told a server what their clients look like: in secure sums, with noise that they add
# themselves, and with a guarantee of differential privacy for every client. The server has one small file.
# It needs the extras `federation`, `privacy`, `tables` and `report`, and about a minute.

# %% [markdown]
# ## Three owners
#
# Here two kinds of clients are drawn; at home each owner has a CSV.

# %%
import shlex
import sys
from subprocess import run

import polyurn as pu

kinds = pu.MDM(
    [0.6, 0.4], [[9.0, 1.0, 1.0], [1.0, 3.0, 9.0]], pu.Sizes.constant(12, n_components=2)
)
for node in (1, 2, 3):
    mine = kinds.sample(4_000, rng=node)
    pu.write_histograms(mine, f"clients-{node}.csv", categories=["cat", "dog", "owl"])


def polyurn(line):
    """The same as on the command line."""
    program = [sys.executable, "-c", "from polyurn.cli import main; main()"]
    words = [*program, *shlex.split(line)]
    done = run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# %% [markdown]
# ## The server and its nodes
#
# `init` declares, once, what everybody agrees on. `join` is what each owner runs; here one process has all three nodes.

# %%
declared = "--categories cat,dog,owl --max-size 20 --clients-per-node 4000"
polyurn(f"federation init fed --nodes 3 {declared} --address localhost:8417")

# %% [markdown]
# ## The question
#
# ε = 1 is what the answer may cost; each round is charged to a ledger before it is asked. The number of components is chosen by the
# data, with noise, too.

# %%
try:
    polyurn("federation up fed")
    nodes = " ".join(f"fed/nodes/node-{node} clients-{node}.csv" for node in (1, 2, 3))
    polyurn(f"federation join {nodes} --background")
    asked = "--epsilon 1 --delta 1e-6 --ledger-epsilon 1.5 --components 1:3"
    polyurn(f"federation run fed {asked} -o mdm.json")
finally:
    polyurn("federation down fed")
print(polyurn("show mdm.json"))

# %% [markdown]
# ## Was it learned?
#
# We know the truth here, and compare 2,000 new clients of each. An energy ratio in the range of true clients cannot tell the two apart.

# %%
learned = pu.load("mdm.json")
true = kinds.sample(2_000, rng=9)
compared = pu.compare({"mdm": learned, "iid": pu.IID.like(true)}, true, match="position", rng=0)
for row in compared.rows:
    low, high = row.energy_null
    print(f"{row.name}: energy ratio {row.energy_ratio:.2f}, true clients {low:.2f} to {high:.2f}")

# %%
compared

# %% [markdown]
# Next: [three hosts instead of one](../guides/federation.md), [what ε costs](../privacy.md) before you spend it, and
# [what is promised against whom](../threat-model.md).
