// The page: settings, pictures, files. What is drawn is in draws.js.
"use strict";

const FILLS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7ae6", "#b8a800", "#b4bac4"];
const CUTS = ["Dirichlet(0.1)", "Dirichlet(0.5)", "Dirichlet(1)", "Shards, 2 per client", "IID"];
const LIKE = { mdm: "Held out: this model", dirichlet: "Held out: one Dirichlet", iid: "Held out: IID" };
const SHOWN = 500, NAMED = 24;
const LABEL_NAMES = ["label", "labels", "class", "category", "target", "species", "y"], MOST_LABELS = 100;
const DEFAULTS = { federation: "celeba_hair", labels: "10 equal", clients: "100", size: "", match: "rank", seed: "1" };
const MATCHES = {
  rank: "The most frequent category becomes your most frequent label.",
  marginal: "As by rank; all clients together have your shares.",
  random: "Categories become labels at random, by the seed.",
};
const $ = (id) => document.getElementById(id);
const FIELDS = ["labels", "clients", "size", "match", "seed"];
const models = {};
let zoo = null; // what the file holds: {version, federations: {name: {card, ...packed}}}
let chosen = DEFAULTS.federation;
let table = null; // an open CSV: {name, head, rows}, and of its column of labels {column, points, text}

// ---- settings and labels
function labelsOf(text) { // {names, shares}: a share each, "10 equal", or a name and a count each
  const equal = text.trim().match(/^(\d+)\s+equal$/i);
  if (equal) {
    const n = Number(equal[1]);
    if (n >= 2 && n <= 2000) return { names: [...Array(n).keys()].map(String), shares: Array(n).fill(1 / n) };
    throw new Error("Expected 2 to 2,000 equal labels.");
  }
  const entries = text.split(text.trim().includes("\n") ? /\n/ : /,/).map((x) => x.trim()).filter(Boolean);
  const pairs = entries.map((entry, i) => {
    const [, name, number] = entry.match(/^(?:(.*\S)\s*[\s:=]\s*)?([\d.]+(?:e-?\d+)?)$/i) || [];
    if (!(Number(number) >= 0 && Number(number) < Infinity)) throw new Error(`Expected a share, or a name and a count, got “${entry}”.`);
    return [name || String(i), Number(number)];
  });
  const total = sum(pairs.map((pair) => pair[1]));
  if (pairs.filter((pair) => pair[1] > 0).length < 2) throw new Error("Expected at least two labels that have points.");
  return { names: pairs.map((pair) => pair[0]), shares: pairs.map((pair) => pair[1] / total) };
}
function settings() {
  for (const name of ["clients", "size", "seed"]) {
    if (!$(name).checkValidity()) throw new Error(`${document.querySelector(`label[for=${name}]`).textContent}: ${$(name).validationMessage}`);
  }
  if (table && !table.points && !$("labels").value) throw new Error(`Choose the column of ${table.name} that has the labels.`);
  const { names, shares } = labelsOf($("labels").value);
  return { names, shares, clients: Number($("clients").value), size: $("size").value === "" ? null : Number($("size").value),
    match: $("match").value, seed: Number($("seed").value) };
}
const model = (name) => models[name] = models[name] || unpacked(zoo.federations[name]);
function clientsLike(name, given, n) { // used by the pictures, the files and the tests
  return clientsOf(federation(model(name), given).draw, n, generator(given.seed, 0));
}
function populations(given, n) {
  const laid = federation(model(chosen), given), { shares } = given;
  const found = [clientsOf(laid.draw, n, generator(given.seed, 0))];
  for (const [i, alpha] of [0.1, 0.5, 1].entries()) {
    const alphas = shares.map((s) => s > 0 ? alpha : 0);
    found.push(clientsOf((u) => multinomial(u, laid.drawSize(u), dirichlet(u, alphas)), n, generator(given.seed, i + 1)));
  }
  found.push(shards(shares, n, laid.mean, generator(given.seed, 4)));
  found.push(clientsOf((u) => multinomial(u, laid.drawSize(u), shares), n, generator(given.seed, 5)));
  return found;
}

