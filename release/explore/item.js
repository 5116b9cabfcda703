// A pair: what came before it, its reference and variants side by side, and all that is known of them.

const ABOUT_VARIANT = {
  apathetic: ["Apathetic", "near the reference"],
  near_empathetic: ["Near empathetic", "near the reference"],
  empathetic: ["Empathetic", "far from the reference"],
  far_apathetic: ["Far apathetic", "far from the reference"],
};
const NEAR_ONES = ["apathetic", "near_empathetic"];
const NAMES = {
  reference: "reference",
  apathetic: "apathetic",
  near_empathetic: "near empathetic",
  empathetic: "empathetic",
  far_apathetic: "far apathetic",
};

/** The name of a variant as the page writes it; of what is none, what it calls itself. */
const nameOf = (variant) => (Object.hasOwn(NAMES, variant) ? NAMES[variant] : variant);

/** All rows about a pair; null where the source does not have it. */
async function readPair(shelf, id) {
  const at = shelf.place(id);
  const split = at < 0 ? null : shelf.value("split", at);
  const find = (config, where) => shelf.tables.find(config, "pair_id", id, where);
  // A row of the controls holds the pair too.
  const [control] = await find("controls", split);
  const [row] = control ? [control] : await find("pairs", split);
  if (!row) return null;
  const [items, candidates, ...judged] = await Promise.all([
    shelf.scored && at >= 0 ? shelf.scoresOf(at) : find("items", null),
    find("candidates", null),
    ...["annotations", "comparisons", "strategies"].map((config) => find(config, row.split)),
  ]);
  return { row, controlled: Boolean(control), items, candidates, judged };
}

/** The screen of a pair. */
function pairPart(found, asks, removed) {
  const { row, controlled } = found;
  const margin = found.items?.[0]?.[MARGIN];
  const cells = controlled ? ["apathetic", "near_empathetic", "far_apathetic", "empathetic"] : ["apathetic", "empathetic"];
  const facts = [
    ["scenario", word(row.scenario)],
    ["phase", word(row.phase)],
    ["strategy", word(row.strategy)],
    ["split", row.split],
    ["turn", String(row.turn)],
    ["word margin", Number.isFinite(margin) ? figure(margin, 2) : "none"],
    ["written by", word(row.model ?? row.source)],
  ];
  const said = made(
    "dl",
    { class: "facts" },
    facts.map(([name, value]) => made("div", {}, made("dt", {}, name), made("dd", {}, value))),
  );
  const before = section(
    "Context",
    text(row.description, { class: "words quiet" }),
    row.context?.length ? transcript(row.context) : made("p", { class: "quiet" }, "This is the first turn."),
  );
  const reference = made(
    "section",
    { class: "variant reference" },
    made("h2", {}, "Reference"),
    made("p", { class: "quiet small" }, word(row.strategy)),
    text(row.reference),
    ownFigures([["toxicity", row.toxicity?.reference]]),
  );
  const grid = made(
    "div",
    { class: `cells ${controlled ? "four" : "two"}` },
    cells.map((name) => variantPart(row, name, removed)),
  );
  const link = made("a", { href: linkTo(filtersOf(asks), { dialogue: row.dialogue_id }) }, "Show the whole dialogue");
  return [
    flagNote(row.flags),
    said,
    made(
      "div",
      { class: "pair" },
      made("div", { class: "before" }, before, made("p", {}, link)),
      made("div", { class: "replies" }, reference, grid),
    ),
    scoresPart(found, cells),
    ...judgedParts(found.judged, ["reference", ...cells]),
    candidatesPart(found.candidates),
    section(
      "Source",
      made(
        "p",
        { class: "quiet" },
        row.source === "seed" ? "Seed dialogue of the scenario, written by " : "Dialogue by ",
        word(row.model ?? row.source),
        "; near variants by ",
        word(row.near_model),
        "; far variants by ",
        word(row.far_model),
        ".",
      ),
    ),
  ];
}

