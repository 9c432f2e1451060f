// Clients of a mixture of Dirichlet-multinomials, laid over other labels: the law of polyurn.zoo.like.
"use strict";

// ---- random numbers: sfc32 (Doty-Humphrey, PractRand), seeded with a seed and a stream
function generator(seed, stream) {
  let a = seed | 0, b = Math.floor(seed / 4294967296) | 0, c = stream | 0, d = 1;
  const word = () => {
    const t = (a + b + d) | 0;
    d = (d + 1) | 0; a = b ^ (b >>> 9); b = (c + (c << 3)) | 0; c = ((c << 21) | (c >>> 11)) + t | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 15; i++) word();
  return () => (word() * 2097152 + (word() >>> 11) + 0.5) / 9007199254740992; // in (0, 1), 53 bits
}
const normal = (u) => Math.sqrt(-2 * Math.log(u())) * Math.cos(2 * Math.PI * u());
function gamma(u, shape) { // Marsaglia and Tsang (2000), for shapes of at least 1
  const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(u), v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(u()) < 0.5 * x * x + d * (1 - v + Math.log(v))) return d * v;
  }
}
function dirichlet(u, alphas) { // a gamma variate of a small shape underflows: it is kept as a log
  const logs = alphas.map((a) => a > 0 ? Math.log(gamma(u, a + 1)) + Math.log(u()) / a : -Infinity);
  const top = Math.max(...logs);
  return logs.map((x) => Math.exp(x - top));
}
function binomial(u, n, p) { // a large n is halved at the median of its uniforms (Devroye 1986, X.4)
  let hits = 0;
  while (n > 24) {
    if (p <= 0) return hits;
    if (p >= 1) return hits + n;
    const i = (n + 1) >> 1, x = gamma(u, i), y = x / (x + gamma(u, n + 1 - i));
    if (y <= p) { hits += i; n -= i; p = (p - y) / (1 - y); } else { n = i - 1; p /= y; }
  }
  while (n-- > 0) if (u() < p) hits++;
  return hits;
}
function multinomial(u, n, shares) {
  const rest = new Float64Array(shares.length + 1), counts = new Array(shares.length).fill(0);
  for (let j = shares.length - 1; j >= 0; j--) rest[j] = rest[j + 1] + shares[j];
  for (let j = 0; j < shares.length && n > 0; j++) {
    if (shares[j] > 0) { counts[j] = rest[j + 1] > 0 ? binomial(u, n, shares[j] / rest[j]) : n; n -= counts[j]; }
  }
  return counts;
}
function pick(u, cumulative) { // the first position whose cumulative mass is above a uniform share of all
  const x = u() * cumulative[cumulative.length - 1];
  let low = 0, high = cumulative.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (cumulative[middle] > x) high = middle; else low = middle + 1; }
  return low;
}
function shuffle(u, list) {
  for (let i = list.length - 1; i > 0; i--) { const j = Math.floor(u() * (i + 1)); [list[i], list[j]] = [list[j], list[i]]; }
  return list;
}
const sum = (list) => list.reduce((a, b) => a + b, 0);
const running = (list) => { let total = 0; return list.map((x) => (total += x)); };

// ---- a model of the file: numbers were written as whole ones
function unpacked(packed) {
  const alphas = packed.alphas.map((row) => row.map((x) => x === null ? 0 : Math.exp(x / 30)));
  const edges = [1];
  for (const width of packed.widths) edges.push(edges[edges.length - 1] + width);
  const masses = packed.masses.map((row) => packed.profile.map((share, f) => row[packed.bins[f]] * share));
  const model = { weights: packed.weights, alphas, order: packed.order, splits: packed.splits, sizes: { edges, masses } };
  model.mean = sum(model.weights.map((w, k) => w * meanSize(edges, masses[k]))) / sum(model.weights);
  return model;
}
const meanSize = (edges, masses) => sum(masses.map((mass, f) => mass * (edges[f] + edges[f + 1] - 1) / 2)) / sum(masses);

