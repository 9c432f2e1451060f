"""Census clients whose records the server has not: the paper's disjoint experiment (Appendix D.2).

    python experiments/disjoint.py          # resumes; writes results/disjoint*, tables and curves
    python experiments/disjoint.py --draw   # tables and curves of what is kept; trains nothing
    python experiments/disjoint.py --full   # all PUMAs, half of them true clients

As `census.py`, with twice as many PUMAs. As in the paper, the first half in their own order are the
true clients, and the records of the others are the server's proxy data: other states, so that there
is a shift between the two. The paper does this with FEMNIST.
"""

import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import census
import training_tables as tables

TITLE = "Census clients, disjoint server data, softmax regression"
REPORTS = (census.report("disjoint", TITLE),)


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    census.main("disjoint", TITLE, disjoint=True)


if __name__ == "__main__":
    tables.or_exit(main)
