// The query language of the matrices: a parser and an evaluator without any DOM. The grammar for readers is
// in docs/how-to/read-the-dashboard.md; a mistake is a QueryError that says in words what, and where.

/**
 * @typedef {{suite: string, model: string, mode: string, dtype: string, batch: string, text: string, cells: Cell[]}} Row
 * @typedef {{device: string, configuration: string, status: string, marks: string[],
 *   numbers: Record<string, number | null | undefined>, history: string}} Cell
 * `status` is one letter, "." where nothing is planned; `history` is a string of such letters, oldest first.
 * @typedef {{devices: string[], configurations: string[], metrics: Record<string, string>}} Vocabulary
 * `metrics` are names with their base unit.
 * @typedef {{op: "and" | "or" | "cell" | "every" | "seq", of: Node[], at: number}} Several
 * @typedef {{op: "not", of: Node, at: number}} Not
 * @typedef {{op: "count", of: Node[], sign: string, value: number, at: number}} Count
 * @typedef {{op: "column", device: Glob, configuration: Glob, of: Node, at: number}} Column
 * @typedef {{op: "field", field: string, value: Glob, at: number}} Field
 * @typedef {{op: "status", letters: string, at: number}} StatusIs
 * @typedef {{op: "mark", mark: string, at: number}} Mark
 * @typedef {{op: "metric", metric: string, sign: string, value: number, at: number}} MetricIs
 * @typedef {{op: "text", text: string, at: number}} Text
 * @typedef {Several | Not | Count | Column | Field | StatusIs | Mark | MetricIs | Text} Node
 * @typedef {(text: string) => boolean} Glob
 */

/** Names of statuses, and the letters of the cells that have them. @type {Readonly<Record<string, string>>} */
export const STATUSES = Object.freeze({
  pass: "p", fail_accuracy: "a", acc: "a", error: "e", err: "e", crash: "c", oom: "o", timeout: "t",
  "t/o": "t", unsupported: "u", "n/a": "u", skipped: "s", skip: "s", infra: "i", not_run: "n", none: ".",
  fail: "aecot",
});
export const MARKS = Object.freeze(["new", "unexpected", "expected", "degraded", "other_model", "unchecked", "unsteady", "flaky", "contributed", "imported", "stale", "superseded"]);
export const FIELDS = Object.freeze(["suite", "model", "mode", "dtype", "batch", "device", "config", "status"]);
const FUNCTIONS = Object.freeze(["and", "or", "not", "cell", "every", "count", "seq"]);
/** @type {Record<string, Record<string, number>>} */
const UNITS = {
  s: { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9, min: 60 },
  B: { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 },
  ratio: { x: 1, "%": 0.01 },
};
const LONGEST = 2000;
const DEEPEST = 40;

export class QueryError extends Error {
  /** @param {string} message @param {number} at where in the query, counted from 0 */
  constructor(message, at) {
    super(message);
    this.name = "QueryError";
    this.at = at;
  }
}

/**
 * A test for `pattern`, in which `*` stands for any characters; case does not matter.
 * @param {string} pattern
 * @returns {Glob}
 */
