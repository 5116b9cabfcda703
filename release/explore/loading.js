// From the sample to the whole release: a server or a folder, the first rows at once and the rest behind them, and the start of the page.

/** Explores a source from its first rows on; until they have come, what was shown stays. */
async function explore(source, again) {
  const next = new Shelf(source);
  next.filling = true;
  loading = next;
  progress(next);
  warn("loading");
  try {
    if (source.whole) await checkRelease(source);
    await next.begin();
    if (!next.rows) await enter(next);
    await next.fill(() => came(next));
    await came(next, true);
    await next.score(() => came(next));
    next.filling = false;
    await came(next, true);
    if (source.whole) sayShortly(`All ${number(next.rows)} pairs are loaded.`);
  } catch (error) {
    next.filling = false;
    // Another source was chosen meanwhile: what became of this one is of no interest.
    if (loading === next) warn("loading", error, again ?? (() => explore(source)));
  }
  if (loading === next) progress(null);
}

let loading; // the shelf that is being filled
let shown = 0; // when the list was last brought up to date, in milliseconds

const EVERY = 800; // milliseconds between two looks at a release that is being read

const SHORTLY = 6000; // milliseconds

function sayShortly(told) {
  say(told);
  setTimeout(() => place("said").textContent === told && say(""), SHORTLY);
}

/** Rows have come: the first are shown at once, later ones now and then, and all of them; scores are of use when all have come. */
async function came(next, all = false) {
  if (loading !== next) throw new Error("left");
  if (shelf !== next) return enter(next);
  progress(next);
  if (!all && (next.filled === next.rows || performance.now() - shown < EVERY)) return undefined;
  shown = performance.now();
  // A pair or dialogue that is being read stays as it is.
  if (!place("list").hidden) await show(false);
  else refreshQuietly();
  return undefined;
}

function refreshQuietly() {
  refresh();
  fillForm(form, shelf, asks, found.counts, true);
  const way = document.querySelector("nav.way");
  if (way && asks.id && !way.contains(document.activeElement)) way.replaceWith(wayPart());
}

/** What is explored is now this. */
async function enter(next) {
  const first = shelf === undefined;
  shelf = next;
  searched = null;
  fillMetrics(form, shelf.metrics);
  tellSource();
  shown = performance.now();
  const stays =
    !first && place("list").hidden && place("screen").dataset.pair === asks.id && asks.id && !place("screen").querySelector(".note button");
  if (stays) refreshQuietly();
  else await show(false);
}

function tellSource() {
  const { pairs, of, split } = about.sampled;
  const sample = pairs ? `Sample: ${pairs === of ? "all" : `${number(pairs)} of the`} ${number(of)} pairs of ${split}` : "No sample";
  place("source").replaceChildren(...(shelf.source.whole ? ["Whole release, from ", word(shelf.source.name)] : [sample]));
  place("load").hidden = shelf.source.whole;
  place("elsewhere").hidden = !shelf.source.whole && !readable(server);
}

function progress(next) {
  place("progress").hidden = !next?.source.whole;
  place("bar").max = next?.of ?? 1;
  place("bar").value = next?.done ?? 0;
  if (next)
    place("doing").textContent =
      next.filled < next.rows || !next.rows ? `${number(next.filled)} of ${number(next.rows)} pairs loaded` : "loading scores";
}

const server = new URL(about.base, document.baseURI);

/** Whether a page may read from an address: one from disk may not read the disk. */
const readable = ({ protocol }) => ["http:", "https:"].includes(protocol);

/** A place on a server; a text for what is none. */
function fromServer(base) {
  place("sources").close();
  let url;
  try {
    url = new URL(base, document.baseURI);
  } catch {
    url = { protocol: "" };
  }
  const again = () => fromServer(base);
  if (!readable(url)) {
    warn("loading", new Trouble(`“${base}” is not a web address.`, "enter an address that begins with https://, or choose a folder"));
    return;
  }
  explore(new Remote(url.href), again);
}

function fromFolder(list) {
  if (!list.length) return;
  place("sources").close();
  try {
    explore(new Chosen(list), () => place("sources").showModal());
  } catch (error) {
    warn("loading", error);
  }
}

/** Where the release can be read without a question, it is; else the reader is asked where it lies. */
function load() {
  if (!place("progress").hidden) return; // it is being read already
  if (readable(server)) fromServer(server.href);
  else place("sources").showModal();
}

// The keyboard: single letters can be switched off, and count nowhere where something is written.

const KEYS = "empathy-eval/explore/keys";
const remembered = (name, value) => {
  try {
    return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value);
  } catch {
    return null; // a browser that keeps nothing
  }
};

function step(by) {
  if (asks.id) {
    const id = neighbour(by);
    if (id) location.hash = linkTo(asks, { id });
    return;
  }
  const links = [...place("rows").querySelectorAll("a[data-id]")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}

const PRESSED = {
  j: () => step(1),
  k: () => step(-1),
  u: () => (location.hash = listLink()),
  "/": () => {
    if (place("list").hidden) location.hash = listLink();
    place("fold").open = true;
    setTimeout(() => [...form.elements].find((one) => one.matches("select") && one.offsetParent)?.focus());
  },
  "?": () => place("keys").showModal(),
};
const ARROWS = { item: { ArrowRight: 1, ArrowLeft: -1 }, list: { ArrowDown: 1, ArrowUp: -1 } };

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const writing = event.target.matches("select, textarea, input:not([type=checkbox])");
  if (writing) return;
  // Arrows move what has the focus: a table that scrolls keeps its own.
  const calm = asks.id ? event.target.matches("body, h1, main, a") : event.target.matches("a[data-id]");
  const by = calm ? ARROWS[asks.id ? "item" : "list"][event.key] : undefined;
  const act = by ? () => step(by) : place("single").checked ? PRESSED[event.key] : undefined;
  if (!act) return;
  event.preventDefault();
  act();
}

function start() {
  place("single").checked = remembered(KEYS) !== "off";
  place("single").addEventListener("change", () => remembered(KEYS, place("single").checked ? "on" : "off"));
  document.addEventListener("keydown", press);
  window.addEventListener("hashchange", () => show());
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    if (form.reportValidity()) location.hash = fragmentOf(asksOfForm(form));
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    location.hash = fragmentOf({});
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    place("main").focus();
  });
  place("load").addEventListener("click", load);
  place("elsewhere").addEventListener("click", () => place("sources").showModal());
  place("help").addEventListener("click", () => place("keys").showModal());
  place("folder").addEventListener("change", () => {
    fromFolder(place("folder").files);
    place("folder").value = ""; // so that the same folder can be chosen again
  });
  place("address").addEventListener("submit", (event) => {
    event.preventDefault();
    if (place("base").value.trim()) fromServer(place("base").value.trim());
  });
  if (readable(server)) place("base").value = server.href;
  if (window.matchMedia("(max-width: 60rem)").matches) place("fold").open = false;
  explore(new Embedded());
}

start();
