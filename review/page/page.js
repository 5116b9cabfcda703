// The screens of the page and the way through them. All texts of the sheet are put in with textContent.

const main = document.getElementById("main");
let place = { screen: "welcome", at: 0 }; // where the rater is in the course of the review
let shown = "welcome"; // what the screen shows: the place, or something opened over it

const REVIEW = sheet.review.slice(0, 15); // enough of the hash to tell files apart

const UNKEPT =
  "This browser is not keeping your answers (its storage is switched off or full). Save them to a file before you close the page.";

const started = () => !["welcome", "declined"].includes(shown);
const slot = (part, name) => part.querySelector(`[data-slot="${name}"]`);
const piece = (part, name) => part.querySelector(`[data-part="${name}"]`);

function stamp(id, texts = {}) {
  const part = document.getElementById(id).content.cloneNode(true);
  for (const [name, text] of Object.entries(texts)) slot(part, name).textContent = text;
  return part;
}

function say(text) {
  document.getElementById("said").textContent = text;
}

function show(screen, part, prose = true) {
  shown = screen;
  main.classList.toggle("prose", prose);
  main.replaceChildren(part);
  document.getElementById("tools").hidden = !started();
  document.getElementById("progress").hidden = !started();
  document.querySelector("#tools [data-do=list]").hidden = !begun();
  const heading = main.querySelector("h1");
  heading.tabIndex = -1;
  window.scrollTo(0, 0);
  heading.focus({ preventScroll: true });
  say("");
  refreshProgress();
}

function refreshProgress() {
  const done = sheet.items.length - openItems().length;
  document.getElementById("bar").max = sheet.items.length || 1;
  document.getElementById("bar").value = done;
  document.getElementById("count").textContent = `${done} of ${sheet.items.length} done`;
  document.title = `${done} of ${sheet.items.length} done · Review`;
}

/** A standing warning, one for each kind; an empty text takes it away. */
function warn(kind, text) {
  const alarm = document.getElementById("alarm");
  const old = alarm.querySelector(`[data-kind="${kind}"]`);
  if (!text) old?.remove();
  if (!text || old?.firstChild.textContent === text) return;
  const note = document.createElement("p");
  note.dataset.kind = kind;
  const button = document.createElement("button");
  button.textContent = kind === "unsaved" ? "Save a file" : "All right";
  button.dataset.do = kind === "unsaved" ? "export" : "dismiss";
  note.append(text, button);
  old?.remove();
  alarm.append(note);
}

function keep(name, value) {
  const result = store.set(name, value);
  warn("unsaved", result === "unsaved" ? UNKEPT : "");
  return result;
}

function go(screen, at = 0) {
  place = { screen, at };
  if (screen !== "welcome") keep("place", place);
  const heldItem = steps[screen]?.[at];
  if (heldItem) showItem(heldItem);
  else screens[screen]();
}

// The course: guidance, training, testing, test, result, the items, the end.
const COURSE = hasVariants ? ["guidance", "training", "testing", "test", "result", "item", "end"] : ["guidance", "item", "end"];

function step(by) {
  const { screen, at } = place;
  if (steps[screen] && steps[screen][at + by]) return go(screen, at + by);
  let next = COURSE.indexOf(screen) + by;
  // Who is through the training goes straight from the guidance to the items, and never back into it.
  const schooling = ["training", "testing", "test", "result"].includes(COURSE[next]);
  if (schooling && store.get("training")?.through) next = COURSE.indexOf(by > 0 ? "item" : "guidance");
  if (next < 0) return undefined;
  if (COURSE[next] === "item" && !sheet.items.length) next += by;
  const items = steps[COURSE[next]];
  return go(COURSE[next], items && by < 0 ? items.length - 1 : 0);
}

const screens = {
  welcome: () => show("welcome", stamp("welcome")),
  declined: () => show("declined", stamp("declined")),
  guidance: () => show("guidance", stamp("guidance", { next: place.screen === "guidance" ? "Go on" : "Back to where you were" })),
  testing: () => show("testing", stamp("testing")),
  keys() {
    show("keys", stamp("keys"));
    document.getElementById("single").checked = singleKeys();
  },
  pause() {
    const kept = store.unsaved.size ? UNKEPT : "Everything you have answered is kept in this browser.";
    show("pause", stamp("pause", { kept }));
  },
  result() {
    const { right, of, passed } = testResult();
    keep("training", { done: true, test_right: right, test_of: of, through: passed });
    const part = stamp(passed ? "passed" : "failed", { result: `${right} of ${of} replies as we would rate them.` });
    if (passed) for (const [at, item] of steps.test.entries()) slot(part, "answers").append(comparison(item, `Reply ${at + 1}`));
    show("result", part);
  },
  end: () => showSave(openItems().length ? "That was the last one; some are still open" : "That was the last one. Thank you.", true),
  save: () => showSave("Save a copy", false),
  list() {
    const part = stamp("list", { result: standing() });
    for (const [at, item] of sheet.items.entries()) {
      const state = finished(item) ? "finished" : store.get(item.item) ? "begun" : "open";
      const button = document.createElement("button");
      Object.assign(button, { className: state, textContent: `${at + 1}. ${KINDS[item.kind]}: ${state}` });
      Object.assign(button.dataset, { do: "jump", at });
      const line = document.createElement("li");
      line.append(button);
      slot(part, "items").append(line);
    }
    part.querySelector('[data-do="open"]').hidden = !openItems().length;
    show("list", part);
  },
};