// ---- other labels: MDM.relabelled
function destinations(order, shares, rule, u) { // [category, label, part of the category]
  const present = [...shares.keys()].filter((j) => shares[j] > 0);
  const source = rule === "random" ? shuffle(u, [...order]) : order;
  const target = rule === "random" ? shuffle(u, present) : present.sort((a, b) => shares[b] - shares[a] || a - b);
  if (source.length >= target.length) return source.map((j, i) => [j, target[i % target.length], 1]);
  const totals = {}, of = (i) => source[i % source.length];
  target.forEach((label, i) => { totals[of(i)] = (totals[of(i)] || 0) + shares[label]; });
  return target.map((label, i) => [of(i), label, shares[label] / totals[of(i)]]);
}
function withMarginal(alphas, masses, shares) { // proportional fitting, Deming and Stephan (1940)
  const concentrations = alphas.map(sum), total = sum(masses), rows = masses.map((m) => m / total);
  const joint = alphas.map((row, k) => row.map((a) => rows[k] * a / concentrations[k]));
  for (let step = 0; step < 20000; step++) {
    const now = shares.map((_, j) => sum(joint.map((row) => row[j])));
    if (Math.max(...now.map((x, j) => Math.abs(x - shares[j]))) < 1e-7) {
      return joint.map((row, k) => { const s = sum(row); return row.map((x) => concentrations[k] * x / s); });
    }
    joint.forEach((row, k) => {
      row.forEach((x, j) => { row[j] = now[j] > 0 ? x * shares[j] / now[j] : 0; });
      const s = sum(row);
      row.forEach((x, j) => { row[j] = x * rows[k] / s; });
    });
  }
  throw new Error("No mixture with these kinds of clients has your shares: match by rank.");
}

// ---- other sizes: MDM.resized
function resized(model, mean) {
  let factor = mean / model.mean, found = null;
  for (let i = 0; i < 40; i++) { // sizes are whole and at least 1, so that no formula has the factor
    found = scaled(model.sizes, factor);
    const now = sum(model.weights.map((w, k) => w * meanSize(found.edges, found.masses[k]))) / sum(model.weights);
    if (Math.abs(now / mean - 1) <= 1e-3) break;
    factor *= now > 1 ? mean / now : 0.5;
  }
  return found;
}
function scaled({ edges, masses }, factor) { // every size times a factor, rounded, and at least 1
  const last = edges.length - 1, at = edges.map((e) => Math.max(Math.round(factor * (e - 0.5) + 0.5), 1));
  const all = [...new Set([1, Math.max(at[last], 2), ...at])].sort((a, b) => a - b);
  const where = edges.slice(0, -1).map((e, f) => {
    const centre = Math.min(Math.max(Math.round(factor * (e + edges[f + 1] - 1) / 2), 1), all[all.length - 1] - 1);
    let i = 0;
    while (i + 2 < all.length && all[i + 1] <= centre) i++;
    return i;
  });
  const moved = masses.map((row) => {
    const out = new Array(all.length - 1).fill(0);
    row.forEach((mass, f) => { out[where[f]] += mass; });
    return out;
  });
  return { edges: all, masses: moved };
}

