// The list of the pairs that were found, a page at a time; all of it comes from the shelf.

const NARROW = 14; // letters of a name that is not broken in two
const BINS = 24;
const EXCERPT = 90; // signs of a reference in the list

/** How many were found, in words. */
function countOf(shelf, found) {
  const of = shelf.source.whole ? "the whole release" : "the sample";
  const read = shelf.filled < shelf.rows ? `, ${number(shelf.filled)} of ${number(shelf.rows)} loaded so far` : "";
  return `${number(found.rows.length)} of ${number(shelf.filled)} pairs of ${of}${read}`;
}

/** The table of a page. */
function listPart(shelf, found, asks) {
  const last = Math.max(1, Math.ceil(found.rows.length / LISTED));
  const at = Math.min(Math.max(1, Math.trunc(Number(asks.page)) || 1), last);
  const rows = found.rows.slice((at - 1) * LISTED, at * LISTED);
  if (!rows.length) return [emptyPart(shelf, asks)];
  const shown = shelf.scored ? shelf.metrics : [];
  const heads = [
    "pair",
    "scenario, strategy, reference",
    "word margin",
    ...shown.map((one) => made("bdi", { class: one.name.length < NARROW ? "narrow" : null }, one.name)),
  ];
  const cells = rows.map((row) => rowCells(shelf, row, shown, asks));
  const legend = shown.length
    ? made(
        "p",
        { class: "small legend" },
        "Scores: the ",
        made("strong", { class: "kind" }, "empathetic"),
        " reply is above, the ",
        made("strong", { class: "cold" }, "apathetic"),
        " one below. The reply that the metric prefers is bold and coloured.",
      )
    : null;
  return [
    legend,
    table("Pairs", heads, cells, { class: "list" }),
    pagesNav(at, last, (page) => linkTo(asks, { page: page > 1 ? page : undefined })),
  ];
}

/** The beginning of a text, cut between words. */
const excerpt = (text) => (text.length > EXCERPT ? `${text.slice(0, text.lastIndexOf(" ", EXCERPT) + 1 || EXCERPT).trimEnd()} …` : text);

function rowCells(shelf, row, metrics, asks) {
  const id = shelf.ids[row];
  const crisis = shelf.value("flag", row) === NONE ? null : made("span", { class: "tag flagged" }, shelf.value("flag", row));
  const margin = Number.isNaN(shelf.margin[row]) ? "–" : figure(shelf.margin[row], 2);
  return [
    made("a", { href: linkTo(asks, { id }), "data-id": id }, word(id)),
    [
      made("span", { class: "first" }, word(shelf.value("scenario", row)), crisis ? [" ", crisis] : null),
      made("span", { class: "second" }, word(shelf.value("phase", row)), " · ", word(shelf.value("strategy", row))),
      made("bdi", { class: "excerpt" }, excerpt(shelf.references[row])),
    ],
    margin,
    ...metrics.map((metric) => scoreCell(shelf, metric, row)),
  ];
}

/** The scores of both replies, the better one bold. */
function scoreCell(shelf, metric, row) {
  const better = preferred(shelf, metric, "released", row);
  const one = (variant, sign, name) => {
    const value = figure(shelf.scoreOf(metric.name, variant, row));
    const wins = better === sign && metric["higher is better"] !== null;
    const told = made("span", { class: "vh" }, `${variant}${wins ? ", preferred" : ""}: `);
    return made("span", { class: `${name}${wins ? " better" : ""}` }, told, value);
  };
  return [one("empathetic", 1, "kind"), one("apathetic", -1, "cold")];
}

function emptyPart(shelf, asks) {
  if (!shelf.rows) return made("p", { class: "note" }, shelf.source.whole ? "This release has no pairs." : "This page holds no sample.");
  const part = made(
    "p",
    { class: "note" },
    "No pair matches all of these filters. ",
    made("a", { href: fragmentOf({}) }, "Clear filters"),
  );
  part.append(shelf.source.whole || !Object.keys(filtersOf(asks)).length ? "." : ", or load the whole release: this page shows a sample of it.");
  return part;
}

/** How the word margins of what was found are spread: bars, and in words. */
function spreadPart(shelf, rows) {
  const values = Float32Array.from(rows, (row) => shelf.margin[row])
    .filter((value) => !Number.isNaN(value))
    .sort();
  if (!values.length) return [made("p", { class: "quiet small" }, "No pair in the results has a word margin.")];
  const [least, middle, most] = [values[0], values[values.length >> 1], values.at(-1)];
  const bins = new Uint32Array(BINS);
  for (const value of values) bins[Math.min(BINS - 1, Math.floor((BINS * (value - least)) / (most - least || 1)))] += 1;
  const highest = Math.max(...bins);
  const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({
    viewBox: `0 0 ${BINS} 10`,
    preserveAspectRatio: "none",
    class: "spread",
    "aria-hidden": "true",
  }))
    chart.setAttribute(name, value);
  for (const [at, count] of bins.entries()) {
    const bar = document.createElementNS(chart.namespaceURI, "rect");
    const height = (10 * count) / highest;
    for (const [name, value] of Object.entries({ x: at + 0.1, y: 10 - height, width: 0.8, height })) bar.setAttribute(name, value);
    chart.append(bar);
  }
  return [chart, made("p", { class: "quiet small" }, `Results: ${figure(least, 2)} to ${figure(most, 2)}, median ${figure(middle, 2)}.`)];
}
