// What lies around the pairs: the dialogue that they are of, and what was left out.

/** A dialogue with the pairs of its turns; null where the source does not have it. */
async function readDialogue(shelf, id) {
  const [row] = await shelf.tables.find("dialogues", "dialogue_id", id);
  if (!row) return null;
  const find = (config) => shelf.tables.find(config, "dialogue_id", id, row.split);
  const [pairs, controls, annotations] = await Promise.all(["pairs", "controls", "annotations"].map(find));
  return { row, pairs, controls, annotations: annotations.filter((one) => !one.pair_id) };
}

function dialoguePart({ row, pairs, controls, annotations }, asks) {
  const byTurn = new Map(pairs.map((one) => [Number(one.turn), one]));
  const others = new Map(controls.map((one) => [one.pair_id, one]));
  const turns = row.turns.map((turn, at) => {
    const pair = byTurn.get(at);
    const speaker = turn.role === "seeker" ? "Seeker" : "Helper";
    return made(
      "li",
      { class: turn.role === "seeker" ? "seeker" : "helper" },
      made("span", { class: "speaker" }, speaker, turn.strategy ? [" · ", word(turn.phase), " · ", word(turn.strategy)] : null),
      text(turn.text),
      pair ? turnPair({ ...pair, ...others.get(pair.pair_id) }, others.has(pair.pair_id), asks) : null,
    );
  });
  const helpers = row.turns.filter((turn) => turn.role !== "seeker").length;
  return [
    flagNote(row.flags),
    text(row.description, { class: "words lead" }),
    made(
      "p",
      { class: "quiet" },
      word(row.scenario),
      ` · ${row.split} · ${number(row.turns.length)} turns; ${number(pairs.length)} of ${number(helpers)} helper turns have a pair here`,
    ),
    made("ol", { class: "transcript dialogue", role: "list" }, turns),
    annotations.length
      ? section("Ratings by judges", ...[...byJudge(annotations)].map(([who, rows]) => annotationsPart(who, rows, Object.keys(NAMES))))
      : null,
  ];
}

function turnPair(pair, controlled, asks) {
  const cells = controlled ? ["apathetic", "near_empathetic", "far_apathetic", "empathetic"] : ["apathetic", "empathetic"];
  return folded(
    "Show variants",
    made(
      "div",
      { class: "cells two" },
      cells.map((name) => variantPart(pair, name, false)),
    ),
    made("p", {}, made("a", { href: linkTo(filtersOf(asks), { id: pair.pair_id }) }, "Open ", word(pair.pair_id))),
  );
}

/** The rows of refused candidates: those of a reason, or all; `at` is the page. */
async function readCandidates(shelf, reason, at) {
  const [candidates] = shelf.tables.of("candidates");
  if (!candidates) return { total: 0, rows: [], counts: new Map() };
  const { groups } = await candidates.footer();
  shelf.reasons ??= (async () => {
    const columns = [];
    for (const group of groups.keys()) columns.push(...((await candidates.columns(["reasons"], group)).reasons ?? []));
    return columns;
  })();
  let reasons;
  try {
    reasons = await shelf.reasons;
  } catch (error) {
    shelf.reasons = undefined; // so that another try can succeed
    throw error;
  }
  const counts = new Map();
  const places = [];
  for (const [place, some] of reasons.entries()) {
    for (const one of some ?? []) counts.set(one, (counts.get(one) ?? 0) + 1);
    if (!reason || some?.includes(reason)) places.push(place);
  }
  const last = Math.max(1, Math.ceil(places.length / LISTED));
  const page = Math.min(at, last);
  const rows = [];
  for (const place of places.slice((page - 1) * LISTED, page * LISTED)) {
    const group = groups.findIndex(({ start, count }) => place < start + count);
    rows.push((await candidates.rows(group))[place - groups[group].start]);
  }
  return { total: places.length, rows, counts, page, last };
}

