"""A client in plain Python, written from docs/wire.md alone: it imports nothing of polyurn, nor NumPy.

Slow and short: the formulas of the page, one loop each. `answer(message, counts, bucket)` takes a
query's bytes and returns those of the answer; questions about style need features and labels as well.
"""

import json
import math
import struct


def answer(
    message: bytes,
    counts: list[int],
    bucket: float,
    features: list[list[float]] | None = None,
    labels: list[int] | None = None,
) -> bytes:
    header, numbers = unpacked(message, b"PUQU")
    bins = [Bins(**record) for record in filled(header["bins"], numbers)]
    query = filled(header["query"], numbers)
    if query["kind"] in ("style_moments", "bounded_style"):
        said = style(query, features, labels)
    else:
        said = reply(query, bins, counts, bucket, (features, labels))
    return packed(b"PUAN", {"answer_to": query["kind"]}, said)


def unpacked(message, magic):
    found, version, length = struct.unpack_from("<4sII", message)
    assert (found, version) == (magic, 2)
    numbers = struct.unpack_from(f"<{(len(message) - 12 - length) // 8}d", message, 12 + length)
    return json.loads(message[12 : 12 + length]), numbers


def packed(magic, header, numbers):
    text = json.dumps(header).encode()
    text += b" " * (-(12 + len(text)) % 8)
    return (
        struct.pack("<4sII", magic, 2, len(text))
        + text
        + struct.pack(f"<{len(numbers)}d", *numbers)
    )


def filled(value, numbers):
    """The same JSON with every array in its place."""
    if isinstance(value, list):
        return [filled(one, numbers) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"at", "shape"}:
        return shaped(numbers[value["at"] :], value["shape"])
    return {name: filled(one, numbers) for name, one in value.items()}


def shaped(numbers, shape):
    n, *rest = shape
    if not rest:
        return list(numbers[:n])
    each = math.prod(rest)
    return [shaped(numbers[i * each :], rest) for i in range(n)]


class Bins:
    def __init__(self, edges, fine, shares):
        self.edges, self.fine, self.shares = edges, fine, shares
        self.n_bins, self.largest = len(edges) - 1, edges[-1] - 1

    def of(self, n):
        return sum(edge <= n for edge in self.edges) - 1

    def log_inside(self, n):
        f = sum(edge <= n for edge in self.fine) - 1
        return log(self.shares[f] / (self.fine[f + 1] - self.fine[f]))


def log(x):
    return math.log(x) if x > 0 else -math.inf


def reply(query, bins, c, bucket, records=None):
    kind, n = query["kind"], sum(c)
    if kind == "batch":
        return [x for q in query["queries"] for x in reply(q, bins, c, bucket)]
    if kind == "part":
        said = reply(query["query"], bins, c, bucket)
        return said if query["low"] <= bucket < query["high"] else [0.0] * len(said)
    if kind == "spread":
        c = crossed(query["column"], *records, 1)
        return unit([0.1**0.5, *(0.9**0.5 * v / n for v in c)])
    if kind in BOUNDED:
        return unit(bounded(query, bins, c))
    if kind == "scaled":
        said = reply(query["query"], bins, c, bucket, records)
        factors = scales(query["query"])
        return unit([x * s for x, s in zip(said, factors, strict=True)])
    if kind == "contrast":
        if "column" in query:
            c = crossed(query["column"], *records, query["n_labels"])
        return contrast(query["n_labels"], query["n_values"], c, n)
    if kind == "score":
        logs = [e_step(*model(m, bins), c, n)[1] for m in query["mdms"]]
        return [1.0, *logs, *(a * b for a in logs for b in logs)]
    if kind == "update":
        return update(model(query["mdm"], bins), c, n)
    if kind == "expect":
        return expect(query["curvature"], model(query["parameters"], bins), c)
    mine = bins[query["size_bins"]]
    if kind == "survey":
        return survey(query["pairs"], features(c, n, mine), mine, n)
    if kind == "group":
        return group(query["directions"], query["offsets"], mine, c, n)
    assert (kind, query["n_components"]) == ("initialise", 1)  # otherwise a random one
    x = [v / n for v in c]
    return [1.0, *one_at(mine.of(n), mine.n_bins), *x, *(v * v for v in x)]


def crossed(column, features, labels, n_labels):
    """A histogram of label × bin of a column of the records; with one label, of its bins."""
    n_bins = len(column["edges"]) + 1
    c = [0] * (n_labels * n_bins)
    for row, label in zip(features, labels, strict=True):
        mine = sum(edge <= row[column["index"]] for edge in column["edges"])
        c[(label if n_labels > 1 else 0) * n_bins + mine] += 1
    return c


