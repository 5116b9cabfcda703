// Which words of a text are not those of the reference.

const MOST_CELLS = 4e6; // of the table of common words: two texts of 2,000 words each

const ENGLISH = about.language === "en";

/** The words of a text, each with the space behind it, so that the lines of a text stay its lines. */
function wordsOf(text) {
  const whole = text.trim();
  // Not every script puts spaces between words; a browser that cannot tell takes them by their spaces all the same.
  if (ENGLISH || !Intl.Segmenter) return whole.match(/\S+\s*/gu) ?? [];
  const words = [];
  for (const { segment } of new Intl.Segmenter(about.language, { granularity: "word" }).segment(whole)) {
    if (words.length && !segment.trim()) words[words.length - 1] += segment;
    else words.push(segment);
  }
  return words;
}

/** How a text came from another, as [kind, words]: "same", "removed" or "added"; null where the texts are too long to tell. */
function changes(before, after) {
  const [oldSpaced, nowSpaced] = [before, after].map(wordsOf);
  const [old, now] = [oldSpaced, nowSpaced].map((words) => words.map((word) => word.trim()));
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const [oldPart, nowPart] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  if ((oldPart.length + 1) * (nowPart.length + 1) > MOST_CELLS) return null;
  const found = [];
  const put = (kind, word) => {
    if (found.at(-1)?.[0] === kind) found.at(-1)[1].push(word);
    else found.push([kind, [word]]);
  };
  for (const word of nowSpaced.slice(0, head)) put("same", word);
  for (const [kind, place] of between(oldPart, nowPart)) put(kind, (kind === "removed" ? oldSpaced : nowSpaced)[head + place]);
  for (const word of nowSpaced.slice(now.length - tail)) put("same", word);
  return found.map(([kind, words]) => [kind, words.join("")]);
}

/** The way from one list of words to another that keeps as many as can be kept: [kind, place], in the old list what is removed. */
function between(old, now) {
  const wide = now.length + 1;
  const common = new Uint16Array((old.length + 1) * wide);
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      const here = row * wide + column;
      common[here] = old[row] === now[column] ? common[here + wide + 1] + 1 : Math.max(common[here + wide], common[here + 1]);
    }
  }
  const way = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    const here = row * wide + column;
    if (row < old.length && column < now.length && old[row] === now[column]) {
      way.push(["same", column]);
      [row, column] = [row + 1, column + 1];
    } else if (row < old.length && (column === now.length || common[here + wide] >= common[here + 1])) {
      way.push(["removed", row]);
      row += 1;
    } else {
      way.push(["added", column]);
      column += 1;
    }
  }
  return way;
}