/** A variant with its words marked, what the checks measured, and how it was made. */
function variantPart(row, name, removed) {
  const near = NEAR_ONES.includes(name);
  const released = name === "apathetic" || name === "empathetic";
  const measured = released
    ? {
        "edit ratio": name === "apathetic" ? row.apathetic_edit_ratio : null,
        overlap: name === "empathetic" ? row.empathetic_overlap : null,
        toxicity: row.toxicity?.[name],
      }
    : { "edit ratio": row[`${name}_edit_ratio`], overlap: row[`${name}_overlap`], toxicity: row[`${name}_toxicity`] };
  const ways = {
    apathetic: [
      ["manner", row.apathetic_manner],
      ["made by", row.apathetic_method],
    ],
    empathetic: [
      ["device", row.empathetic_device],
      ["strategy", row.empathetic_strategy],
    ],
    far_apathetic: [["manner", row.far_apathetic_manner]],
    near_empathetic: [],
  }[name].filter(([, value]) => value);
  ways.push(...[["voice", near ? row.helper_voice : row.far_voice]].filter(([, value]) => value));
  const [title, where] = ABOUT_VARIANT[name];
  return made(
    "section",
    { class: `variant ${name.endsWith("empathetic") ? "kind" : "cold"}${near ? "" : " far"}`, "data-variant": name },
    made("h2", {}, title),
    made(
      "p",
      { class: "quiet small" },
      where,
      ways.map(([way, value]) => [" · ", `${way}: `, word(value)]),
    ),
    marked(row.reference, row[name], removed && near),
    ownFigures(Object.entries(measured)),
  );
}

function ownFigures(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined);
  return known.length
    ? made(
        "dl",
        { class: "figures" },
        known.map(([name, value]) => made("div", {}, made("dt", {}, name), made("dd", {}, figure(value)))),
      )
    : null;
}

const WINS = { 1: "empathetic", 0: "tie", "-1": "apathetic" };

/** The scores of all texts by metric, and what each metric prefers at what closeness. */
function scoresPart({ items, controlled }, cells) {
  if (!items.length) return null;
  const byVariant = Object.fromEntries(items.map((one) => [one.variant, one]));
  const score = (metric, variant) => byVariant[variant]?.[metric.name] ?? NaN;
  const contrasts = Object.entries({ released: "as released", near: "near", far: "far" }).filter(
    ([name]) => controlled || name === "released",
  );
  const rows = about.metrics.map((metric) => {
    const won = contrasts.map(([name]) => {
      if (metric["higher is better"] === null) return "–";
      const [kind, cold] = CONTRASTS[name].map((variant) => score(metric, variant));
      const sign = Math.sign(metric["higher is better"] ? kind - cold : cold - kind);
      return Number.isNaN(sign) ? "–" : made("span", { class: { 1: "kind", "-1": "cold", 0: "" }[sign] }, WINS[sign]);
    });
    return [
      made("span", { title: metric.signature }, word(metric.name)),
      ...["reference", ...cells].map((name) => figure(score(metric, name))),
      ...won,
    ];
  });
  const heads = ["metric", "reference", ...cells.map((name) => NAMES[name]), ...contrasts.map(([, name]) => `prefers, ${name}`)];
  return section(
    "Scores",
    table("Scores of each text by metric", heads, rows),
    folded(
      "Settings of the metrics",
      made(
        "dl",
        {},
        about.metrics.map((one) => [made("dt", {}, word(one.name)), made("dd", {}, made("code", {}, one.signature))]),
      ),
    ),
  );
}

/** What was refused before this pair was whole. */
function candidatesPart(candidates) {
  if (!candidates.length) return null;
  const chosen = candidates.some((one) => (one.reasons ?? []).includes("not_chosen"));
  return section(chosen ? "Candidates that were not released" : "Refused candidates", candidatesTable(candidates, false));
}

function candidatesTable(candidates, linked) {
  const rows = candidates.map((one) => [
    linked ? made("a", { href: fragmentOf({ id: one.pair_id }) }, word(one.pair_id)) : word(nameOf(one.variant)),
    ...(linked ? [word(nameOf(one.variant))] : []),
    String(one.attempt),
    made(
      "span",
      { class: "reasons" },
      (one.reasons ?? []).map((reason) => made("span", { class: "tag" }, word(reason))),
    ),
    text(one.text),
  ]);
  return table("Refused candidates", [...(linked ? ["pair"] : []), "variant", "attempt", "reasons", "text"], rows, {
    class: "texts",
  });
}