function standing() {
  const open = openItems().length;
  return `${sheet.items.length - open} of ${sheet.items.length} finished${open ? `, ${open} still open` : ""}.`;
}

function showSave(title, last) {
  const part = stamp("save", { title, result: standing() });
  part.querySelector('[data-do="open"]').hidden = !begun() || !openItems().length;
  part.querySelector('[data-do="return"]').hidden = last;
  piece(part, "help").hidden = !last;
  part.querySelector("input[type=file]").addEventListener("change", async (event) => {
    if (event.target.files.length) brought(await event.target.files[0].text(), false);
  });
  show(last ? "end" : "save", part);
}

function brought(text, replace) {
  const { problem, taken, same, different, unknown } = bring(text, replace);
  const lines = problem ? [problem] : [`Brought in: ${taken}. Already here: ${same}.`];
  if (unknown) lines.push(`Left out because they could not be read: ${unknown}.`);
  if (different) lines.push(`Answered differently here, and left as they are here: ${different}.`);
  const box = slot(main, "brought");
  box.replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
  if (different && !replace) {
    const button = Object.assign(document.createElement("button"), { textContent: "Take the answers of the file instead" });
    button.addEventListener("click", () => brought(text, true));
    box.append(button);
  }
  slot(main, "result").textContent = standing();
  main.querySelector('[data-do="open"]').hidden = !begun() || !openItems().length;
  say(lines.join(" "));
  refreshProgress();
}

const actions = {
  next,
  welcome: () => go("welcome"),
  decline: () => screens.declined(),
  consent: () => go("guidance"),
  skip: () => step(1),
  back: () => step(-1),
  again: () => go("training", 0),
  retest: () => go("test", 0),
  onward: () => go("item", 0),
  list: () => begun() && screens.list(),
  keys: () => screens.keys(),
  save: () => screens.save(),
  pause: () => screens.pause(),
  guidance: () => screens.guidance(),
  return: () => go(place.screen, place.at),
  jump: (button) => go("item", Number(button.dataset.at)),
  open: () => go("item", Math.max(0, sheet.items.indexOf(openItems()[0]))),
  dismiss: (button) => button.parentElement.remove(),
  text() {
    const box = piece(main, "text");
    box.hidden = false;
    const area = box.querySelector("textarea");
    area.value = exported();
    area.focus();
    area.select();
    say("Copy the selected text.");
  },
  export() {
    const name = `${REVIEW}-${sheet.rater}.json`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([exported()], { type: "application/json" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    say(`Saved as ${name}. Please send this file to whoever invited you.`);
  },
  erase(button) {
    if (!button.dataset.sure) {
      button.dataset.sure = "yes";
      button.textContent = "Press once more to delete them for good";
      return;
    }
    store.erase();
    location.reload();
  },
};

const exported = () => `${JSON.stringify(answers(), null, 1)}\n`;

// Keys. Digits and letters can be switched off, for those whose software sends them by itself.

const singleKeys = () => read(`${store.prefix}keys`) !== "off";
const LETTERS = { b: "back", l: "list", g: "guidance", s: "save", "?": "keys" };

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const writing = target.matches("textarea, select, input[type=text], input[type=file]");
  const own = target.matches("button, summary, select, textarea, input[type=file]"); // Enter has a meaning of its own there
  let action;
  if (event.altKey || event.metaKey || event.repeat || event.isComposing || !started()) return;
  if (key === "Enter" && (event.ctrlKey || !own)) action = next;
  else if (event.ctrlKey) return;
  else if (key === "Escape") action = shown === place.screen ? actions.pause : actions.return;
  else if (writing || !singleKeys()) return;
  else if ("123".includes(key) && shown === place.screen) action = () => choose(Number(key));
  else if (key === "b" && shown !== place.screen) action = actions.return;
  else if (Object.hasOwn(LETTERS, key.toLowerCase())) action = actions[LETTERS[key.toLowerCase()]];
  if (!action) return;
  event.preventDefault();
  action();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) actions[button.dataset.do](button);
});

document.addEventListener("change", (event) => {
  if (event.target.id === "single") write(`${store.prefix}keys`, event.target.checked ? "on" : "off");
});

// Other tabs, and leaving with something unsaved.

function changedElsewhere(names) {
  const item = steps[place.screen]?.[place.at];
  if (shown === place.screen && item && names.includes(item.item)) {
    showItem(item);
    warn("elsewhere", "This item was changed in another tab. What you see is the other tab's answer; change it here if you like.");
  } else if (shown === "list") screens.list();
  refreshProgress();
}

function lookAround() {
  const names = store.reread();
  if (names.length) changedElsewhere(names);
}

window.addEventListener("storage", lookAround);
window.addEventListener("focus", lookAround);
window.addEventListener("beforeunload", (event) => {
  if (store.unsaved.size) event.preventDefault();
});

for (const [name, text] of [["rater", sheet.rater], ["review", REVIEW], ["release", `${sheet.release.name} ${sheet.release.version}`]]) {
  for (const one of document.querySelectorAll(`header [data-slot=${name}], footer [data-slot=${name}]`)) one.textContent = text;
}
store.reread();
if (store.unreadable.size) {
  warn("unreadable", `Of what this browser has kept, ${store.unreadable.size} could not be read and must be answered again.`);
}
if (!write(`${store.prefix}probe`, "1")) warn("unsaved", UNKEPT);
const last = store.get("place");
if (last && (steps[last.screen]?.[last.at] || Object.hasOwn(screens, last.screen))) go(last.screen, last.at);
else go("welcome");
