// An item: a reply with its scales, two replies to choose from, or a whole dialogue.

function showItem(item) {
  const { screen, at } = place;
  const name = { training: "Practice", test: "Test", item: KINDS[item.kind] }[screen];
  const hint = { training: "Rate it, then compare with our ratings.", test: "Our ratings come at the end.", item: item.scenario }[screen];
  const told = "situation" in item ? { situation: item.situation } : {};
  const part = stamp(item.kind, { title: `${name} ${at + 1} of ${steps[screen].length}`, hint, ...told });
  slot(part, "flag").hidden = !item.flags?.includes("crisis");
  const turns = item.kind === "dialogue" ? item.turns : item.context;
  slot(part, "turns").append(...turns.map((turn, turnAt) => turnPart(turn, turnAt, item)));
  if (item.kind === "variant") {
    slot(part, "reply").textContent = item.text;
    piece(part, "context").hidden = !turns.length;
  } else if (item.kind === "crossed") {
    for (const name of ["reply_a", "reply_b"]) slot(part, name).textContent = item[name];
  }
  // The page speaks English, as the practice does; the texts of the sheet may not.
  if (screen === "item" && sheet.language) for (const text of part.querySelectorAll(".text")) text.lang = sheet.language;
  const after = slot(part, "after");
  if (screen === "item") after.append(stamp("remark"));
  after.append(stamp("steps"));
  const form = part.querySelector("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => record(item));
  form.addEventListener("focusin", markCurrent);
  fill(form, item, store.get(item.item));
  show(screen, part, false);
  update(item);
}

function turnPart(turn, at, item) {
  const part = stamp("turn", { speaker: turn.role === "seeker" ? "Seeker" : "Helper", text: turn.text });
  const line = part.querySelector("li");
  line.className = turn.role === "seeker" ? "seeker" : "helper";
  if (item.kind !== "dialogue" || !turn.strategy) return line;
  const gloss = sheet.strategies.find((one) => one.name === turn.strategy)?.gloss ?? "";
  const tag = stamp("tag", { strategy: turn.strategy, gloss });
  for (const radio of tag.querySelectorAll("input")) radio.name = `tag-${at}`;
  const select = tag.querySelector("select");
  select.name = `strategy-${at}`;
  tag.querySelector("textarea").name = `remark-${at}`;
  for (const phase of new Set(sheet.strategies.map((one) => one.phase))) {
    const group = Object.assign(document.createElement("optgroup"), { label: phase });
    const others = sheet.strategies.filter((one) => one.phase === phase && one.name !== turn.strategy);
    group.append(...others.map((one) => new Option(`${one.name}: ${one.gloss}`, one.name)));
    select.append(group);
  }
  line.append(tag);
  return line;
}

/** Puts an answer into the form. */
function fill(form, item, answer) {
  const set = (name, value) => {
    if (value !== undefined && form.elements[name]) form.elements[name].value = value;
  };
  for (const name of [...SCALES, "decision", "reason", "comment"]) set(name, answer?.[name]);
  for (const tag of answer?.tags ?? []) {
    set(`tag-${tag.turn}`, tag.right ? "right" : "wrong");
    set(`strategy-${tag.turn}`, tag.strategy);
  }
  for (const remark of answer?.remarks ?? []) set(`remark-${remark.turn}`, remark.comment);
  for (const details of form.querySelectorAll("details")) details.open = details.querySelector("textarea")?.value !== "";
}

/** Reads the form and keeps the answer at once. */
function record(item) {
  const fields = new FormData(main.querySelector("form"));
  const raw = { ...(store.get(item.item) ?? {}), decision: fields.get("decision"), reason: fields.get("reason") };
  for (const scale of SCALES) raw[scale] = Number(fields.get(scale));
  // A text field speaks of line ends as CR LF when a form is read, and as LF in its value.
  raw.comment = main.querySelector("[name=comment]")?.value ?? "";
  if (item.kind === "dialogue") {
    raw.tags = tagged(item).filter(([turn]) => fields.get(`tag-${turn}`));
    raw.tags = raw.tags.map(([turn]) => ({ turn, right: fields.get(`tag-${turn}`) === "right", strategy: fields.get(`strategy-${turn}`) }));
    raw.remarks = tagged(item).map(([turn]) => ({ turn, comment: main.querySelector(`[name="remark-${turn}"]`).value }));
  }
  if (keep(item.item, cleaned(item, raw)) === "elsewhere") return changedElsewhere([item.item]);
  return update(item);
}

/** Brings buttons, hints and the comparison up to date with the answer. */
function update(item) {
  const answer = store.get(item.item);
  const open = missing(item, answer);
  const form = main.querySelector("form");
  const removed = form.elements.decision?.value === "remove";
  if (piece(form, "reason")) piece(form, "reason").hidden = !removed;
  for (const better of form.querySelectorAll('[data-part="better"]')) {
    better.hidden = !better.parentElement.querySelector("[value=wrong]").checked;
  }
  for (const group of form.querySelectorAll(".missing")) {
    if (!open.includes(group.querySelector("[name]").name)) group.classList.remove("missing");
  }
  const compare = place.screen === "training" && !answer?.compared;
  slot(form, "next").textContent = compare ? "Compare" : "Next";
  form.querySelector('[data-do="skip"]').hidden = place.screen !== "item" || !open.length;
  if (answer?.compared && !main.querySelector(".comparison")) {
    for (const group of form.querySelectorAll("fieldset")) group.disabled = true;
    slot(form, "after").prepend(comparison(item, "How we would rate it"));
  }
  refreshProgress();
  markCurrent();
}

function comparison(item, title) {
  const part = stamp("comparison", { explanation: item.explanation });
  part.querySelector("h2").textContent = title;
  for (const scale of SCALES) {
    const yours = store.get(item.item)?.[scale];
    const cells = [scale, `${yours}`, `${item.ratings[scale]}${yours === item.ratings[scale] ? " ✓" : ""}`];
    const row = document.createElement("tr");
    row.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    slot(part, "rows").append(row);
  }
  return part;
}

/** The group of choices that a digit goes to: the one with the focus, or the first that is open, or the first. */
function currentGroup() {
  const groups = [...main.querySelectorAll("fieldset.choice:enabled")];
  const focused = document.activeElement?.closest("fieldset.choice");
  return groups.find((group) => group === focused) ?? groups.find((group) => !group.querySelector("input:checked")) ?? groups[0];
}

function markCurrent() {
  const current = currentGroup();
  for (const group of main.querySelectorAll("fieldset.choice")) group.classList.toggle("current", group === current);
}

function choose(digit) {
  const group = currentGroup();
  const radio = group?.querySelectorAll("input[type=radio]")[digit - 1];
  if (!radio) return;
  radio.checked = true;
  radio.dispatchEvent(new Event("input", { bubbles: true }));
  if (!group.isConnected) return;
  const better = group.querySelector("select");
  const reason = main.querySelector("[name=reason]");
  const groups = [...main.querySelectorAll("fieldset.choice")];
  const following = groups[groups.indexOf(group) + 1];
  if (better && radio.value === "wrong") better.focus();
  else if (following) (following.querySelector("input:checked") ?? following.querySelector("input")).focus();
  else if (radio.value === "remove") reason.focus();
  else main.querySelector('[data-do="next"]').focus();
}

const WORDS = { decision: "keep or remove", reason: "why it should go" };

/** Goes on from a finished item; on an unfinished one says what is missing and takes the rater there. */
function next() {
  const item = steps[place.screen]?.[place.at];
  if (shown !== place.screen) return actions.return();
  if (!item) return ["welcome", "end"].includes(shown) || main.querySelector('[data-do="again"]') ? undefined : step(1);
  const open = missing(item, store.get(item.item));
  if (open.length) {
    const words = open.map((name) => (item.kind === "crossed" ? "A or B" : WORDS[name]) ?? (name.includes("-") ? null : name)).filter(Boolean);
    const tags = open.length - words.length;
    if (tags) words.unshift(tags === 1 ? "one strategy" : `${tags} strategies`);
    const field = main.querySelector(`[name="${open[0]}"]`);
    field.closest("fieldset, p").classList.add("missing");
    field.focus();
    return say(`Still open: ${words.join(", ")}.`);
  }
  if (place.screen === "training" && !store.get(item.item).compared) {
    keep(item.item, { ...store.get(item.item), compared: true });
    update(item);
    const title = main.querySelector(".comparison h2");
    title.scrollIntoView({ block: "nearest" });
    return title.focus({ preventScroll: true });
  }
  return step(1);
}

