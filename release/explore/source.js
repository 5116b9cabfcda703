// Where the files of a release are read from: the sample in this page, a server that answers ranges, or a folder chosen by hand.

/** What went wrong, in words for the reader: what it is, and what to do. */
class Trouble extends Error {
  constructor(what, fix) {
    super(what);
    this.fix = fix;
  }
}

const about = JSON.parse(document.getElementById("about").textContent);
const embedded = JSON.parse(document.getElementById("sample").textContent);

const FULL_NAME = `${about.name} ${about.version}`;
const ANOTHER = `this page belongs to ${FULL_NAME}: open the page of the other release, or download this release again`;
const BY_HAND = "choose its folder instead, or serve it with “empathy-eval explore RELEASE --serve”";
const MOST_WHOLE = 4 << 20; // what a server without ranges may send instead of a part, in bytes
const PATIENCE = 60_000; // milliseconds for an answer
const PAUSES = [300, 1200]; // milliseconds before the second try, and before the third

/** The sample: small parquet files as base64. */
class Embedded {
  whole = false;
  files = Object.keys(embedded.files).map((path) => ({ ...about.files.find((one) => one.path === path), path, rows: null }));

  open({ path }) {
    const letters = atob(embedded.files[path]);
    const { buffer } = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    return { byteLength: buffer.byteLength, slice: async (start, end) => buffer.slice(start, end) };
  }
}

/** The folder of a release on a server. */
class Remote {
  whole = true;
  files = about.files;

  constructor(base) {
    this.base = base.endsWith("/") ? base : `${base}/`;
    this.name = this.base;
  }

  open({ path, bytes }) {
    const url = new URL(path, this.base).href;
    let all;
    return {
      byteLength: bytes,
      async slice(start, end = bytes) {
        if (start >= end) return new ArrayBuffer(0);
        if (all) return (await all).slice(start, end);
        const answer = await asked(url, { Range: `bytes=${start}-${end - 1}` });
        if (answer.status === 206) return part(url, answer, end - start, bytes);
        if (bytes > MOST_WHOLE) {
          answer.body?.cancel();
          throw new Trouble(`The server does not support range requests: it would send all ${number(bytes)} bytes of ${url}.`, BY_HAND);
        }
        all = received(url, answer);
        const data = await all;
        if (data.byteLength !== bytes) throw new Trouble(`${url} has ${number(data.byteLength)} bytes, not ${number(bytes)}.`, ANOTHER);
        return data.slice(start, end);
      },
    };
  }

  async manifest() {
    const url = new URL("manifest.json", this.base).href;
    return new TextDecoder().decode(await received(url, await asked(url)));
  }
}

/** What a server answers that gives what it was asked for; it is asked again where it is busy or cannot be reached. */
async function asked(url, headers = {}) {
  for (const pause of [...PAUSES, null]) {
    let answer;
    try {
      answer = await fetch(url, { headers, signal: AbortSignal.timeout(PATIENCE) });
    } catch (error) {
      if (error.name === "TimeoutError") throw new Trouble(`${url} did not answer within a minute.`, `try again later; or ${BY_HAND}`);
    }
    if (answer?.ok) return answer;
    const again = !answer || answer.status === 429 || answer.status >= 500;
    if (!again || pause === null) throw refusal(url, answer?.status);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return undefined;
}

function refusal(url, status) {
  if (!status) {
    const fix =
      "check that the address is right and the server runs; a server other than the page's own must allow it to read (CORS)";
    return new Trouble(`${url} could not be reached.`, `${fix}; or ${BY_HAND}`);
  }
  if (status === 404 || status === 410) return new Trouble(`${url} was not found (${status}).`, "enter the address of the folder that holds manifest.json");
  if (status === 401 || status === 403)
    return new Trouble(`${url} is not public (${status}).`, `download the release, then ${BY_HAND}`);
  if (status === 416) return new Trouble(`${url} is shorter than expected (416).`, ANOTHER);
  return new Trouble(`${url} failed with status ${status}.`, `try again later; or ${BY_HAND}`);
}

/** The bytes of an answer. */
async function received(url, answer) {
  try {
    return await answer.arrayBuffer();
  } catch {
    throw new Trouble(`${url} was cut off before its end.`, `try again; or ${BY_HAND}`);
  }
}

/** The bytes of an answer to a range, if they are what was asked for of a file of this size. */
async function part(url, answer, length, bytes) {
  const total = Number(answer.headers.get("Content-Range")?.split("/")[1] ?? bytes);
  if (total !== bytes) {
    answer.body?.cancel();
    throw new Trouble(`${url} has ${number(total)} bytes, not ${number(bytes)}.`, ANOTHER);
  }
  const data = await received(url, answer);
  if (data.byteLength !== length)
    throw new Trouble(`${url} returned ${number(data.byteLength)} bytes instead of ${number(length)}.`, ANOTHER);
  return data;
}

/** The folder of a release, chosen by hand: which of its files it is in is found out by the paths that a release has. */
class Chosen {
  whole = true;
  files = about.files;

  constructor(list) {
    const given = [...list].map((file) => [file.webkitRelativePath || file.name, file]);
    const known = new Set(["manifest.json", ...about.files.map((one) => one.path)]);
    const roots = new Map();
    for (const [path] of given) {
      const steps = path.split("/");
      const at = steps.findIndex((_, place) => known.has(steps.slice(place).join("/")));
      if (at >= 0) {
        const root = steps.slice(0, at).join("/");
        roots.set(root, (roots.get(root) ?? 0) + 1);
      }
    }
    const folder = given[0]?.[0].split("/")[0] ?? "";
    const whole = [...roots].filter(([, found]) => found > 1).map(([root]) => root);
    if (!whole.length) throw new Trouble(`There is no release in the folder “${folder}”.`, "choose the folder that holds manifest.json");
    if (whole.length > 1)
      throw new Trouble(`There is more than one release in “${folder}”: ${whole.join(", ")}.`, "choose the folder of one of them");
    const prefix = whole[0] ? `${whole[0]}/` : "";
    this.given = new Map(given.filter(([path]) => path.startsWith(prefix)).map(([path, file]) => [path.slice(prefix.length), file]));
    this.name = whole[0] || folder;
  }

  file(path) {
    const file = this.given.get(path);
    if (!file)
      throw new Trouble(
        `${path} is not in the folder “${this.name}”.`,
        "choose the complete folder of the release, which holds manifest.json",
      );
    return file;
  }

  open({ path, bytes }) {
    const file = this.file(path);
    if (file.size !== bytes) throw new Trouble(`${path} has ${number(file.size)} bytes, not ${number(bytes)}.`, ANOTHER);
    return { byteLength: file.size, slice: (start, end) => fromDisk(file.slice(start, end).arrayBuffer(), path) };
  }

  manifest() {
    return fromDisk(this.file("manifest.json").text(), "manifest.json");
  }
}

async function fromDisk(reading, path) {
  try {
    return await reading;
  } catch {
    throw new Trouble(`${path} can no longer be read from the disk.`, "it was changed or removed: choose the folder again");
  }
}

/** Refuses what is no release, and a release that is not the one of this page. */
async function checkRelease(source) {
  let manifest;
  try {
    manifest = JSON.parse(await source.manifest());
  } catch (error) {
    if (error instanceof Trouble) throw error;
    throw new Trouble(`manifest.json in ${source.name} is not JSON.`, "choose the folder of a release");
  }
  if (manifest?.name !== about.name || manifest?.version !== about.version) {
    throw new Trouble(`${source.name} holds ${manifest?.name ?? "something else"} ${manifest?.version ?? ""}.`, ANOTHER);
  }
}
