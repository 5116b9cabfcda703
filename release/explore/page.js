// The screens of the page and the way between them: the address says what is shown, so every screen has a link and the way back works.

const place = (id) => document.getElementById(id);
const form = place("filters");
let shelf; // what is explored: the sample, or the whole release
let found = { rows: [], counts: {} };
let asks = asksOf(location.hash);
let searched = null; // the filters and the rows that `found` is of
let turn = 0; // of showing: what is read for a screen that was left is not shown

const say = (told) => {
  place("said").textContent = told;
};

/** Tells what went wrong and what to do, and stays until it is put away or what failed succeeds. */
function warn(kind, error, again) {
  place("alarm").querySelector(`[data-kind="${kind}"]`)?.remove();
  if (!error) return;
  const told =
    error instanceof Trouble
      ? [made("strong", {}, word(error.message)), ` To fix it: ${error.fix}.`]
      : [made("strong", {}, `Error in this page: ${error.message}.`)];
  const note = made("div", { class: "note", "data-kind": kind }, made("p", {}, told));
  const buttons = made("p", { class: "buttons" });
  if (again) buttons.append(button("Try again", () => again()));
  buttons.append(button("Dismiss", () => warn(kind)));
  note.append(buttons);
  place("alarm").append(note);
}

function button(label, press) {
  const one = made("button", { type: "button" }, label);
  one.addEventListener("click", press);
  return one;
}

/** Searches anew if filters, or what is read of the release, are not those of the last search. */
function refresh() {
  const key = JSON.stringify([filtersOf(asks), shelf.filled, shelf.scored, shelf.tables.source.whole]);
  if (key === searched) return;
  found = search(shelf, asks);
  searched = key;
}