// ---- pictures
function colour(j) { // nine colours, then the same ones darker and lighter
  const round = Math.floor(j / FILLS.length), hex = FILLS[j % FILLS.length];
  if (round === 0) return hex;
  const towards = round % 2 ? 0 : 255, part = 1 - 0.6 ** Math.ceil(round / 2);
  return `rgb(${[1, 3, 5].map((i) => Math.round(parseInt(hex.slice(i, i + 2), 16) * (1 - part) + towards * part)).join(" ")})`;
}
function inOrder(clients) { // by the label that a client has most of, then by how much of it
  const keyed = clients.map((counts) => {
    const most = counts.indexOf(Math.max(...counts));
    return [most, counts[most] / (sum(counts) || 1), counts];
  });
  return keyed.sort((a, b) => a[0] - b[0] || b[1] - a[1]).map((one) => one[2]);
}
function strip(canvas, clients) { // a column for each client, its labels from the bottom up
  const scale = window.devicePixelRatio || 1, width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(canvas.clientHeight * scale);
  canvas.width = width; canvas.height = height;
  const context = canvas.getContext("2d"), step = width / clients.length, gap = step > 5 * scale ? scale : 0;
  inOrder(clients).forEach((counts, i) => {
    const left = Math.round(i * step), right = Math.max(Math.round((i + 1) * step) - gap, left + 1), total = sum(counts);
    let low = height;
    counts.forEach((n, j) => {
      if (n === 0) return;
      const high = low - height * n / total;
      context.fillStyle = colour(j);
      context.fillRect(left, Math.floor(high), right - left, Math.ceil(low) - Math.floor(high));
      low = high;
    });
  });
}
function effective(clients) { // labels in effect: exp of the entropy, the mean over clients
  return sum(clients.map((counts) => {
    const total = sum(counts);
    return Math.exp(-sum(counts.map((n) => n > 0 ? n / total * Math.log(n / total) : 0)));
  })) / clients.length;
}
function element(tag, attributes = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...inside);
  return made;
}
function redraw() { // a setting that cannot be leaves no picture, line or file of an earlier one
  let problem = "";
  about();
  try {
    const given = settings(), n = Math.min(given.clients, SHOWN), found = populations(given, n);
    found.forEach((clients, i) => {
      const title = i === 0 ? `Like ${zoo.federations[chosen].card.title}` : CUTS[i - 1], sizes = clients.map(sum).sort((a, b) => a - b);
      const facts = `${effective(clients).toFixed(1)} labels in effect · ${sizes[0].toLocaleString("en")} to ` +
        `${sizes[n - 1].toLocaleString("en")} points, half at most ${sizes[Math.floor((n - 1) / 2)].toLocaleString("en")}`;
      const row = $("rows").children[i], canvas = row.querySelector("canvas");
      row.querySelector("h3").textContent = title;
      row.querySelector("span").textContent = facts;
      canvas.setAttribute("aria-label", `${n} clients, ${title}: ${facts}`);
      strip(canvas, clients);
    });
    legend(given);
    describe(given);
  } catch (error) { problem = error.message; }
  $("message").textContent = problem;
  for (const id of ["view", "lines"]) $(id).style.visibility = problem ? "hidden" : "visible";
  $("save").disabled = problem !== "" || !isOpen();
  $("save-counts").disabled = problem !== "";
}
const isOpen = () => table && table.text === $("labels").value;
function legend({ names, shares }) {
  const shown = names.slice(0, NAMED).map((name, j) => {
    const swatch = element("i");
    swatch.style.background = colour(j);
    return element("li", {}, swatch, `${name}: ${(100 * shares[j]).toFixed(shares[j] < 0.0995 ? 1 : 0)} %`);
  });
  if (names.length > NAMED) shown.push(element("li", {}, `and ${names.length - NAMED} more`));
  $("legend").replaceChildren(...shown);
}
function about() { // the federation by itself
  const { card, warnings } = zoo.federations[chosen], { mean, splits } = model(chosen);
  $("title").textContent = `Clients like ${card.title}`;
  $("what").textContent = `A client is ${card.client}; a category is ${card.category}. Learned from ` +
    `${card.n_clients.toLocaleString("en")} clients, as a mixture of ${card.n_components} components.`;
  $("size-help").textContent = `Empty: its own, ${Number(mean.toPrecision(3)).toLocaleString("en")}.`;
  $("match").options[1].disabled = Boolean(splits);
  $("match").options[1].text = `by rank, with your shares${splits ? " (not this federation)" : ""}`;
  $("match-help").textContent = MATCHES[$("match").value];
  $("card").replaceChildren(...facts(card).flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
  $("warnings").replaceChildren(...warnings.map((text) => element("li", {}, text)));
}
function describe(given) {
  $("reading").textContent = `A column is a client, a colour is a label; clients are in the order of their most frequent label. ` +
    `All rows but the shards have the sizes of the federation's clients.` +
    (given.clients > SHOWN ? ` The first ${SHOWN} of ${given.clients.toLocaleString("en")} clients are shown.` : "");
  $("save-help").textContent = isOpen()
    ? "partition.json has, for each client, the rows of your CSV that it holds, counted from 0."
    : "partition.json needs an open CSV. clients.csv does not: `polyurn partition labels.csv clients.csv` makes a partition of it.";
  lines(given).forEach(([, text], i) => { $("lines").children[i].querySelector("pre").textContent = text; });
}
const interval = ({ value, low, high }, n) => `${value.toFixed(n)} (${low.toFixed(n)} to ${high.toFixed(n)})`;
const alphaOf = (card) => String(Number(Number(card.profile.heterogeneity.alpha.value).toPrecision(2))).replace("Infinity", "∞");
function facts(card) {
  const likeness = ({ energy_ratio: ratio, energy_null: [low, high], auc }) =>
    `energy ratio ${ratio.toFixed(2)} (true clients: ${low.toFixed(2)} to ${high.toFixed(2)}), AUC ${interval(auc, 2)}`;
  return [
    ["A client", card.client], ["A category", card.category], ["Source", card.source],
    ["Date of the data", card.date], ["Licence of the data", card.licence],
    ["Clients", `${card.n_clients.toLocaleString("en")}, of ${card.sizes[0].toLocaleString("en")} to ` +
      `${card.sizes[2].toLocaleString("en")} points, half at most ${card.sizes[1].toLocaleString("en")}`],
    ["Categories, components", `${card.n_categories}, ${card.n_components}`],
    ["Best α of a Dirichlet", alphaOf(card)],
    ["Dispersion", `${interval(card.profile.dispersion, 2)}: ${zoo.federations[chosen].words}`],
    ...Object.entries(card.likeness).map(([name, found]) => [LIKE[name] || name, likeness(found)]),
  ];
}

// ---- what to take along
const quoted = (text) => /^[\w.\-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
function lines({ clients, size, match, seed }) {
  const { name: file, column } = table && table.points ? table : { name: "labels.csv", column: "label" };
  const sizeOption = size === null ? "" : ` --mean-size ${size}`, sizeArgument = size === null ? "" : `mean_size=${size}, `;
  const category = column === "label" ? "" : ` --category ${quoted(column)}`;
  return [
    ["Shell", `polyurn partition ${quoted(file)} zoo:${chosen}${category} --clients ${clients} --match ${match}${sizeOption} ` +
      `--seed ${seed} -o partition.json`],
    ["Python", `import polyurn as pu\nlabels = pu.read_table(${JSON.stringify(file)})[${JSON.stringify(column)}].to_pylist()\n` +
      `clients = pu.zoo.like("${chosen}", labels, match="${match}", ${sizeArgument}rng=${seed})\n` +
      `partition = pu.partition(labels, clients, n_clients=${clients}, rng=${seed})\n` +
      `pu.save_partition(partition, "partition.json")`],
    ["Flower", `from polyurn.integrations.flwr_datasets import MDMPartitioner\n` +
      `partitioner = MDMPartitioner.like("${chosen}", ${JSON.stringify(column)}, match="${match}", ${sizeArgument}` +
      `num_partitions=${clients}, seed=${seed})`],
  ];
}
function download(name, text, type) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  $("status").textContent = `${name} was written.`;
}
function partitionText() { // as polyurn partition writes it
  const given = settings(), counts = clientsLike(chosen, given, given.clients);
  const held = partitioned(counts, table.points, generator(given.seed, 7));
  return `{${held.map((rows, i) => `\n"${i}": [${rows.join(", ")}]`).join(",")}\n}\n`;
}
function countsText() {
  const given = settings(), cell = (name) => /[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
  const rows = clientsLike(chosen, given, given.clients).flatMap((counts, i) =>
    counts.map((n, j) => n > 0 ? `${i},${cell(given.names[j])},${n}\n` : ""));
  return `client,category,count\n${rows.join("")}`;
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page opened as a file may not have a clipboard
    const field = document.body.appendChild(element("textarea", { value: text }));
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  $("status").textContent = "Copied.";
}

// ---- a CSV
function parsed(text) { // rows of cells; a cell in quotes may have commas, quotes and ends of lines
  const rows = [[]];
  const cells = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|\r|$)/gy;
  for (let found; cells.lastIndex < text.length && (found = cells.exec(text));) {
    rows[rows.length - 1].push(found[1].startsWith('"') ? found[1].slice(1, -1).replaceAll('""', '"') : found[1]);
    if (found[2] !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || (row.length === 1 && row[0] !== ""));
}
async function open(file) {
  const rows = parsed((await file.text()).replace(/^\ufeff/, "")), head = rows.shift() || [];
  if (rows.length < 2) { $("message").textContent = `${file.name} has no rows: expected a CSV with a line of names.`; return; }
  table = { name: file.name, head, rows };
  $("column").replaceChildren(...head.map((name, i) => element("option", { value: i, textContent: name })));
  $("column").value = columnOfLabels(head, rows);
  $("column-field").hidden = false;
  if ($("column").selectedIndex >= 0) take(); else { $("labels").value = ""; changed(); }
}
function columnOfLabels(head, rows) { // one that is called so, else of texts, else of whole numbers; -1: the reader chooses
  const fitness = head.map((name, at) => {
    const named = LABEL_NAMES.indexOf(name.trim().toLowerCase()), values = new Set();
    for (const row of rows) if (values.add(row[at] ?? "").size > MOST_LABELS) return 0;
    const all = [...values], isLike = (pattern) => all.some((v) => pattern.test(v.trim()));
    if (named >= 0) return 10 - named;
    return all.length < 2 || all.length > rows.length / 2 || isLike(/^-?\d*\.\d/) ? 0 : isLike(/[^\d-]/) ? 2 : 1;
  }), best = Math.max(...fitness);
  return best > 0 ? fitness.lastIndexOf(best) : -1;
}
function take() { // the chosen column's values become the labels: numbers in their order, names sorted
  const at = Number($("column").value), of = new Map();
  table.rows.forEach((row, i) => { const v = row[at] ?? ""; if (!of.has(v)) of.set(v, []); of.get(v).push(i); });
  const values = [...of.keys()], numbers = values.every((v) => /^-?\d+$/.test(v));
  values.sort(numbers ? (a, b) => a - b : (a, b) => (a < b ? -1 : 1));
  Object.assign(table, { column: table.head[at], points: values.map((v) => of.get(v)) });
  table.text = values.map((v) => `${v.replaceAll("\n", " ")} ${of.get(v).length}`).join("\n");
  $("labels").value = table.text;
  changed();
}

// ---- the address has all settings
function remember() {
  const now = { federation: chosen, ...Object.fromEntries(FIELDS.map((id) => [id, $(id).value])) };
  history.replaceState(null, "", `#${new URLSearchParams(now)}`);
}
function recall() {
  const asked = { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  chosen = asked.federation in zoo.federations ? asked.federation : DEFAULTS.federation;
  for (const id of FIELDS) $(id).value = asked[id];
  if ($("match").selectedIndex < 0) $("match").value = DEFAULTS.match;
  document.querySelectorAll("[name=federation]").forEach((radio) => { radio.checked = radio.value === chosen; });
}
function changed() { redraw(); remember(); }
// ---- the beginning
function listed(name) {
  const { card } = zoo.federations[name], canvas = element("canvas", { ariaHidden: "true" });
  const radio = element("input", { type: "radio", name: "federation", value: name, onchange: () => { chosen = name; changed(); } });
  return element("label", { className: "federation" }, radio, element("span", {}, card.title,
    element("small", {}, `${card.n_clients.toLocaleString("en")} clients, α ${alphaOf(card)}`)), canvas);
}
function drawList() {
  const shares = Array(8).fill(1 / 8);
  document.querySelectorAll(".federation").forEach((label) => {
    const name = label.querySelector("input").value;
    strip(label.querySelector("canvas"), clientsLike(name, { shares, match: "rank", size: null, seed: 3 }, 24));
  });
}
async function begin() {
  const packed = Uint8Array.from(atob($("zoo").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  zoo = await new Response(stream).json();
  $("version").textContent = zoo.version;
  $("list").replaceChildren(...Object.keys(zoo.federations).map(listed));
  for (let i = 0; i <= CUTS.length; i++) {
    const head = element("div", {}, element("h3"), element("span"));
    $("rows").append(element("div", { className: "row" }, head, element("canvas", { role: "img" })));
  }
  for (const name of ["Shell", "Python", "Flower"]) {
    const pre = element("pre", { tabIndex: 0 });
    const button = element("button", { type: "button", onclick: () => copy(pre.textContent) }, "Copy", element("span", { className: "sr" }, ` the ${name} lines`));
    $("lines").append(element("div", { className: "line" }, element("div", {}, name, button), pre));
  }
  $("settings").onsubmit = (event) => event.preventDefault();
  FIELDS.forEach((id) => $(id).addEventListener("input", changed));
  $("column").addEventListener("input", take);
  $("file").addEventListener("change", () => $("file").files[0] && open($("file").files[0]));
  $("save").onclick = () => download("partition.json", partitionText(), "application/json");
  $("save-counts").onclick = () => download("clients.csv", countsText(), "text/csv");
  $("copy-link").onclick = () => { remember(); copy(location.href); };
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
  }
  addEventListener("hashchange", () => { recall(); redraw(); });
  addEventListener("resize", redraw);
  recall();
  drawList();
  redraw();
  document.body.dataset.ready = "yes";
}
begin();
