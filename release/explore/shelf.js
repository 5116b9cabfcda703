// What filters and lists know of every pair: its short columns and its scores, read once, the first rows at once and the rest behind them.

const FACETS = {
  scenario: "scenario",
  phase: "phase",
  strategy: "strategy",
  manner: "apathetic_manner",
  device: "empathetic_device",
  flag: "flags",
};
const SHORT = ["pair_id", "reference", ...Object.values(FACETS)];
const MARGIN = "word_margin"; // of each row of the file of scores: how far words alone prefer the empathetic text of its pair
const NONE = "(none)"; // of a facet: nothing was planned, or there is no flag
const VARIANTS = ["reference", "apathetic", "empathetic", "near_empathetic", "far_apathetic"];
const CONTRASTS = {
  released: ["empathetic", "apathetic"],
  near: ["near_empathetic", "apathetic"],
  far: ["empathetic", "far_apathetic"],
};
const AHEAD = 4; // groups that are asked for at a time
const BREATH = 40; // milliseconds of work after which the page may show and answer

/** Lets the page show what it has and answer its reader. */
const breath = () => new Promise((resolve) => setTimeout(resolve));

/** A column of few different values: a code a row, and what the codes stand for. */
class Facet {
  constructor(rows) {
    Object.assign(this, { codes: new Uint16Array(rows), values: [], known: new Map() });
  }

  set(row, value) {
    const text = Array.isArray(value) ? value.join(" ") || NONE : (value ?? NONE);
    let code = this.known.get(text);
    if (code === undefined) {
      code = this.values.push(text) - 1;
      this.known.set(text, code);
    }
    this.codes[row] = code;
  }
}

class Shelf {
  constructor(source) {
    this.tables = new Tables(source);
    this.source = source;
    this.metrics = this.tables.of("items").length ? about.metrics : [];
    Object.assign(this, { filled: 0, rows: 0, scored: false, done: 0, of: 1 });
  }

  /** Reads footers, and with them how many rows there are. */
  async begin() {
    const pairs = this.tables.of("pairs");
    const footers = await Promise.all(pairs.map((table) => table.footer()));
    this.rows = footers.reduce((sum, one) => sum + one.rows, 0);
    this.ids = new Array(this.rows);
    this.references = new Array(this.rows);
    this.margin = new Float32Array(this.rows).fill(NaN);
    this.facets = Object.fromEntries([...Object.keys(FACETS), "split"].map((name) => [name, new Facet(this.rows)]));
    this.parts = [];
    let start = 0;
    for (const [place, table] of pairs.entries()) {
      for (const [group, { count }] of footers[place].groups.entries()) {
        this.parts.push({ table, group, start, count });
        start += count;
      }
    }
    this.of = this.parts.length || 1;
  }

  /** Reads the short columns; `told` is called when rows have come. */
  async fill(told) {
    await ahead(
      this.parts,
      ({ table, group }) => table.columns(SHORT, group),
      (columns, { table, start, count }) => {
        for (let at = 0; at < count; at += 1) this.#put(start + at, at, columns, table.file.split);
        this.filled = start + count;
        this.done += 1;
        return told();
      },
    );
  }

  #put(row, at, columns, split) {
    this.ids[row] = columns.pair_id[at];
    this.references[row] = columns.reference?.[at] ?? "";
    for (const [name, column] of Object.entries(FACETS)) this.facets[name].set(row, columns[column]?.[at]);
    this.facets.split.set(row, split);
  }

  /** Reads the scores of all texts, and the word margins of their pairs, which come in the order of the pairs. */
  async score(told) {
    const names = this.metrics.map((one) => one.name);
    this.scores = Object.fromEntries(
      names.map((name) => [name, Object.fromEntries(VARIANTS.map((one) => [one, new Float32Array(this.rows).fill(NaN)]))]),
    );
    let row = 0;
    const seek = (id) => {
      if (this.ids[row] === id) return row;
      row += 1;
      if (this.ids[row] !== id) row = this.place(id);
      return row;
    };
    for (const table of this.tables.of("items")) {
      const { groups } = await table.footer();
      this.of = this.done + groups.length;
      await ahead(
        [...groups.keys()],
        (group) => table.columns(["pair_id", "variant", MARGIN, ...names], group),
        (columns) => {
          const places = Array.from(columns.pair_id, seek);
          const kinds = Uint8Array.from(columns.variant, (variant) => VARIANTS.indexOf(variant));
          for (const [at, place] of places.entries()) if (place >= 0) this.margin[place] = columns[MARGIN]?.[at] ?? NaN;
          for (const name of names) this.#rate(this.scores[name], places, kinds, columns[name]);
          this.done += 1;
          return told();
        },
        2,
      );
    }
    this.scored = names.length > 0;
  }

  #rate(scores, places, kinds, values) {
    if (!values) return;
    const columns = VARIANTS.map((variant) => scores[variant]);
    for (let at = 0; at < places.length; at += 1) {
      const column = columns[kinds[at]];
      if (column && places[at] >= 0) column[places[at]] = values[at] ?? NaN;
    }
  }

  /** The row of a pair, or -1. */
  place(id) {
    if (this.placed?.filled !== this.filled) {
      this.placed = { filled: this.filled, rows: new Map() };
      for (let row = 0; row < this.filled; row += 1) this.placed.rows.set(this.ids[row], row);
    }
    return this.placed.rows.get(id) ?? -1;
  }

  /** The score of a text, NaN where there is none. */
  scoreOf(metric, variant, row) {
    return this.scores?.[metric]?.[variant]?.[row] ?? NaN;
  }

  /** All scores of a pair, as rows of the file of scores. */
  scoresOf(row) {
    return VARIANTS.map((variant) => ({
      variant,
      [MARGIN]: this.margin[row],
      ...Object.fromEntries(this.metrics.map(({ name }) => [name, this.scoreOf(name, variant, row)])),
    }));
  }

  /** What a row holds of a facet. */
  value(facet, row) {
    return this.facets[facet].values[this.facets[facet].codes[row]];
  }
}

/** Which text a metric rates better in a contrast: 1 the kind one, -1 the cold one, 0 neither, NaN where it cannot be told. */
function preferred(shelf, metric, contrast, row) {
  const [kind, cold] = CONTRASTS[contrast].map((variant) => shelf.scoreOf(metric.name, variant, row));
  return Math.sign(metric["higher is better"] === false ? cold - kind : kind - cold);
}

/** Reads each place a few ahead and hands what came on in order, with a breath for the page where it took long. */
async function ahead(places, read, take, most = AHEAD) {
  const asked = [];
  let since = performance.now();
  for (let at = 0; at < places.length; at += 1) {
    while (asked.length < Math.min(at + most, places.length)) {
      const reading = read(places[asked.length]);
      reading.catch(() => {}); // told where it is awaited
      asked.push(reading);
    }
    const came = await asked[at];
    asked[at] = null;
    await take(came, places[at]);
    if (performance.now() - since < BREATH) continue;
    await breath();
    since = performance.now();
  }
}
