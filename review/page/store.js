// What a rater has answered. Each item is an entry of its own in the browser's storage, so that two tabs never write over each other's
// items; an entry that another tab has changed in the meantime is read and never overwritten.

const { sheet, training } = JSON.parse(document.getElementById("data").textContent);
const SCALES = ["coherence", "helpfulness", "empathy"];
const KINDS = { variant: "Reply", crossed: "Two replies", dialogue: "Dialogue" };
const STRATEGIES = new Set(sheet.strategies.map((one) => one.name));
const practice = (items, kind) => items.map((one, at) => ({ ...one, item: `${kind}-${at + 1}`, kind: "variant" }));
const steps = { training: practice(training.training, "training"), test: practice(training.test, "test"), item: sheet.items };
const byName = new Map(Object.values(steps).flat().map((item) => [item.item, item]));
const hasVariants = sheet.items.some((item) => item.kind === "variant");

const store = {
  prefix: `empathy-eval/${sheet.review}/${sheet.rater}/`,
  held: new Map(), // name -> value as this tab knows it
  seen: new Map(), // name -> text that was last read from or written to the storage
  unsaved: new Set(), // names that the storage would not take
  unreadable: new Set(), // names whose stored text is no answer of ours

  get(name) {
    return this.held.get(name) ?? null;
  },

  /** Keeps a value. Gives "elsewhere", and the other tab's value is held, if another tab has changed the entry in the meantime. */
  set(name, value) {
    const now = read(this.prefix + name);
    if (name !== "place" && now !== null && now !== (this.seen.get(name) ?? null)) {
      this.take(name, now);
      return "elsewhere";
    }
    this.held.set(name, value);
    this.unsaved.add(name);
    for (const one of [...this.unsaved]) {
      const text = JSON.stringify(this.held.get(one));
      if (!write(this.prefix + one, text)) continue;
      this.seen.set(one, text);
      this.unsaved.delete(one);
    }
    return this.unsaved.size ? "unsaved" : "saved";
  },

  take(name, text) {
    this.seen.set(name, text);
    try {
      const value = JSON.parse(text);
      this.held.set(name, byName.has(name) ? cleaned(byName.get(name), value) : value);
      this.unsaved.delete(name);
    } catch {
      this.unreadable.add(name);
    }
  },

  /** Reads what other tabs, or an earlier visit, have kept; gives the names of the entries that have changed. */
  reread() {
    const changed = [];
    for (const name of [...byName.keys(), "training", "place"]) {
      const text = read(this.prefix + name);
      if (text === null || text === (this.seen.get(name) ?? null) || (name === "place" && this.held.has(name))) continue;
      this.take(name, text);
      changed.push(name);
    }
    return changed;
  },

  erase() {
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(this.prefix)) localStorage.removeItem(key);
    } catch {
      // A storage that cannot be reached holds nothing.
    }
    this.unsaved.clear();
  },
};

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, text) {
  try {
    localStorage.setItem(key, text);
    return localStorage.getItem(key) === text;
  } catch {
    return false;
  }
}

/** Helper turns that carry a strategy, as [place in the dialogue, turn]. */
const tagged = (item) => [...item.turns.entries()].filter(([, turn]) => turn.strategy);

/** An answer with only what belongs to it, in a fixed order: whatever a damaged entry or a foreign file holds beside it is left out. */
function cleaned(item, raw) {
  const text = (value) => (typeof value === "string" ? value : "");
  const value = raw !== null && typeof raw === "object" ? raw : {};
  const answer = { item: item.item, kind: item.kind };
  if (item.kind === "variant") {
    for (const scale of SCALES) if ([1, 2, 3].includes(value[scale])) answer[scale] = value[scale];
    if (item.ratings && value.compared === true) answer.compared = true;
  } else if (item.kind === "crossed") {
    if (value.decision === "A" || value.decision === "B") answer.decision = value.decision;
  } else {
    if (value.decision === "keep" || value.decision === "remove") answer.decision = value.decision;
    answer.reason = text(value.reason);
    const tags = new Map((Array.isArray(value.tags) ? value.tags : []).map((tag) => [tag?.turn, tag]));
    answer.tags = tagged(item).flatMap(([turn, { strategy }]) => {
      const tag = tags.get(turn);
      if (tag?.right === true) return [{ turn, right: true }];
      if (tag?.right !== false) return [];
      const better = STRATEGIES.has(tag.strategy) && tag.strategy !== strategy;
      return [better ? { turn, right: false, strategy: tag.strategy } : { turn, right: false }];
    });
  }
  if (item.kind === "dialogue") {
    const said = new Map((Array.isArray(value.remarks) ? value.remarks : []).map((one) => [one?.turn, text(one?.comment)]));
    const remarks = tagged(item).filter(([turn]) => said.get(turn)?.trim()).map(([turn]) => ({ turn, comment: said.get(turn) }));
    if (remarks.length) answer.remarks = remarks;
  }
  answer.comment = text(value.comment);
  return answer;
}

