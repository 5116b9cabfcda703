// The pieces that screens are made of. Whatever a release holds is put in as text, never as markup.

const number = (value) => Number(value).toLocaleString("en");

/** An element with attributes and children; a text becomes a text node, and nothing else. */
function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  return element;
}

/** A word or a name from the data, kept to its own direction. */
const word = (text) => made("bdi", {}, text ?? "–");

// The page speaks English; what it quotes is of the release's language.
const OF_RELEASE = ENGLISH ? {} : { lang: about.language };
const OF_OTHERS = { lang: null }; // what judges, raters and publishers wrote

/** A text of the data. */
const text = (value, attributes = {}) => made("p", { class: "words", dir: "auto", ...OF_RELEASE, ...attributes }, value ?? "");

/** A text with the words marked that the reference does not have, and, if asked for, those that it alone has. */
function marked(before, after, removed) {
  const found = changes(before ?? "", after ?? "");
  if (!found) return [text(after), made("p", { class: "quiet small" }, "This text is too long to mark the differences.")];
  const pieces = found.flatMap(([kind, words]) => {
    if (kind === "same") return [words];
    if (kind === "removed" && !removed) return [];
    return [made(kind === "removed" ? "del" : "ins", {}, words.trimEnd()), words.slice(words.trimEnd().length) || (ENGLISH ? " " : "")];
  });
  return [made("p", { class: "words", dir: "auto", ...OF_RELEASE }, pieces)];
}

/** A number as tables show it, with a true minus sign. */
function figure(value, places = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Number(value)
    .toFixed(Math.abs(value) < 10 ? places : 1)
    .replace("-", "−");
}

/** A table in a frame that scrolls by itself; `rows` are lists of cells, the first of each its heading. Without a row there is none. */
function table(name, heads, rows, attributes = {}) {
  if (!rows.length) return null;
  const head = made(
    "tr",
    {},
    heads.map((one) => made("th", { scope: "col" }, one)),
  );
  const body = rows.map((cells) =>
    made(
      "tr",
      {},
      cells.map((cell, at) => made(at ? "td" : "th", at ? {} : { scope: "row" }, cell)),
    ),
  );
  const inner = made("table", attributes, made("caption", { class: "vh" }, name), made("thead", {}, head), made("tbody", {}, body));
  return made("div", { class: "scroll", role: "region", "aria-label": name, tabindex: "0" }, inner);
}

/** A part of a screen with its heading; null where there is nothing to stand below it. */
function section(heading, ...children) {
  return children.flat(Infinity).some(Boolean) ? made("section", {}, made("h2", {}, heading), ...children) : null;
}

/** A part that is folded. */
const folded = (summary, ...children) => made("details", {}, made("summary", {}, summary), ...children);

/** A note that says in words that a text needs care. */
const flagNote = (flags) =>
  flags?.length
    ? made(
        "p",
        { class: "note", "data-part": "flag" },
        made("strong", {}, `Flag: ${flags.join(", ")}. `),
        flags.includes("crisis") ? "This turn or an earlier one contains language of hopelessness or danger." : "",
      )
    : null;

/** The turns of a context. */
const transcript = (turns) =>
  made(
    "ol",
    { class: "transcript", role: "list" },
    turns.map((turn) =>
      made(
        "li",
        { class: turn.role === "seeker" ? "seeker" : "helper" },
        made("span", { class: "speaker" }, turn.role === "seeker" ? "Seeker" : "Helper"),
        text(turn.text),
      ),
    ),
  );

/** Links to the pages around one, as a list. */
function pagesNav(at, last, link) {
  if (last <= 1) return null;
  const near = [...new Set([1, at - 1, at, at + 1, last])].filter((one) => one >= 1 && one <= last);
  const items = near.flatMap((one, place) => [
    place && one - near[place - 1] > 1 ? made("li", { "aria-hidden": "true" }, "…") : null,
    made(
      "li",
      {},
      made(
        "a",
        { href: link(one), "aria-label": `Page ${number(one)} of ${number(last)}`, "aria-current": one === at ? "page" : null },
        number(one),
      ),
    ),
  ]);
  const way = (label, to) =>
    made(
      "li",
      {},
      to >= 1 && to <= last
        ? made("a", { href: link(to), rel: to < at ? "prev" : "next" }, label)
        : made("span", { class: "quiet" }, label),
    );
  return made(
    "nav",
    { "aria-label": "Pages", class: "pages" },
    made("ul", { role: "list" }, way("Previous", at - 1), items, way("Next", at + 1)),
  );
}
