// What is looked for: kept in the fragment of the address, asked for in a form, found among the rows of the shelf.

const LISTED = 20; // pairs a page
const FACET_KEYS = [...Object.keys(FACETS), "split"];
const NUMBERS = ["narrower", "wider", "least", "most"];
const FILTER_KEYS = ["words", ...FACET_KEYS, ...NUMBERS, "metric", "of", "up", "down", "at"];
const PLACE_KEYS = ["id", "dialogue", "view", "page", "reason"];

/** What the address asks for; what it does not know, it leaves out. */
function asksOf(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const asks = {};
  for (const key of [...PLACE_KEYS, ...FILTER_KEYS]) if (given.get(key)) asks[key] = given.get(key);
  for (const key of NUMBERS) if (key in asks && !Number.isFinite(Number(asks[key]))) delete asks[key];
  return asks;
}

/** The fragment of what is asked for. */
function fragmentOf(asks) {
  const given = new URLSearchParams();
  for (const key of [...PLACE_KEYS, ...FILTER_KEYS]) if (asks[key]) given.set(key, asks[key]);
  return `#${given}`;
}

/** The address of what is asked for now, with changes; undefined takes away. */
const linkTo = (asks, changed) => fragmentOf({ ...asks, ...changed });

const filtersOf = (asks) => Object.fromEntries(FILTER_KEYS.filter((key) => asks[key]).map((key) => [key, asks[key]]));

/** The conditions of what is asked for, as [key, test of a row]. */
function conditions(shelf, asks) {
  const tests = [];
  for (const key of FACET_KEYS) {
    if (!asks[key]) continue;
    const { codes, values } = shelf.facets[key];
    const right = values.map((value) => (key === "flag" ? value.split(" ").includes(asks[key]) : value === asks[key]));
    tests.push([key, (row) => right[codes[row]]]);
  }
  const within = (key, value, least, most) => {
    if (asks[least] === undefined && asks[most] === undefined) return;
    // Columns are kept in single precision, so bounds are too.
    const [from, to] = [Math.fround(asks[least] ?? -Infinity), Math.fround(asks[most] ?? Infinity)];
    tests.push([key, (row) => value(row) >= from && value(row) <= to]);
  };
  const words = (asks.words ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) {
    const has = (row) => {
      const text = shelf.references[row].toLowerCase();
      return words.every((one) => text.includes(one));
    };
    tests.push(["words", has]);
  }
  if (!shelf.scored) return tests;
  within("margin", (row) => shelf.margin[row], "narrower", "wider");
  const named = (key) => shelf.metrics.find((one) => one.name === asks[key]);
  const metric = named("metric");
  const scores = metric && shelf.scores[metric.name][VARIANTS.includes(asks.of) ? asks.of : "empathetic"];
  if (scores) within("score", (row) => scores[row], "least", "most");
  const [up, down, at] = [named("up"), named("down"), Object.hasOwn(CONTRASTS, asks.at) ? asks.at : "released"];
  if (up) tests.push(["disagreement", (row) => preferred(shelf, up, at, row) > 0]);
  if (down) tests.push(["disagreement", (row) => preferred(shelf, down, at, row) < 0]);
  return tests;
}

/** The rows that fit, and how many there are by facet and value if that facet alone were free. */
function search(shelf, asks) {
  const tests = conditions(shelf, asks);
  const counts = Object.fromEntries(FACET_KEYS.map((key) => [key, new Uint32Array(shelf.facets[key].values.length)]));
  const rows = [];
  for (let row = 0; row < shelf.filled; row += 1) {
    let failed = null;
    let failures = 0;
    for (const [key, test] of tests) {
      if (test(row)) continue;
      failed = key;
      failures += 1;
      if (failures > 1) break;
    }
    if (failures > 1) continue;
    if (!failures) rows.push(row);
    for (const key of FACET_KEYS) if (!failures || failed === key) counts[key][shelf.facets[key].codes[row]] += 1;
  }
  return { rows, counts };
}

/** The options of a facet as [value, label, count], in the order of the taxonomy where it has one. */
function optionsOf(shelf, key, counts) {
  const found = new Map();
  for (const [code, value] of shelf.facets[key].values.entries()) {
    for (const one of key === "flag" ? value.split(" ") : [value]) found.set(one, (found.get(one) ?? 0) + counts[key][code]);
  }
  const order = {
    strategy: about.strategies.flatMap((one) => one.names),
    phase: about.strategies.map((one) => one.phase.toLowerCase()),
    split: ["train", "validation", "test"],
  }[key];
  const rank = (value) => (value === NONE ? 1e6 : (order?.indexOf(value) ?? 0));
  return [...found].sort(([one], [other]) => rank(one) - rank(other) || one.localeCompare(other, "en"));
}

const NOTHING = { flag: "no flag", manner: "none planned", device: "none planned" };

/** Puts what is asked for, and how many there are of what could be, into the form; quietly: not into what the reader is at. */
function fillForm(form, shelf, asks, counts, quietly = false) {
  const free = (field) => !quietly || field !== document.activeElement;
  for (const key of FACET_KEYS) {
    const field = form.elements[key];
    if (!free(field)) continue;
    const options = optionsOf(shelf, key, counts);
    // Nothing to choose from: every pair is the same.
    field.closest("label").hidden = options.length < 2 && !asks[key];
    if (asks[key] && !options.some(([value]) => value === asks[key])) options.push([asks[key], 0]);
    const listed = options.map(
      ([value, count]) => new Option(`${value === NONE ? (NOTHING[key] ?? "none") : value} (${number(count)})`, value),
    );
    field.replaceChildren(new Option("any", ""), ...listed);
    field.value = asks[key] ?? "";
  }
  const fields = ["words", "metric", "of", "up", "down", "at", ...NUMBERS].map((key) => form.elements[key]);
  for (const field of fields.filter(free)) field.value = asks[field.name] ?? field.dataset.usual ?? "";
  form.querySelector("[data-part=scores]").hidden = !shelf.metrics.length;
  form.querySelector("[data-part=scores]").disabled = !shelf.scored;
  form.querySelector("[data-part=waiting]").hidden = shelf.scored;
}

/** The metrics to choose from; of those that can disagree, the ones that say which way is better. */
function fillMetrics(form, metrics) {
  for (const key of ["metric", "up", "down"]) {
    const fit = metrics.filter((one) => key === "metric" || one["higher is better"] !== null);
    form.elements[key].replaceChildren(
      new Option(key === "metric" ? "choose a metric" : "any", ""),
      ...fit.map((one) => new Option(one.name, one.name)),
    );
  }
}

/** What a form asks for. */
function asksOfForm(form) {
  const asks = {};
  for (const key of FILTER_KEYS) {
    const value = form.elements[key].value.trim();
    if (value && value !== form.elements[key].dataset.usual) asks[key] = value;
  }
  if (!asks.metric) for (const key of ["of", "least", "most"]) delete asks[key];
  if (!asks.up && !asks.down) delete asks.at;
  return asks;
}