def scales(query):
    n_labels, n_both = query["n_labels"], query["n_labels"] * query["n_values"]
    lengths = (1, n_both, *[n_labels] * 4, 1, 1, 3)
    parts = (0.05, 0.5, 0.02, 0.02, 0.13, 0.18, 0.01, 0.05, 0.04)
    return [p**0.5 for p, n in zip(parts, lengths, strict=True) for _ in range(n)]


def unit(vector):
    norm = math.sqrt(sum(x * x for x in vector))
    factor = min(1.0, (1 - 2**-30) / norm) if norm else 1.0
    return [math.trunc(x * factor * 2**28) / 2**28 for x in vector]


def one_at(place, n, value=1.0):
    return [value if i == place else 0.0 for i in range(n)]


def features(c, n, bins):
    x = [v / n for v in c]
    return [*x, sum(v * v for v in x), math.log(n) / max(math.log(bins.largest), 1)]


def survey(pairs, y, bins, n):
    if pairs:
        products = [y[i] * y[j] for i in range(len(y)) for j in range(i + 1)]
    else:
        products = [v * v for v in y]
    return [1.0, *y, *products, *one_at(bins.of(n), bins.n_bins)]


def group(directions, offsets, bins, c, n):
    k_all, y = len(offsets), features(c, n, bins)
    scores = [
        sum(d * v for d, v in zip(directions[k], y, strict=True)) + offsets[k] for k in range(k_all)
    ]
    k = scores.index(max(scores))
    sizes, proportions = [], []
    for row in range(k_all):
        sizes += one_at(bins.of(n) if row == k else -1, bins.n_bins)
        proportions += y[: len(c)] if row == k else [0.0] * len(c)
    return [1.0, *sizes, *proportions, *one_at(k, k_all, y[len(c)])]


def contrast(n_labels, n_values, c, n):
    if n < 2:
        return [0.0] * (6 + n_labels * n_values + 4 * n_labels)
    by_label = [c[y * n_values : (y + 1) * n_values] for y in range(n_labels)]
    by_value = [sum(row[f] for row in by_label) for f in range(n_values)]
    both = n * (n - 1)
    m = sum(v * (v - 1) for v in c) / both
    d = sum(sum(row) * (sum(row) - 1) for row in by_label) / both - m
    return [
        1.0, *(v / n for v in c),
        *(sum((v / n) ** 2 for v in row) for row in by_label),
        *((sum(row) / n) ** 2 for row in by_label),
        *(sum(row) * (sum(row) - 1) / both for row in by_label),
        *(sum(v * (v - 1) for v in row) / both for row in by_label),
        sum((v / n) ** 2 for v in by_value),
        sum(v * (v - 1) for v in by_value) / both,
        m * m, m * d, d * d,
    ]  # fmt: skip


def model(record, bins):
    sizes = record["sizes"]
    return bins[sizes["bins"]], record["weights"], record["alphas"], sizes["masses"]


def e_step(bins, tau, alphas, masses, c, n):
    b, logs = bins.of(n), []
    for t, alpha, mass in zip(tau, alphas, masses, strict=True):
        a0 = sum(alpha)
        terms = [log(t), log(mass[b])]
        terms += [log((m + 1) / (a0 + m)) for m in range(n)]
        terms += [
            log((a + m) / (m + 1)) for a, count in zip(alpha, c, strict=True) for m in range(count)
        ]
        logs.append(sum(terms))
    peak = max(logs)
    ratios = [math.exp(v - peak) for v in logs]
    return [r / sum(ratios) for r in ratios], peak + math.log(sum(ratios)) + bins.log_inside(n)


def rises(omega, alpha, c, power, scaled):
    """ω Σ_{m<c} (1 / (α + m))^power, or of α / (α + m)."""
    if omega == 0:
        return 0.0
    return omega * sum(((alpha if scaled else 1.0) / (alpha + m)) ** power for m in range(c))


def update(parameters, c, n):
    bins, _, alphas, _ = parameters
    omega, log_q = e_step(*parameters, c, n)
    sizes = [x for w in omega for x in one_at(bins.of(n), bins.n_bins, w)]
    u = [
        rises(w, a, v, 1, False)
        for w, row in zip(omega, alphas, strict=True)
        for a, v in zip(row, c, strict=True)
    ]
    return [
        1.0,
        log_q,
        *omega,
        *sizes,
        *u,
        *(rises(w, sum(row), n, 1, False) for w, row in zip(omega, alphas, strict=True)),
    ]


