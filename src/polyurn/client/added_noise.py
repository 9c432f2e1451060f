"""The noise that clients add to their own answers, so that they need not trust a server to do it.

It comes from the operating system's randomness, never from a seed. What a server adds is
`privacy/aggregator.py`.
"""

from polyurn.errors import ParameterError
from polyurn.privacy.noise import Noise, discrete_gaussian, noised
from polyurn.wire import Noised, S


def with_noise(query: Noised[S], sums: S, *, n_adders: int, noise: Noise = discrete_gaussian) -> S:
    """A sum of answers with the noise of everybody who is in it.

    Parameters
    ----------
    query : Noised
    sums : Statistics
        The answer to the inner query, of one client or several.
    n_adders : int
        Local: how many clients are in it; each adds all of the noise. Distributed: how many nodes; each
        adds its share.
    noise : function of (n_numbers, scale), optional
        For tests.
    """
    vector = noised(sums.to_vector(), query.share, n_adders=max(n_adders, 1), noise=noise)
    return query.shaped(vector)


def check_reporters(query: Noised[S], n_nodes: int) -> None:
    """Refuse to add fewer nodes than a distributed question needs: the sum would have too little noise.

    Raises
    ------
    ParameterError
    """
    if query.trust == "distributed" and n_nodes < query.n_reporters:
        raise ParameterError(
            f"expected at least {query.n_reporters} nodes, each with its share of noise, got {n_nodes}"
        )