// ---- populations: each has draw(u), a client's counts of the labels
function federation(model, { shares, match, size, seed }) {
  if (model.splits && match === "marginal") throw new Error("This federation's clients cannot be given your shares: match by rank.");
  const parts = destinations(model.order, shares, match, generator(seed, 99));
  let alphas = model.alphas.map((row) => {
    const out = shares.map(() => 0);
    for (const [j, label, part] of parts) out[label] += row[j] * part;
    return out;
  });
  const sizes = size === null ? model.sizes : resized(model, size);
  if (match === "marginal") {
    const masses = model.weights.map((w, k) => w * meanSize(model.sizes.edges, model.sizes.masses[k]));
    alphas = withMarginal(alphas, masses, shares);
  }
  const components = running(model.weights), ofSizes = sizes.masses.map(running);
  const anyone = (u) => {
    const k = pick(u, components), f = pick(u, ofSizes[k]);
    return [k, sizes.edges[f] + Math.floor(u() * (sizes.edges[f + 1] - sizes.edges[f]))];
  };
  const draw = (u) => {
    const [k, n] = anyone(u);
    return model.splits ? laidOver(u, k, downTheTree(u, model.splits, k, n), model, parts, shares.length)
      : multinomial(u, n, dirichlet(u, alphas[k]));
  };
  return { draw, drawSize: (u) => anyone(u)[1], mean: size === null ? model.mean : size };
}
function downTheTree(u, splits, k, n) { // model/splits.py: nodes 0 to J - 1 are inner ones, then categories
  const nInner = splits.children.length, totals = new Array(2 * nInner + 1).fill(0);
  totals[0] = n;
  splits.children.forEach(([left, right], node) => {
    const here = totals[node], [a, b] = splits.concentrations[k][node].map((x) => x === null ? 0 : Math.exp(x / 30));
    if (here === 0) return;
    const x = splits.values ? bent(u, here, [a, b], splits.values[k][node], splits.knots)
      : a === 0 ? 0 : b === 0 ? here : multinomial(u, here, dirichlet(u, [a, b]))[0];
    totals[left] = x; totals[right] = here - x;
  });
  return totals.slice(nInner);
}
function bent(u, n, sides, values, knots) { // p(x) is proportional to f_l(x) f_r(n - x)
  const logs = sides.map((a, side) => {
    const out = [0];
    for (let c = 1; c <= n; c++) out.push(out[c - 1] + Math.log((a + c - 1) / (c * (sides[0] + sides[1]))));
    return out.map((x, c) => x + hats(c, values[side], knots));
  });
  const total = logs[0].map((x, c) => x + logs[1][n - c]), top = Math.max(...total);
  return pick(u, running(total.map((x) => Math.exp(x - top))));
}
function hats(count, values, knots) { // between two knots the value is on a line; beyond the last one it stays
  let i = knots.length - 1;
  while (knots[i] > count) i--;
  if (i === knots.length - 1) return values[i] / 15;
  const part = (count - knots[i]) / (knots[i + 1] - knots[i]);
  return (values[i] * (1 - part) + values[i + 1] * part) / 15;
}
function laidOver(u, k, drawn, model, parts, nLabels) { // Relabelled.sample
  const counts = new Array(nLabels).fill(0), of = {};
  for (const [j, label, part] of parts) (of[j] = of[j] || []).push([label, part]);
  drawn.forEach((n, j) => {
    const alphas = of[j].map(([, part]) => model.alphas[k][j] * part);
    const given = of[j].length === 1 ? [n] : multinomial(u, n, dirichlet(u, alphas));
    of[j].forEach(([label], i) => { counts[label] += given[i]; });
  });
  return counts;
}
const clientsOf = (draw, n, u) => Array.from({ length: n }, () => draw(u));
function shards(shares, n, mean, u, perClient = 2) { // McMahan et al. (2017)
  const available = shares.map((s) => Math.round(s * n * mean)), bounds = [0, ...running(available)];
  const total = bounds[bounds.length - 1], cut = (i) => Math.floor(total * i / (n * perClient));
  const order = shuffle(u, [...Array(n * perClient).keys()]);
  return Array.from({ length: n }, (_, i) => {
    const counts = shares.map(() => 0);
    for (const shard of order.slice(i * perClient, (i + 1) * perClient)) {
      counts.forEach((_, j) => {
        counts[j] += Math.max(0, Math.min(cut(shard + 1), bounds[j + 1]) - Math.max(cut(shard), bounds[j]));
      });
    }
    return counts;
  });
}

// ---- which points each client holds: partition, with replace and reuse
function partitioned(counts, points, u) {
  const urns = points.map((rows) => [...rows]);
  return counts.map((row) => {
    const held = [];
    row.forEach((n, j) => {
      const urn = urns[j];
      for (let i = 0; i < n; i++) {
        const from = i % urn.length, other = from + Math.floor(u() * (urn.length - from));
        [urn[from], urn[other]] = [urn[other], urn[from]];
        held.push(urn[from]);
      }
    });
    return shuffle(u, held);
  });
}