def expect(curvature, parameters, c):
    n = sum(c)
    mine, tau, alphas, _ = parameters
    omega, log_q = e_step(*parameters, c, n)
    rows = list(zip(omega, alphas, strict=True))
    said = [1.0, log_q]
    said += [x for w in omega for x in one_at(mine.of(n), mine.n_bins, w)]
    said += [w if v > 0 else 0.0 for w in omega for v in c]
    for power in (1, 2):
        said += [
            rises(w, a, v, power, True) for w, row in rows for a, v in zip(row, c, strict=True)
        ]
    for power in (1, 2):
        said += [rises(w, sum(row), n, power, True) for w, row in rows]
    h = hessian(curvature, omega, tau, alphas, c, n)
    return said + [h[i][j] for i in range(len(h)) for j in range(i + 1)]


def hessian(asked, omega, tau, alphas, c, n):
    places = [(k, j) for k in asked for j in range(len(c) + 1)]  # the last j is log τ
    return [[second(a, b, omega, tau, alphas, c, n) for b in places] for a in places]


def second(a, b, omega, tau, alphas, c, n):
    (k, i), (other, j), last = a, b, len(c)
    g = gradient(k, i, alphas, c, n) * gradient(other, j, alphas, c, n)
    if k != other:
        return -omega[k] * omega[other] * g + (tau[k] * tau[other] if i == j == last else 0.0)
    if i == j == last:
        return omega[k] * (1 - omega[k]) * g - tau[k] * (1 - tau[k])
    d = 0.0
    if i < last and j < last:
        a0 = sum(alphas[k])
        d = alphas[k][i] / a0 * alphas[k][j] / a0 * rises(1.0, a0, n, 2, True)
        if i == j:
            d += gradient(k, i, alphas, c, n) - rises(1.0, alphas[k][i], c[i], 2, True)
    return omega[k] * (1 - omega[k]) * g + omega[k] * d


def gradient(k, j, alphas, c, n):
    if j == len(c):
        return 1.0
    a0 = sum(alphas[k])
    return rises(1.0, alphas[k][j], c[j], 1, True) - alphas[k][j] / a0 * rises(1.0, a0, n, 1, True)


# ---------------------------------------------------------------------------------- bounded queries

BOUNDED = (
    "bounded_survey", "sketch", "whitened_score", "differences", "size_membership", "shares", "describe",
    "standing",
)  # fmt: skip


def bounded(query, bins, c):
    kind, n = query["kind"], sum(c)
    p = [v / n for v in c]
    kappa = sum(v * (v - 1) for v in c) / (n * (n - 1)) if n > 1 else 0.0
    if kind == "shares":
        parts = [bounded(q, bins, c) for q in query["queries"]]
        return [s**0.5 * v for s, part in zip(query["shares"], parts, strict=True) for v in part]
    if kind == "bounded_survey":
        mine = bins[query["size_bins"]]
        assert n <= mine.largest  # otherwise so many points at random
        sizes = one_at(mine.of(n), mine.n_bins, 0.2**0.5)
        return [0.1**0.5, 0.3**0.5 * kappa, *sizes, *(0.4**0.5 * v for v in p)]
    if kind == "describe":
        mine = bins[query["size_bins"]]
        held = [(v > 0) / len(c) ** 0.5 for v in c]
        blocks = ([1.0], [kappa], [kappa**2], one_at(mine.of(n), mine.n_bins), p, held)
        return in_parts((0.1, 0.2, 0.05, 0.15, 0.3, 0.2), blocks)
    if kind == "standing":
        return standing(query, bins, c, n)
    if kind == "sketch":
        prototypes, directions, radius = query["prototypes"], query["directions"], query["radius"]
        likeness = [sum(d * v for d, v in zip(row, p, strict=True)) for row in directions]
        mine = likeness.index(max(likeness))
        rest = cut([v - w for v, w in zip(p, prototypes[mine], strict=True)], radius)
        row = [0.3**0.5, *(0.6**0.5 * v / radius for v in rest), 0.1**0.5 * kappa]
        return [v for i in range(len(likeness)) for v in (row if i == mine else [0.0] * len(row))]
    if kind == "differences":
        logs = [mixture_e_step(**m, c=c, n=n)[1] for m in query["mixtures"]]
        gains = [(v - logs[0]) / b for v, b in zip(logs[1:], query["clips"], strict=True)]
        return [max(-1.0, min(1.0, g)) / len(gains) ** 0.5 for g in gains]
    tau, alphas = query["mixture"]["weights"], query["mixture"]["alphas"]
    omega, _ = mixture_e_step(tau, alphas, c, n)
    if kind == "size_membership":
        mine = bins[query["size_bins"]]
        return [v for w in omega for v in one_at(mine.of(n), mine.n_bins, w)]
    score = []
    for k, w in enumerate(omega):
        score += [w * gradient(k, j, alphas, c, n) for j in range(len(c))]
        score.append(w - tau[k])
    whitener, clip = query["whitener"], query["clip"]
    z = [
        sum(s * row[i] for s, row in zip(score, whitener, strict=True))
        for i in range(len(whitener[0]))
    ]
    return [v / clip for v in cut(z, clip)]


