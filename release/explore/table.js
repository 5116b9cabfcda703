// A parquet file of a release, read by groups of rows.

const KEPT = 6; // groups of whole rows that are kept, of all files together
const KEPT_ROWS = 5000; // what such a group may have
const AGAIN = "download the release again";

class Table {
  static made = 0;

  constructor(source, file) {
    Object.assign(this, { source, file, path: file.path, number: (Table.made += 1) });
  }

  /** What the file says of itself; the groups know where their rows begin, and what an id in them may be. */
  async footer() {
    this.opened ??= this.#told(async () => {
      this.buffer = this.source.open(this.file);
      const metadata = await parquet.footer(this.buffer);
      const rows = Number(metadata.num_rows);
      if (this.file.rows !== null && rows !== this.file.rows) {
        throw new Trouble(`${this.path} has ${number(rows)} rows, not ${number(this.file.rows)}.`, ANOTHER);
      }
      let start = 0;
      const groups = metadata.row_groups.map((group) => {
        const count = Number(group.num_rows);
        start += count;
        return { start: start - count, count, columns: group.columns };
      });
      return { metadata, rows, groups, names: topNames(metadata.schema) };
    });
    try {
      return await this.opened;
    } catch (error) {
      this.opened = undefined; // so that another try can succeed
      throw error;
    }
  }

  /** The named columns of a group, of those that the file has, each as an array. */
  async columns(wanted, group) {
    const { metadata, groups, names } = await this.footer();
    const columns = wanted.filter((name) => names.includes(name));
    const { start, count } = groups[group];
    const found = Object.fromEntries(columns.map((name) => [name, []]));
    const onChunk = ({ columnName, columnData }) => found[columnName].push(columnData);
    await this.#told(() => parquet.read({ file: this.buffer, metadata, columns, rowStart: start, rowEnd: start + count, onChunk }));
    return Object.fromEntries(
      columns.map((name) => [name, found[name].length === 1 ? found[name][0] : found[name].map((one) => [...one]).flat()]),
    );
  }

  /** The rows of a group, each an object. */
  async rows(group) {
    const { groups } = await this.footer();
    const { start, count } = groups[group];
    return keptRows(this, group, () => this.#between(start, start + count));
  }

  async #between(rowStart, rowEnd) {
    const { metadata } = await this.footer();
    const read = (onComplete) => parquet.read({ file: this.buffer, metadata, rowStart, rowEnd, rowFormat: "object", onComplete });
    return this.#told(() => new Promise((resolve, reject) => read(resolve).catch(reject)));
  }

  /** All rows whose column has this value; of the groups that can hold it alone are more read than the footer. */
  async find(column, value) {
    const { groups, names } = await this.footer();
    if (!names.includes(column)) return [];
    const found = [];
    for (const [place, group] of groups.entries()) {
      if (!mayHold(group, column, value)) continue;
      const values = (await this.columns([column], place))[column];
      const first = values.indexOf(value);
      if (first < 0) continue;
      // Of a large group, no more rows are made than it takes.
      const large = group.count > KEPT_ROWS;
      const rows = await (large ? this.#between(group.start + first, group.start + values.lastIndexOf(value) + 1) : this.rows(place));
      found.push(...rows.filter((row) => row[column] === value));
    }
    return found;
  }

  async #told(work) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Trouble) throw error;
      throw new Trouble(`${this.path} is damaged or is not a parquet file: ${error.message}.`, AGAIN);
    }
  }
}

/** Whether the bounds of a column leave room for a value. */
function mayHold(group, column, value) {
  const bounds = group.columns.find((one) => one.meta_data.path_in_schema[0] === column)?.meta_data.statistics;
  const [least, most] = [bounds?.min_value, bounds?.max_value];
  return (typeof least !== "string" || least <= value) && (typeof most !== "string" || value <= most);
}

/** The columns of a schema, which comes as a list, each element before its children. */
function topNames(schema) {
  const names = [];
  const after = (place) => {
    let next = place + 1;
    for (let left = schema[place].num_children ?? 0; left > 0; left -= 1) next = after(next);
    return next;
  };
  for (let place = 1; place < schema.length; place = after(place)) names.push(schema[place].name);
  return names;
}

const kept = new Map(); // rows by number of the table and of the group, the last used at the end

async function keptRows(table, group, read) {
  const key = `${table.number} ${group}`;
  const rows = kept.get(key) ?? read();
  kept.delete(key);
  kept.set(key, rows);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  try {
    return await rows;
  } catch (error) {
    kept.delete(key);
    throw error;
  }
}

/** The tables of a source by config and split. */
class Tables {
  constructor(source) {
    this.source = source;
    this.all = source.files.map((file) => new Table(source, file));
  }

  /** The files of a config, in the order of the splits. */
  of(config) {
    return this.all.filter((table) => table.file.config === config);
  }

  /** All rows of a config whose column has this value, each with its split; one split alone is looked into where it is known. */
  async find(config, column, value, split = null) {
    const tables = this.of(config).filter((table) => split === null || table.file.split === split);
    const found = await Promise.all(
      tables.map(async (table) => (await table.find(column, value)).map((row) => ({ ...row, split: table.file.split }))),
    );
    return found.flat();
  }
}