const MOST_LISTED = 200; // rows of a list of the manifest
const TOLD = [
  ["planned", "dialogues were planned"],
  ["accepted", "were accepted"],
  ["rejected", "were rejected by the checks"],
  ["missing", "are missing: no valid answer was received"],
  ["spares_left_out", "were accepted beyond the quota of their scenario and excluded"],
];

/** The screen of what was left out and why: numbers and lists of the manifest, then the candidates. */
function leftPart(candidates, asks) {
  const left = about.left_out;
  const counts = TOLD.filter(([key]) => left[key] || key === "planned" || key === "accepted").map(([key, what]) => [
    number(left[key] ?? 0),
    what,
  ]);
  const listed = (name, heads, rows) => {
    if (!rows.length) return null;
    const more = rows.length - MOST_LISTED;
    const told = more > 0 ? made("p", { class: "quiet" }, `${number(more)} more are in manifest.json.`) : null;
    return section(name, table(name, heads, rows.slice(0, MOST_LISTED), { class: "compact spoken" }), told);
  };
  return [
    made(
      "dl",
      { class: "facts large" },
      counts.map(([count, what]) => made("div", {}, made("dt", {}, what), made("dd", {}, count))),
    ),
    listed(
      "Rejected dialogues by reason",
      ["reason", "dialogues"],
      Object.entries(left.rejected_by_reason).map(([reason, count]) => [word(reason), number(count)]),
    ),
    listed(
      "Refused samples by reason",
      ["text and reason", "samples"],
      Object.entries(left.samples_refused ?? {}).map(([reason, count]) => [word(reason), number(count)]),
    ),
    listed(
      "Withdrawn",
      ["dialogue or pair", "date", "kind", "reason"],
      left.withdrawn.map((one) => [word(one.dialogue_id ?? one.pair_id), one.date, word(one.kind ?? ""), text(one.reason, OF_OTHERS)]),
    ),
    listed(
      "Removed by reviewers",
      ["dialogue", "reasons"],
      (left.removed ?? []).map((one) => [word(one.dialogue_id), text((one.reasons ?? []).join("; "), OF_OTHERS)]),
    ),
    listed(
      "Near-duplicates",
      ["excluded", "near-duplicate of (released)"],
      Object.entries(left.duplicates).map(([one, other]) => [word(one), made("a", { href: fragmentOf({ dialogue: other }) }, word(other))]),
    ),
    listed(
      "Scenarios below their quota",
      ["scenario", "missing dialogues"],
      Object.entries(left.below_quota ?? {}).map(([one, count]) => [
        word(about.scenarios.find(({ id }) => Number(id) === Number(one))?.name ?? one),
        number(count),
      ]),
    ),
    candidatesSection(candidates, asks),
  ];
}

function candidatesSection({ total, rows, counts, page, last }, asks) {
  if (!total && !asks.reason)
    return section(
      "Refused candidates",
      made("p", { class: "quiet" }, "For the pairs shown here, no candidate was refused by a contrast check alone."),
    );
  const reasons = [...counts].sort(([, one], [, other]) => other - one);
  const choice = (reason, label) =>
    made(
      "li",
      {},
      made(
        "a",
        { href: linkTo(asks, { reason, page: undefined }), "aria-current": (asks.reason ?? undefined) === reason ? "true" : null },
        label,
      ),
    );
  return section(
    "Refused candidates",
    made("p", { class: "quiet" }, "These texts were written for the released pairs. A check refused them before another text passed."),
    counts.has("not_chosen") ? made("p", { class: "quiet" }, "Candidates with the reason not_chosen passed all checks, but another one was released.") : null,
    made(
      "ul",
      { class: "choices", role: "list" },
      choice(undefined, "all reasons"),
      reasons.map(([reason, count]) => choice(reason, [word(reason), ` (${number(count)})`])),
    ),
    made("p", { class: "quiet" }, `${number(total)} candidates`),
    candidatesTable(rows, true),
    pagesNav(page, last, (one) => linkTo(asks, { page: one > 1 ? one : undefined })),
  );
}