/** Brings what needs no reading to what the address asks for: the search, the form, and the list. */
function look(screen, focus) {
  refresh();
  fillForm(form, shelf, asks, found.counts, !focus);
  place("spread").replaceChildren(...spreadPart(shelf, found.rows));
  for (const one of document.querySelectorAll("header nav a")) {
    if (one.dataset.screen === (screen === "left" ? "left" : "list")) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  if (screen === "list") showList(focus);
}

/** Shows what the address asks for. */
async function show(focus = true) {
  if (!shelf) return undefined;
  asks = asksOf(location.hash);
  const here = (turn += 1);
  const screen = asks.id ? "item" : asks.dialogue ? "dialogue" : asks.view === "left" ? "left" : "list";
  try {
    look(screen, focus);
    warn("search");
  } catch (error) {
    return warn("search", error, () => show()); // what was shown stays
  }
  if (screen === "list") return undefined;
  const before = setTimeout(() => say("Loading …"), 150);
  try {
    const [heading, parts] = await { item: itemScreen, dialogue: dialogueScreen, left: leftScreen }[screen]();
    if (here !== turn) return undefined;
    warn("screen");
    return put(heading, parts, focus);
  } catch (error) {
    if (here === turn) warn("screen", error, () => show());
    return undefined;
  } finally {
    clearTimeout(before);
    if (here === turn) say("");
  }
}

function showList(focus) {
  const came = place("screen").dataset.pair;
  place("list").hidden = false;
  place("screen").hidden = true;
  place("screen").replaceChildren();
  delete place("screen").dataset.pair;
  document.title = `${FULL_NAME}: explorer`;
  // Who hears the page is told how many there are, but not every few thousand that come.
  place("count").setAttribute("aria-live", shelf.filling ? "off" : "polite");
  place("count").textContent = countOf(shelf, found);
  // What has the focus is not put anew while the rest of a release comes.
  const shown = JSON.stringify([searched, asks.page]);
  if (place("rows").dataset.shown !== shown) {
    const next = listPart(shelf, found, asks).filter(Boolean);
    if (!sameList(next)) place("rows").replaceChildren(...next);
    place("rows").dataset.shown = shown;
  }
  const link = came && place("rows").querySelector(`a[data-id="${CSS.escape(came)}"]`);
  if (focus && link) link.focus();
  else if (focus) arrive(place("list").querySelector("h1"));
}

const sameList = (next) => {
  const old = [...place("rows").children];
  return old.length === next.length && old.every((one, at) => one.isEqualNode(next[at]));
};

function put(heading, parts, focus) {
  place("list").hidden = true;
  const screen = place("screen");
  screen.hidden = false;
  screen.replaceChildren(...heading, ...parts.filter(Boolean));
  if (asks.id) screen.dataset.pair = asks.id;
  const title = screen.querySelector("h1");
  document.title = `${title.textContent} · ${FULL_NAME}: explorer`;
  if (focus) arrive(title);
}

function arrive(title) {
  title.tabIndex = -1;
  window.scrollTo(0, 0);
  title.focus({ preventScroll: true });
}

/** The list, at the page of the pair that is shown. */
function listLink() {
  const at = asks.id ? found.rows.indexOf(shelf.place(asks.id)) : -1;
  return linkTo(filtersOf(asks), { page: at >= LISTED ? Math.floor(at / LISTED) + 1 : undefined });
}

const back = () => made("a", { href: listLink(), class: "back" }, "Back to results");

/** The pair before or behind the one that is shown, among those that were found. */
function neighbour(step) {
  const at = found.rows.indexOf(shelf.place(asks.id));
  return at < 0 ? undefined : shelf.ids[found.rows[at + step]];
}

async function itemScreen() {
  const pair = await readPair(shelf, asks.id);
  return [[wayPart(), made("h1", {}, word(asks.id))], pair ? pairPart(pair, asks, showRemoved) : [missing("pair", asks.id)]];
}

/** Where the pair stands among those that were found, and the ways on from it. */
function wayPart() {
  const at = found.rows.indexOf(shelf.place(asks.id));
  const step = (label, by) => {
    const id = neighbour(by);
    return id ? made("a", { href: linkTo(asks, { id }), rel: by < 0 ? "prev" : "next" }, label) : made("span", { class: "quiet" }, label);
  };
  const standing = at < 0 ? "not in the results" : `${number(at + 1)} of ${number(found.rows.length)} results`;
  return made(
    "nav",
    { class: "way", "aria-label": "Pairs" },
    back(),
    made("span", { class: "quiet" }, standing),
    step("Previous", -1),
    step("Next", 1),
    removedSwitch(),
  );
}

let showRemoved = true;

/** Whether the words that a near variant took out of the reference are shown too. */
function removedSwitch() {
  const box = made("input", { type: "checkbox", checked: showRemoved });
  box.addEventListener("change", async () => {
    showRemoved = box.checked;
    await show(false);
    document.querySelector(".way input")?.focus();
  });
  return made("label", { class: "switch" }, box, "Show removed words");
}

async function dialogueScreen() {
  const dialogue = await readDialogue(shelf, asks.dialogue);
  const heading = [made("p", { class: "way" }, back()), made("h1", {}, "Dialogue ", word(asks.dialogue))];
  return [heading, dialogue ? dialoguePart(dialogue, asks) : [missing("dialogue", asks.dialogue)]];
}

async function leftScreen() {
  const candidates = await readCandidates(shelf, asks.reason, Math.max(1, Math.trunc(Number(asks.page)) || 1));
  return [[made("h1", {}, "Excluded items")], leftPart(candidates, asks)];
}

function missing(what, id) {
  const gone = about.left_out.withdrawn.find((one) => (one.dialogue_id ?? one.pair_id) === id);
  if (gone) return made("p", { class: "note" }, `This ${what} was withdrawn on ${gone.date}: `, word(gone.reason));
  if (shelf.source.whole)
    return made("p", { class: "note" }, `The release has no ${what} `, word(id), ". The link may be for another version.");
  const note = made("div", { class: "note" }, made("p", {}, `The ${what} `, word(id), " is not in the sample that this page holds."));
  note.append(
    made(
      "p",
      { class: "buttons" },
      button("Load the whole release", () => place("load").click()),
    ),
  );
  return note;
}