def standing(query, bins, c, n):
    own, tau, alphas, masses = model(query["mdm"], bins)
    mine, yardstick = bins[query["size_bins"]], query["yardstick"]
    omega, log_q = e_step(own, tau, alphas, masses, c, n)
    of_size = sum(t * mass[own.of(n)] for t, mass in zip(tau, masses, strict=True))
    log_q -= math.log(of_size) + own.log_inside(n)
    b = mine.of(n)
    off = (log_q - yardstick["centres"][b]) / (5 * yardstick["spread"])
    fit = max(-1.0, min(1.0, off))
    low = float(log_q < yardstick["floors"][b])
    blocks = ([1.0], omega, one_at(b, mine.n_bins), [v / n for v in c], [fit], [fit**2], [low])
    return in_parts((0.1, 0.25, 0.15, 0.25, 0.15, 0.05, 0.05), blocks)


def in_parts(parts, blocks):
    return [part**0.5 * v for part, block in zip(parts, blocks, strict=True) for v in block]


def cut(vector, longest):
    norm = math.sqrt(sum(v * v for v in vector))
    return [v * min(1.0, longest / norm) for v in vector] if norm > 0 else vector


def mixture_e_step(weights, alphas, c, n):
    """As the other E-step, with sizes that are alike in all components."""
    return e_step(AnySize, weights, alphas, [[1.0]] * len(weights), c, n)


class AnySize:
    of = staticmethod(lambda n: 0)
    log_inside = staticmethod(lambda n: 0.0)


# ------------------------------------------------------------------------------ questions about style


def style(query, features, labels):
    clip, space = query.get("clip"), query["space"]
    radius, centres, basis = space["radius"], space["centres"], space["basis"]
    whitening, n_labels, d, m = space["whitening"], len(centres), len(basis), len(basis[0])
    z, n_far, n = [], 0, len(labels)
    for f, label in zip(features, labels, strict=True):
        x = [sum(f[i] * basis[i][k] for i in range(d)) - centres[label][k] for k in range(m)]
        point = [sum(w * v for w, v in zip(row, x, strict=True)) for row in whitening[label]]
        n_far += math.hypot(*point) > radius
        z.append(cut(point, radius))
    mean = [sum(p[k] for p in z) / n for k in range(m)]
    if clip is not None:  # used for the mean itself and for h z̄' only
        cut_mean = cut(mean, clip**0.5)
    between, within = matrix(m), matrix(m)
    shares = [labels.count(label) / n for label in range(n_labels)]
    for label in set(labels):
        mine = [p for p, other in zip(z, labels, strict=True) if other == label]
        centre = [sum(p[k] for p in mine) / len(mine) for k in range(m)]
        add(between, [c - v for c, v in zip(centre, mean, strict=True)], len(mine) / n)
        for p in mine:
            add(within, [v - c for v, c in zip(p, centre, strict=True)], 1 / n)
    first = matrix(m)
    add(first, mean, 1.0)
    three = [1 / n, sum(s * s for s in shares), len(set(labels)) / n]
    matrices = [lower(first), lower(between), lower(within)]
    products = [[a * b for b in shares] for a in shares]
    if clip is None:
        said = [1.0, *three, n_far / n, *mean, *(v for one in matrices for v in one)]
        label_effect = [*shares, *lower(products), *(s * v for s in shares for v in mean)]
        return said + (label_effect if query["label_effect"] else [])
    parts = (
        (0.04, 0.04, 0.02, 0.05, 0.45, 0.40)
        if query["label_effect"]
        else (0.04, 0.06, 0.02, 0.08, 0.80)
    )
    p = [part**0.5 for part in parts]
    together = cut([v for one in (first, between, within) for v in weighted(one)], clip)
    said = [p[0], *(p[1] / 3**0.5 * v for v in three), p[2] * n_far / n]
    said += [p[3] * v / clip**0.5 for v in cut_mean] + [p[4] * v / clip for v in together]
    if query["label_effect"]:
        said += [p[5] * 0.1**0.5 * s for s in shares]
        said += [p[5] * 0.3**0.5 * v for v in weighted(products)]
        said += [p[5] * 0.6**0.5 * s * v / clip**0.5 for s in shares for v in cut_mean]
    return unit(said)


def matrix(m):
    return [[0.0] * m for _ in range(m)]


def add(to, vector, weight):
    for i, a in enumerate(vector):
        for j, b in enumerate(vector):
            to[i][j] += weight * a * b


def lower(square):
    return [square[i][j] for i in range(len(square)) for j in range(i + 1)]


def weighted(square):
    return [
        square[i][j] * (1.0 if i == j else 2**0.5) for i in range(len(square)) for j in range(i + 1)
    ]
