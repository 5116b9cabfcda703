// What judges said of the texts of a pair: annotations, comparisons, strategies.

const MEAN = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

/** Rows by what they have in common, in the order in which they come. */
function grouped(rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const name = key(row);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return groups;
}

const byJudge = (rows) => grouped(rows, (row) => `${row.teacher}, by the rubric “${row.rubric}”`);

function judgedParts([annotations, comparisons, strategies], variants) {
  return [
    annotations.length
      ? section("Ratings by judges", ...[...byJudge(annotations)].map(([who, rows]) => annotationsPart(who, rows, variants)))
      : null,
    comparisons.length
      ? section("Preferences of judges", ...[...byJudge(comparisons)].map(([who, rows]) => comparisonsPart(who, rows)))
      : null,
    strategies.length
      ? section("Strategies named by judges", ...[...byJudge(strategies)].map(([who, rows]) => strategiesPart(who, rows)))
      : null,
  ];
}

/** The values of a judge: a row a criterion, a column a text. */
function annotationsPart(who, rows, variants) {
  const shown = [...variants, null].filter((name) => rows.some((row) => (row.variant ?? null) === name));
  const cells = [...grouped(rows, (row) => row.criterion)].map(([criterion, some]) => [
    word(criterion),
    ...shown.map((name) => {
      const values = some.filter((row) => (row.variant ?? null) === name).map((row) => row.value);
      return values.length
        ? [figure(MEAN(values), 2), values.length > 1 ? made("span", { class: "quiet small" }, ` of ${values.length}`) : null]
        : "–";
    }),
  ]);
  return [
    made("h3", {}, word(who)),
    table(`Ratings of ${who}`, ["criterion", ...shown.map((name) => (name === null ? "whole dialogue" : nameOf(name)))], cells, {
      class: "compact",
    }),
    reasonsPart(rows.map((row) => [`${row.variant ? nameOf(row.variant) : "dialogue"}, ${row.criterion}: ${figure(row.value, 2)}`, row.reason])),
  ];
}

/** Which text a judge preferred where either was shown first. */
function comparisonsPart(who, rows) {
  const name = (variant) => (variant ? nameOf(variant) : "tie");
  const cells = rows.map((row) => [
    `${name(row.variant_1)} and ${name(row.variant_2)}`,
    word(name(row.winner_12)),
    word(name(row.winner_21)),
    row.consistent ? "yes" : "no",
    made("strong", {}, word(name(row.winner))),
  ]);
  const reasons = rows.flatMap((row) => [
    [`${name(row.variant_1)} shown first: ${name(row.winner_12)}`, row.reason_12],
    [`${name(row.variant_2)} shown first: ${name(row.winner_21)}`, row.reason_21],
  ]);
  return [
    made("h3", {}, word(who)),
    table(`Comparisons of ${who}`, ["texts", "preferred when the first is shown first", "preferred when the second is shown first", "same in both orders", "preferred overall"], cells, {
      class: "compact spoken",
    }),
    reasonsPart(reasons),
  ];
}

const STRATEGIES_SHOWN = 3; // of those that a judge thought right

function strategiesPart(who, rows) {
  const names = about.strategies.flatMap((one) => one.names);
  const cells = rows.map((row) => [nameOf(row.variant), word(row.named)]);
  const ideal = (rows[0].ideal ?? [])
    .map((chance, at) => [chance, names[at] ?? `strategy ${at + 1}`])
    .sort(([one], [other]) => other - one);
  const told = ideal.slice(0, STRATEGIES_SHOWN).map(([chance, name], at) => [at ? ", " : "", word(name), ` ${Math.round(100 * chance)} %`]);
  return [
    made("h3", {}, word(who)),
    ideal.length ? made("p", {}, "Most likely strategies before the judge saw a reply: ", told, ".") : null,
    table(`Strategies of ${who}`, ["text", "named"], cells, { class: "compact spoken" }),
  ];
}

/** What judges wrote before they judged, folded. */
function reasonsPart(pairs) {
  const given = pairs.filter(([, reason]) => reason);
  if (!given.length) return null;
  return folded(
    "Reasons",
    made(
      "dl",
      {},
      given.map(([about, reason]) => [made("dt", {}, word(about)), made("dd", {}, text(reason, OF_OTHERS))]),
    ),
  );
}