/** What is still missing in an answer, as the names of its fields; nothing if the item is finished. A removed dialogue needs no tags. */
function missing(item, answer) {
  if (item.kind === "variant") return SCALES.filter((scale) => !answer?.[scale]);
  const open = answer?.decision ? [] : ["decision"];
  if (item.kind === "crossed") return open;
  if (answer?.decision === "remove") return answer.reason.trim() ? wrongWithout(answer) : [...wrongWithout(answer), "reason"];
  const judged = new Set((answer?.tags ?? []).map((tag) => tag.turn));
  return [...tagged(item).filter(([turn]) => !judged.has(turn)).map(([turn]) => `tag-${turn}`), ...wrongWithout(answer), ...open];
}

const wrongWithout = (answer) => (answer?.tags ?? []).filter((tag) => !tag.right && !tag.strategy).map((tag) => `strategy-${tag.turn}`);
const finished = (item) => missing(item, store.get(item.item)).length === 0;

/** Whether the rater may look at the items: after the test, however it went. Who rates no replies needs no training. */
const begun = () => !hasVariants || store.get("training")?.done === true;
const openItems = () => sheet.items.filter((item) => !finished(item));

/** The test: an item is right if empathy is met exactly and no scale is off by more than one. */
function testResult() {
  const off = (item, scale) => Math.abs((store.get(item.item)?.[scale] ?? 0) - item.ratings[scale]);
  const near = steps.test.filter((item) => SCALES.every((scale) => off(item, scale) <= 1));
  const right = near.filter((item) => off(item, "empathy") === 0);
  return { right: right.length, of: steps.test.length, passed: near.length === steps.test.length && right.length >= steps.test.length - 1 };
}

/** The answers in the format of a review: finished items only, in the order of the sheet. */
function answers() {
  store.reread();
  const { done, test_right, test_of } = store.get("training") ?? { done: false, test_right: 0, test_of: steps.test.length };
  return {
    format: 1,
    review: sheet.review,
    rater: sheet.rater,
    form: "page",
    ...(hasVariants ? { training: { done, test_right, test_of } } : {}),
    judgements: sheet.items.filter(finished).map((item) => store.get(item.item)),
  };
}

/** Brings in a file that this page has saved before. What is answered differently here is left as it is, unless `replace`. */
function bring(text, replace) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    return { problem: "This is not a file that this page has saved (it is not JSON)." };
  }
  if (file?.format !== 1 || !Array.isArray(file.judgements)) return { problem: "This is not a file that this page has saved." };
  if (file.review !== sheet.review || file.rater !== sheet.rater) {
    return { problem: `This file belongs to review “${file.review}” of “${file.rater}”. Nothing was taken from it.` };
  }
  store.reread();
  const result = { taken: 0, same: 0, different: 0, unknown: 0 };
  for (const raw of file.judgements) {
    const item = sheet.items.find((one) => one.item === raw?.item);
    const answer = item && cleaned(item, raw);
    if (!item || missing(item, answer).length) result.unknown += 1;
    else if (JSON.stringify(answer) === JSON.stringify(store.get(item.item))) result.same += 1;
    else if (finished(item) && !replace) result.different += 1;
    else result[store.set(item.item, answer) === "elsewhere" ? "different" : "taken"] += 1;
  }
  const trained = file.training;
  if (trained?.done === true && Number.isInteger(trained.test_right) && !begun()) {
    store.set("training", { done: true, test_right: trained.test_right, test_of: trained.test_of, through: true });
  }
  return result;
}