export function glob(pattern) {
  const [first, ...rest] = pattern.toLowerCase().split("*");
  if (rest.length === 0) return (text) => text.toLowerCase() === first;
  const last = /** @type {string} */ (rest.pop());
  return (text) => {
    const low = text.toLowerCase();
    if (!low.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = low.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return low.length - last.length >= at && low.endsWith(last);
  };
}

class Parser {
  /** @param {string} text @param {Vocabulary} vocabulary */
  constructor(text, vocabulary) {
    this.text = text;
    this.vocabulary = vocabulary;
    this.at = 0;
    this.depth = 0;
  }

  /** @param {string} message @param {number} [at] @returns {never} */
  fail(message, at = this.at) {
    throw new QueryError(message, at);
  }

  spaces() {
    while (this.at < this.text.length && /[\s,]/.test(this.text[this.at])) this.at += 1;
  }

  /** Terms up to the end or a closing bracket. @param {string} closing @returns {Node[]} */
  terms(closing) {
    const found = [];
    for (;;) {
      this.spaces();
      if (this.at >= this.text.length) {
        if (closing) this.fail("a closing bracket is missing");
        return found;
      }
      if (this.text[this.at] === ")") {
        if (!closing) this.fail("this closing bracket was never opened");
        this.at += 1;
        return found;
      }
      found.push(this.term());
    }
  }

  /** @returns {Node} */
  term() {
    const at = this.at;
    if (this.text[at] === "-" && at + 1 < this.text.length && !/[\s,)]/.test(this.text[at + 1])) {
      this.at += 1;
      return { op: "not", of: this.nested(() => this.term()), at };
    }
    return this.atom();
  }

  /** @template T @param {() => T} parse @returns {T} */
  nested(parse) {
    this.depth += 1;
    if (this.depth > DEEPEST) this.fail("the query is nested too deep");
    const found = parse();
    this.depth -= 1;
    return found;
  }

  /** A word, or text in quotation marks. @param {RegExp} stop @returns {{text: string, quoted: boolean}} */
  word(stop) {
    const start = this.at;
    if (this.text[start] === '"') {
      const end = this.text.indexOf('"', start + 1);
      if (end < 0) this.fail("a closing quotation mark is missing", start);
      this.at = end + 1;
      return { text: this.text.slice(start + 1, end), quoted: true };
    }
    while (this.at < this.text.length && !stop.test(this.text[this.at])) this.at += 1;
    return { text: this.text.slice(start, this.at), quoted: false };
  }

  /** @returns {Node} */
  atom() {
    const at = this.at;
    const { text, quoted } = this.word(/[\s,():<>="]/);
    const next = this.text[this.at] ?? "";
    if (quoted) return next === ":" ? this.column(text, at) : { op: "text", text: text.toLowerCase(), at };
    if (text === "") this.fail(`"${next}" cannot stand here`);
    const low = text.toLowerCase();
    if (next === "(") return this.call(low, at);
    if (next === ":" && low === "count") return this.countOf(at);
    if (next === ":") return FIELDS.includes(low) ? this.field(low, at) : this.column(text, at);
    if (/[<>=]/.test(next)) return this.metric(low, at);
    if (Object.hasOwn(STATUSES, low)) return { op: "status", letters: STATUSES[low], at };
    if (MARKS.includes(low)) return { op: "mark", mark: low, at };
    if (low.includes("*")) return { op: "field", field: "text", value: glob(`*${low}*`), at };
    return { op: "text", text: low, at };
  }

  /** @param {string} name @param {number} at @returns {Node} */
  call(name, at) {
    if (!FUNCTIONS.includes(name)) {
      this.fail(`there is no function "${name}"; there are ${FUNCTIONS.join(", ")}`, at);
    }
    this.at += 1;
    const of = this.nested(() => this.terms(")"));
    if (of.length === 0) this.fail(`${name}() needs something between its brackets`, at);
    if (name === "not") return { op: "not", of: of.length === 1 ? of[0] : { op: "and", of, at }, at };
    if (name === "count") return this.count(of, at);
    if (name === "seq") of.forEach((node) => this.checkStep(node));
    return { op: /** @type {Several["op"]} */ (name), of, at };
  }

  /** A step of seq() speaks of a status. @param {Node} node @returns {void} */
  checkStep(node) {
    if (node.op === "status") return;
    if (node.op === "not" || node.op === "column") return this.checkStep(node.of);
    if (node.op === "or" || node.op === "and") return node.of.forEach((child) => this.checkStep(child));
    this.fail("seq() takes statuses, such as seq(pass error)", node.at);
  }

  /** `count:2(...)`, the way of wpt.fyi. @param {number} at @returns {Node} */
  countOf(at) {
    this.at += 1;
    const digits = this.word(/[\s,():<>="]/).text;
    if (!/^\d{1,6}$/.test(digits) || this.text[this.at] !== "(") this.fail("write count:2(error)", at);
    this.at += 1;
    const of = this.nested(() => this.terms(")"));
    if (of.length === 0) this.fail("count() needs something between its brackets", at);
    return { op: "count", of, sign: "=", value: Number(digits), at };
  }

  /** @param {Node[]} of @param {number} at @returns {Node} */
  count(of, at) {
    if (!/[<>=]/.test(this.text[this.at] ?? "")) return { op: "count", of, sign: ">=", value: 1, at };
    const sign = this.sign();
    const digits = this.word(/[\s,():<>="]/).text;
    if (!/^\d{1,6}$/.test(digits)) this.fail("count() is compared with a whole number, such as count(error)>=2", at);
    return { op: "count", of, sign, value: Number(digits), at };
  }

  sign() {
    const found = /^(<=|>=|<|>|=)/.exec(this.text.slice(this.at, this.at + 2));
    if (!found) this.fail("a comparison is one of < <= > >= =");
    this.at += found[0].length;
    return found[0];
  }

  /** @param {string} field @param {number} at @returns {Node} */
  field(field, at) {
    this.at += 1;
    const start = this.at;
    const { text } = this.word(/[\s,()"]/);
    if (text === "") this.fail(`${field}: needs a value`, start);
    if (field !== "status") return { op: "field", field, value: glob(text), at };
    const low = text.toLowerCase();
    if (!Object.hasOwn(STATUSES, low)) {
      this.fail(`there is no status "${text}"; there are ${Object.keys(STATUSES).join(", ")}`, start);
    }
    return { op: "status", letters: STATUSES[low], at };
  }

  /** `DEVICE:...` or `DEVICE/CONFIGURATION:...`. @param {string} name @param {number} at @returns {Node} */
  column(name, at) {
    const slash = name.indexOf("/");
    const device = slash < 0 ? name : name.slice(0, slash);
    const configuration = slash < 0 ? "*" : name.slice(slash + 1);
    const { devices, configurations } = this.vocabulary;
    if (!devices.some(glob(device))) {
      const known = [...FIELDS, ...devices].join(", ");
      this.fail(`"${name}" is neither a field nor a device here; there are ${known}`, at);
    }
    if (!configurations.some(glob(configuration))) {
      this.fail(`there is no configuration "${configuration}"; there are ${configurations.join(", ")}`, at);
    }
    this.at += 1;
    const start = this.at;
    if (start >= this.text.length || /[\s,)]/.test(this.text[start])) {
      this.fail(`${name}: needs a status, a mark or a comparison, such as ${name}:error`, start);
    }
    const of = this.nested(() => this.term());
    if (of.op === "text") this.fail(`"${of.text}" is no status and no mark, such as error or flaky`, start);
    return { op: "column", device: glob(device), configuration: glob(configuration), of, at };
  }

  /** @param {string} metric @param {number} at @returns {Node} */
  metric(metric, at) {
    if (!Object.hasOwn(this.vocabulary.metrics, metric)) {
      const known = Object.keys(this.vocabulary.metrics).join(", ");
      this.fail(`there is no metric "${metric}"${known ? `; there are ${known}` : ""}`, at);
    }
    const units = UNITS[this.vocabulary.metrics[metric]] ?? {};
    const sign = this.sign();
    const start = this.at;
    const { text } = this.word(/[\s,():<>="]/);
    const found = /^(\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?)(.*)$/i.exec(text);
    if (!found) this.fail(`${metric} is compared with a number, such as ${metric}>1`, start);
    const suffix = found[2].toLowerCase();
    const factor = suffix === "" ? 1 : Object.hasOwn(units, suffix) ? units[suffix] : null;
    if (factor === null) {
      const known = Object.keys(units).join(", ");
      this.fail(`"${found[2]}" is no unit of ${metric}${known ? `; there are ${known}` : ""}`, start);
    }
    return { op: "metric", metric, sign, value: Number(found[1]) * factor, at };
  }
}

/**
 * The query `text` as a tree; terms beside each other must all hold. Throws {@link QueryError}.
 * @param {string} text
 * @param {Vocabulary} vocabulary
 * @returns {Node}
 */
export function parse(text, vocabulary) {
  if (text.length > LONGEST) throw new QueryError(`a query has ${LONGEST} characters at most`, LONGEST);
  return { op: "and", of: new Parser(text, vocabulary).terms(""), at: 0 };
}

/** @param {number} left @param {string} sign @param {number} right */
function compares(left, sign, right) {
  if (sign === "<") return left < right;
  if (sign === "<=") return left <= right;
  if (sign === ">") return left > right;
  return sign === ">=" ? left >= right : left === right;
}

/** Whether `node` speaks of cells that nobody planned. @param {Node} node @returns {boolean} */
function speaksOfNone(node) {
  if (node.op === "status") return node.letters === ".";
  if (!("of" in node)) return false;
  return Array.isArray(node.of) ? node.of.some(speaksOfNone) : speaksOfNone(node.of);
}

/** @param {Row} row @param {Node[]} nodes @returns {Cell[]} */
function cellsOf(row, nodes) {
  return nodes.some(speaksOfNone) ? row.cells : row.cells.filter((cell) => cell.status !== ".");
}

/** @param {Field} node @param {Row} row @param {Cell} cell */
function fieldHolds(node, row, cell) {
  if (node.field === "device") return node.value(cell.device);
  if (node.field === "config") return node.value(cell.configuration);
  return node.value(row[/** @type {"suite" | "model" | "mode" | "dtype" | "batch" | "text"} */ (node.field)]);
}

/** Whether `steps` follow each other in what is known of `cell`. @param {Node[]} steps @param {Row} row @param {Cell} cell */
function happened(steps, row, cell) {
  const said = [...cell.history].filter((letter) => !".in".includes(letter));
  for (let start = 0; start + steps.length <= said.length; start += 1) {
    if (steps.every((step, i) => cellHolds(step, row, { ...cell, status: said[start + i] }))) return true;
  }
  return false;
}

/**
 * Whether one cell of `row` fulfils `node`.
 * @param {Node} node
 * @param {Row} row
 * @param {Cell} cell
 * @returns {boolean}
 */
function cellHolds(node, row, cell) {
  switch (node.op) {
    case "and": case "cell": case "every": return node.of.every((child) => cellHolds(child, row, cell));
    case "or": return node.of.some((child) => cellHolds(child, row, cell));
    case "not": return !cellHolds(node.of, row, cell);
    case "count": return rowHolds(node, row);
    case "seq": return happened(node.of, row, cell);
    case "column":
      return node.device(cell.device) && node.configuration(cell.configuration) && cellHolds(node.of, row, cell);
    case "field": return fieldHolds(node, row, cell);
    case "status": return node.letters.includes(cell.status);
    case "mark": return cell.marks.includes(node.mark);
    case "metric": {
      const value = cell.numbers[node.metric];
      return typeof value === "number" && compares(value, node.sign, node.value);
    }
    case "text": return row.text.includes(node.text);
  }
}

/**
 * Whether `row` fulfils `node`: what is said of cells holds where it holds for any planned cell.
 * @param {Node} node
 * @param {Row} row
 * @returns {boolean}
 */
export function rowHolds(node, row) {
  switch (node.op) {
    case "and": return node.of.every((child) => rowHolds(child, row));
    case "or": return node.of.some((child) => rowHolds(child, row));
    case "not": return !rowHolds(node.of, row);
    case "text": return row.text.includes(node.text);
    case "count": {
      const cells = cellsOf(row, node.of);
      const found = cells.filter((cell) => node.of.every((child) => cellHolds(child, row, cell)));
      return compares(found.length, node.sign, node.value);
    }
    case "every": {
      const cells = cellsOf(row, node.of).filter((cell) => node.of.every((child) => inScope(child, row, cell)));
      return cells.length > 0 && cells.every((cell) => cellHolds(node, row, cell));
    }
    default: return cellsOf(row, [node]).some((cell) => cellHolds(node, row, cell));
  }
}

/** Whether `cell` is in a column that `node` speaks of. @param {Node} node @param {Row} row @param {Cell} cell @returns {boolean} */
function inScope(node, row, cell) {
  if (node.op === "column") return node.device(cell.device) && node.configuration(cell.configuration);
  if (node.op === "field") return fieldHolds(node, row, cell);
  return true;
}

/**
 * What must be loaded before `node` can be evaluated.
 * @param {Node} node
 * @returns {{metrics: string[], history: boolean}}
 */
export function needs(node) {
  /** @type {Set<string>} */
  const metrics = new Set();
  let history = false;
  /** @param {Node} at */
  const walk = (at) => {
    if (at.op === "metric") metrics.add(at.metric);
    if (at.op === "seq") history = true;
    if ("of" in at) (Array.isArray(at.of) ? at.of : [at.of]).forEach(walk);
  };
  walk(node);
  return { metrics: [...metrics], history };
}
