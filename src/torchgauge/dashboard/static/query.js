// The query language of the matrices: its parser; holds.js evaluates. The terms for readers are in
// docs/how-to/read-the-dashboard.md; a mistake is a QueryError that says in words what, and where.

import { FIELDS, FUNCTIONS, MARKS, QueryError, STATUSES, UNITS, glob } from "./words.js";

export { cellsFound, needs, rowHolds } from "./holds.js";
export { QueryError, glob } from "./words.js";

/**
 * @typedef {{suite: string, model: string, mode: string, dtype: string, batch: string, text: string, cells: Cell[]}} Row
 * @typedef {{device: string, configuration: string, status: string, marks: string[],
 *   numbers: Record<string, number | null | undefined>, history: string}} Cell
 * `status` is one letter, "." where nothing is planned; `history` is a string of such letters, oldest first.
 * @typedef {{devices: string[], configurations: string[], metrics: Record<string, string>,
 *   values?: Record<string, string[]>}} Vocabulary
 * `metrics` are names with their base unit, `values` what the fields of the rows hold.
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
 * @typedef {import("./words.js").Glob} Glob
 */

const WORD_ENDS = /[\s,():<>="|&]/;
const LONGEST = 2000;
const DEEPEST = 40;

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

  /** Past what separates terms: spaces, and commas with a space or within brackets. @param {string} closing */
  separators(closing) {
    for (; this.at < this.text.length && /[\s,]/.test(this.text[this.at]); this.at += 1) {
      if (this.text[this.at] !== "," || closing || this.at === 0 || !this.listGoesOn()) continue;
      this.fail('a comma lists values after a colon, such as cpu:oom,crash; between terms write a space for "both", OR for "either"');
    }
  }

  /** Whether a comma stands here and a value directly behind it. */
  listGoesOn() {
    return this.text[this.at] === "," && /[^\s,)]/.test(this.text[this.at + 1] ?? " ");
  }

  /** The same, or a bar without spaces and a value that is no term by itself: cpu:oom|crash is cpu:oom,crash. */
  valueGoesOn() {
    return this.listGoesOn() || /^\|[^\s,():<>="|&]+(?=[\s,)|]|$)/.test(this.text.slice(this.at));
  }

  /** A word or sign that joins the terms beside it; "" where a term stands. @param {boolean} begun @returns {"" | "and" | "or"} */
  join(begun) {
    const found = /^(?:(or(?=\s|$)|OR(?=[\s(]|$)|\|\|?)|(?:and(?=\s|$)|AND(?=[\s(]|$)|&&?))/.exec(this.text.slice(this.at, this.at + 4));
    const call = found && /^[A-Z]+\($/.test(found[0] + this.text[this.at + found[0].length]);
    if (call && begun) this.fail(`${found[0]}( is a function in small letters; between two terms a space goes before the bracket`);
    if (!found || call) return "";
    this.at += found[0].length;
    return found[1] ? "or" : "and";
  }

  /** Terms up to the end or a closing bracket. @param {string} closing @returns {Node[]} */
  terms(closing) {
    /** @type {Node[]} */
    const found = [];
    for (let joint = { word: "", at: 0 }; ; ) {
      this.separators(closing);
      const at = this.at;
      const ended = at >= this.text.length || this.text[at] === ")";
      const word = ended ? "" : this.join(found.length > 0);
      if (joint.word && (ended || word)) this.fail(`${joint.word.toUpperCase()} requires a term after it`, joint.at);
      if (word && !found.length) this.fail(`${word.toUpperCase()} requires a term before it; put the word in quotation marks to search it`, at);
      if (word) {
        joint = { word, at };
        continue;
      }
      if (ended) return this.ended(closing, found);
      const term = this.term();
      const before = joint.word === "or" ? found.pop() : undefined;
      found.push(before ? { op: "or", of: [before, term], at: before.at } : term);
      joint = { word: "", at: 0 };
    }
  }

  /** @param {string} closing @param {Node[]} found @returns {Node[]} */
  ended(closing, found) {
    const end = this.at >= this.text.length;
    if (end && closing) this.fail("a closing bracket is missing");
    if (!end && !closing) this.fail("this closing bracket has no opening bracket");
    if (!end) this.at += 1;
    return found;
  }

  /** @returns {Node} */
  term() {
    const at = this.at;
    const not = /^(?:[-!](?=[^\s,)])|not\s+(?=[^\s,)]))/i.exec(this.text.slice(at));
    if (!not && /^(?:[-!]|not)(?=[\s,)]|$)/i.test(this.text.slice(at))) this.fail("not requires a term directly after it; put the word in quotation marks to search it");
    if (!not) return this.atom();
    this.at += not[0].length;
    return { op: "not", of: this.nested(() => this.term()), at };
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
    if (this.text[at] === "(") return this.group(at);
    const { text, quoted } = this.word(WORD_ENDS);
    const low = text.toLowerCase();
    if (Object.hasOwn(this.vocabulary.metrics, low)) this.at += /^\s*(?=[<>=])/.exec(this.text.slice(this.at))?.[0].length ?? 0;
    const next = this.text[this.at] ?? "";
    if (quoted && text === "" && next !== ":") this.fail("these quotation marks are empty", at);
    if (quoted) return next === ":" ? this.column(text, at) : { op: "text", text: text.toLowerCase(), at };
    if (text === "") this.fail(`"${next}" is not allowed here`);
    if (next === "(") return this.call(low, at);
    if (next === ":" && low === "count") return this.countOf(at);
    if (next === ":") return FIELDS.includes(low) ? this.field(low, at) : this.column(text, at);
    if (/[<>=]/.test(next)) return this.metric(low, at);
    if (Object.hasOwn(STATUSES, low)) return { op: "status", letters: STATUSES[low], at };
    if (MARKS.includes(low)) return { op: "mark", mark: low, at };
    if (low.includes("*")) return { op: "field", field: "text", value: glob(`*${low}*`), at };
    const { devices, configurations } = this.vocabulary;
    if (devices.some((name) => name.toLowerCase() === low)) return { op: "field", field: "device", value: glob(low), at };
    if (configurations.some((name) => name.toLowerCase() === low)) return { op: "field", field: "config", value: glob(low), at };
    return this.place(low, at) ?? { op: "text", text: low, at };
  }

  /** A device's configuration by its name, as the headings have it. @param {string} low @param {number} at @returns {Node | null} */
  place(low, at) {
    const slash = low.indexOf("/"), names = [low.slice(0, slash), low.slice(slash + 1)];
    const { devices, configurations } = this.vocabulary;
    if (slash < 0 || !devices.some(glob(names[0])) || !configurations.some(glob(names[1]))) return null;
    return { op: "and", of: ["device", "config"].map((field, i) => ({ op: "field", field, value: glob(names[i]), at })), at };
  }

  /** Terms between brackets, which must all hold. @param {number} at @returns {Node} */
  group(at) {
    this.at += 1;
    const of = this.nested(() => this.terms(")"));
    if (of.length === 0) this.fail("these brackets are empty", at);
    return { op: "and", of, at };
  }

  /** @param {string} name @param {number} at @returns {Node} */
  call(name, at) {
    if (!FUNCTIONS.includes(name)) {
      this.fail(`unknown function "${name}"; available: ${FUNCTIONS.join(", ")}`, at);
    }
    this.at += 1;
    const of = this.nested(() => this.terms(")"));
    if (of.length === 0) this.fail(`${name}() requires a term between its brackets`, at);
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
    const digits = this.word(WORD_ENDS).text;
    if (!/^\d{1,6}$/.test(digits) || this.text[this.at] !== "(") this.fail("write count:2(error)", at);
    this.at += 1;
    const of = this.nested(() => this.terms(")"));
    if (of.length === 0) this.fail("count() requires a term between its brackets", at);
    return { op: "count", of, sign: "=", value: Number(digits), at };
  }

  /** @param {Node[]} of @param {number} at @returns {Node} */
  count(of, at) {
    if (!/[<>=]/.test(this.text[this.at] ?? "")) return { op: "count", of, sign: ">=", value: 1, at };
    const sign = this.sign();
    const digits = this.word(WORD_ENDS).text;
    if (!/^\d{1,6}$/.test(digits)) this.fail("count() is compared with a whole number, such as count(error)>=2", at);
    return { op: "count", of, sign, value: Number(digits), at };
  }

  sign() {
    const found = /^(<=|>=|<|>|=)/.exec(this.text.slice(this.at, this.at + 2));
    if (!found) this.fail("a comparison is one of < <= > >= =");
    this.at += found[0].length;
    return found[0];
  }

  /** `field:value`, or a list of values of which any may hold. @param {string} field @param {number} at @returns {Node} */
  field(field, at) {
    /** @type {Node[]} */
    const of = [];
    do {
      this.at += 1; // the colon, or a comma
      of.push(this.value(field, at));
    } while (this.valueGoesOn());
    return of.length === 1 ? of[0] : { op: "or", of, at };
  }

  /** @param {string} field @param {number} at @returns {Node} */
  value(field, at) {
    const start = this.at;
    const { text } = this.word(/[\s,()"|&]/);
    if (text === "") this.fail(`${field}: requires a value, such as ${field}:${this.known(field)[0] ?? "error"}`, start);
    if (field === "status") {
      const low = text.toLowerCase();
      if (Object.hasOwn(STATUSES, low)) return { op: "status", letters: STATUSES[low], at };
      this.fail(`unknown status "${text}"; available: ${Object.keys(STATUSES).join(", ")}`, start);
    }
    const known = this.known(field);
    const value = glob(text);
    if (known.length && !known.some(value)) {
      const likely = known.filter(glob(`*${text}*`));
      const hint = likely.length ? `; ${field}:*${text}* finds ${likely.length === 1 ? likely[0] : `${likely.length} of them`}`
        : known.length <= 40 ? `; available: ${known.join(", ")}` : "";
      this.fail(`unknown ${field === "config" ? "configuration" : field} "${text}"${hint}`, start);
    }
    return { op: "field", field, value, at };
  }

  /** What `field` holds here, as far as that is known. @param {string} field @returns {string[]} */
  known(field) {
    if (field === "device") return this.vocabulary.devices;
    return field === "config" ? this.vocabulary.configurations : this.vocabulary.values?.[field] ?? [];
  }

  /** `DEVICE:...` or `DEVICE/CONFIGURATION:...`. @param {string} name @param {number} at @returns {Node} */
  column(name, at) {
    const slash = name.indexOf("/");
    const device = slash < 0 ? name : name.slice(0, slash);
    const configuration = slash < 0 ? "*" : name.slice(slash + 1);
    const { devices, configurations } = this.vocabulary;
    if (!devices.some(glob(device))) {
      const known = [...FIELDS, ...devices].join(", ");
      this.fail(`"${name}" is neither a field nor a device; available: ${known}`, at);
    }
    if (!configurations.some(glob(configuration))) {
      this.fail(`unknown configuration "${configuration}"; available: ${configurations.join(", ")}`, at);
    }
    /** @type {Node[]} */
    const of = [];
    do {
      this.at += 1; // the colon, or a comma
      of.push(this.said(name));
    } while (this.valueGoesOn());
    const any = of.length === 1 ? of[0] : /** @type {Node} */ ({ op: "or", of, at });
    return { op: "column", device: glob(device), configuration: glob(configuration), of: any, at };
  }

  /** What is said of the cells of a column. @param {string} name @returns {Node} */
  said(name) {
    const start = this.at;
    if (start >= this.text.length || /[\s,)]/.test(this.text[start])) {
      this.fail(`${name}: requires a status, a mark or a comparison, such as ${name}:error`, start);
    }
    const of = this.nested(() => this.term());
    if (of.op === "text") this.fail(`"${of.text}" is neither a status nor a mark, such as error or flaky`, start);
    if (of.op === "column") this.fail("a device cannot follow another device: put a space between two terms", start);
    return of;
  }

  /** @param {string} metric @param {number} at @returns {Node} */
  metric(metric, at) {
    if (!Object.hasOwn(this.vocabulary.metrics, metric)) {
      const known = Object.keys(this.vocabulary.metrics).join(", ");
      if (FIELDS.includes(metric)) this.fail(`a field takes a colon, such as ${metric}:${this.known(metric)[0] ?? "error"}`, this.at);
      this.fail(`unknown metric "${metric}"${known ? `; available: ${known}` : ""}`, at);
    }
    const units = UNITS[this.vocabulary.metrics[metric]] ?? {};
    const sign = this.sign();
    this.at += /^\s*/.exec(this.text.slice(this.at))?.[0].length ?? 0;
    const start = this.at;
    const { text } = this.word(WORD_ENDS);
    const found = /^(\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?)(.*)$/i.exec(text);
    if (!found) this.fail(`${metric} is compared with a number, such as ${metric}>1`, start);
    const suffix = (found[2] || this.unitApart(units)).toLowerCase();
    const factor = suffix === "" ? 1 : Object.hasOwn(units, suffix) ? units[suffix] : null;
    if (factor === null) {
      const known = Object.keys(units).join(", ");
      this.fail(`"${found[2]}" is not a unit of ${metric}${known ? `; available: ${known}` : ""}`, start);
    }
    return { op: "metric", metric, sign, value: Number(found[1]) * factor, at };
  }

  /** A unit that a space keeps apart from its number; empty where another term follows. @param {Record<string, number>} units */
  unitApart(units) {
    const found = /^\s+([^\s,()|&]+)/.exec(this.text.slice(this.at));
    if (!found || !Object.hasOwn(units, found[1].toLowerCase())) return "";
    this.at += found[0].length;
    return found[1];
  }
}

/**
 * The query `text` as a tree; terms beside each other must all hold. Throws {@link QueryError}.
 * @param {string} text
 * @param {Vocabulary} vocabulary
 * @returns {Node}
 */
export function parse(text, vocabulary) {
  if (text.length > LONGEST) throw new QueryError(`a query has at most ${LONGEST} characters`, LONGEST);
  const of = new Parser(text, vocabulary).terms("");
  if (!of.length && text.trim()) throw new QueryError("a comma requires terms around it", 0);
  return { op: "and", of, at: 0 };
}
