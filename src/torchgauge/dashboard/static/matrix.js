// Query box, sorting, hiding of devices and baselines of a matrix. The table is complete without this file.

import { makeGrid } from "./grid.js";
import * as state from "./state.js";

/** @typedef {import("./query.js").Row} Row */
/** @typedef {{tr: HTMLTableRowElement, order: number, row: Row | null}} Line */
/** @typedef {{device: string, configuration: string, anchor: string, head: HTMLTableCellElement}} Column */

const BADNESS = "psunitoaec";

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, unknown>} [properties]
 * @returns {HTMLElementTagNameMap[K]}
 */
function element(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

class Matrix {
  /** @param {HTMLTableElement} table @param {HTMLElement} controls */
  constructor(table, controls) {
    this.table = table;
    this.body = table.tBodies[0];
    /** @type {Line[]} */
    this.lines = [...this.body.rows].map((tr, order) => ({ tr, order, row: null }));
    const heads = /** @type {NodeListOf<HTMLTableCellElement>} */ (table.tHead?.querySelectorAll("th[data-anchor]"));
    /** @type {Column[]} */
    this.columns = [...heads].map((head) => ({
      device: head.dataset.device ?? "",
      configuration: head.lastElementChild?.textContent ?? "",
      anchor: head.dataset.anchor ?? "",
      head,
    }));
    this.corner = /** @type {HTMLTableCellElement} */ (table.tHead?.querySelector(".corner"));
    this.devices = [...new Set(this.columns.map((column) => column.device))];
    /** @type {Promise<typeof import("./query.js")> | null} */
    this.language = null;
    /** @type {Set<string>} */
    this.loaded = new Set();
    /** @type {typeof import("./query.js") | null} */
    this.known = null;
    this.sort = "";
    this.hidden = "";
    this.base = "";
    this.typing = false;
    this.turn = 0;
    this.averages = 0;
    this.averaged = false;
    this.grid = makeGrid(table);
    this.makeControls(controls);
    this.makeSort();
    state.follow((found) => void this.apply(found));
    void this.apply(state.read());
  }

  // -- Controls ----------------------------------------------------------------------------------------

  /** @param {HTMLElement} controls */
  makeControls(controls) {
    const label = element("label", { textContent: "Query " });
    this.input = element("input", { type: "search", autocomplete: "off", spellcheck: false, maxLength: 2000 });
    this.input.placeholder = `resnet* ${quoted(this.devices.at(-1) ?? "")}:error -flaky`;
    this.input.setAttribute("aria-describedby", "query-says");
    this.says = element("output", { id: "query-says", className: "muted" });
    this.reset = element("button", { type: "button", textContent: "Show all", hidden: true });
    this.worst = element("button", { type: "button", textContent: "Worst rows first" });
    label.append(this.input);
    this.input.addEventListener("focus", () => void this.parser(), { once: true });
    this.input.addEventListener("input", () => {
      this.remember(!this.typing, { q: this.input?.value ?? "" });
      this.typing = true;
      void this.filter(this.input?.value ?? "");
    });
    this.input.addEventListener("change", () => (this.typing = false));
    this.reset.addEventListener("click", () => {
      this.go({ q: "" });
      this.input?.focus();
    });
    this.worst.addEventListener("click", () => this.go({ sort: this.sort === "worst" ? "" : "worst" }));
    controls.append(label, this.reset, this.says, this.worst);
    if (this.devices.length > 1) controls.append(this.makeDevices());
    if (this.table.dataset.metric) controls.append(this.makeBaselines());
    controls.append(this.makeHelp());
  }

  makeDevices() {
    const set = element("fieldset", { className: "chips" });
    set.append(element("legend", { textContent: "Devices" }));
    this.boxes = this.devices.map((device) => {
      const label = element("label");
      const box = element("input", { type: "checkbox", checked: true, value: device });
      box.addEventListener("change", () => {
        const boxes = /** @type {HTMLInputElement[]} */ (this.boxes ?? []);
        const off = boxes.filter((other) => !other.checked).map((other) => other.value);
        this.go({ hide: off.map(encodeURIComponent).join(",") });
      });
      label.append(box, ` ${device}`);
      set.append(label);
      return box;
    });
    return set;
  }

  makeBaselines() {
    const label = element("label", { textContent: "Baseline " });
    this.bases = element("select");
    this.bases.append(element("option", { value: "", textContent: "of this page" }));
    for (const { device, configuration, anchor } of this.columns) {
      this.bases.append(element("option", { value: anchor, textContent: `${device} · ${configuration}` }));
    }
    this.bases.addEventListener("change", () => this.go({ base: this.bases?.value ?? "" }));
    label.append(this.bases);
    return label;
  }

  makeHelp() {
    const help = element("details", { className: "query-help" });
    help.append(element("summary", { textContent: "How to ask" }));
    const list = element("dl");
    const device = quoted(this.devices.at(-1) ?? "");
    const column = quoted(`${this.devices.at(-1)}/${this.columns.at(-1)?.configuration}`);
    for (const [query, meaning] of [
      ["resnet suite:timm mode:training", "words and fields of the workload; * stands for any characters"],
      [`${device}:error ${column}:pass`, "some cell of a device, or of a device's configuration, has this status"],
      [`-${device}:pass or(crash oom)`, "not; one or the other. Terms beside each other must all hold"],
      ["cell(error flaky)", "one cell has it all"],
      [`every(${device}:pass)`, "all planned cells of the device have it"],
      ["count(fail)>=3", "so many cells; fail is any status of an attempt that did not pass"],
      ["seq(pass error)", "passed, and at its next result raised an error"],
      [`speedup<1 ${device}:latency>10ms`, "numbers, with units"],
      ["or(new unexpected degraded other_model unchecked unsteady flaky contributed imported stale none)", "marks; none is a combination that nobody planned"],
    ]) {
      const button = element("button", { type: "button", className: "example", textContent: query });
      button.addEventListener("click", () => {
        if (this.input) this.input.value = query;
        this.go({ q: query });
        this.input?.focus();
      });
      const term = element("dt");
      term.append(button);
      list.append(term, element("dd", { textContent: meaning }));
    }
    help.append(list);
    return help;
  }

  makeSort() {
    for (const head of [this.corner, ...this.columns.map((column) => column.head)]) {
      const key = head.dataset.anchor ?? "name";
      const button = element("button", { type: "button", className: "sort" });
      button.append(...head.childNodes);
      button.addEventListener("click", () => {
        // A first click shows the worst of a column, or the last names, as the default is the first ones.
        const down = `-${key}`;
        this.go({ sort: this.sort === down ? key : down });
      });
      head.replaceChildren(button);
    }
    this.grid.refresh();
  }

  // -- State -------------------------------------------------------------------------------------------

  /** @param {boolean} step whether back leads here @param {import("./state.js").State} changes */
  remember(step, changes) {
    const wanted = { ...state.read(), ...changes };
    if (step) state.commit(wanted);
    else state.replace(wanted);
    this.carry(wanted.q ?? "");
  }

  /** Links to other views of the same rows keep the query. @param {string} query */
  carry(query) {
    for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[data-view]"))) {
      link.search = query ? new URLSearchParams({ q: query }).toString() : "";
    }
  }

  /** Show `changes` and make them a step of the history. @param {import("./state.js").State} changes */
  go(changes) {
    this.typing = false;
    this.remember(true, changes);
    void this.apply(state.read());
  }

  /** @param {import("./state.js").State} found */
  async apply(found) {
    if (this.input && this.input.value !== (found.q ?? "")) this.input.value = found.q ?? "";
    this.typing = false;
    this.carry(found.q ?? "");
    this.hide(found.hide ?? "");
    let failed = "";
    try {
      await this.rebase(found.base ?? "");
    } catch (error) {
      failed = `The baseline cannot be loaded: ${error instanceof Error ? error.message : error}.`;
      if (this.base === found.base) this.base = ""; // the cells are as they were
    }
    // What was chosen while the numbers of a baseline were on their way is in the address, and holds.
    const { q = "", sort = "" } = state.read();
    this.sortBy(sort);
    await this.filter(q);
    if (failed) this.tell(failed);
  }

  // -- Filter ------------------------------------------------------------------------------------------

  parser() {
    this.language ??= import("./query.js").then((module) => (this.known = module));
    return this.language;
  }

  /** @param {string} text */
  async filter(text) {
    this.turn += 1;
    const turn = this.turn;
    if (!text.trim()) {
      this.show(() => true, "");
      return;
    }
    const language = this.known ?? (await this.parser());
    if (turn !== this.turn) return;
    let tree;
    try {
      tree = language.parse(text, this.vocabulary());
    } catch (error) {
      if (!(error instanceof language.QueryError)) throw error;
      this.complain(`At character ${error.at + 1}: ${error.message}.`);
      return;
    }
    const missing = language.needs(tree);
    if (missing.metrics.some((name) => !this.loaded.has(name)) || (missing.history && !this.loaded.has("seq"))) {
      this.tell("Loading …");
      try {
        await this.load(missing);
      } catch (error) {
        this.complain(`What the query asks for cannot be loaded: ${error instanceof Error ? error.message : error}.`);
        return;
      }
      if (turn !== this.turn) return;
    }
    this.show((line) => language.rowHolds(tree, this.read(line)), text);
  }

  /** @param {(line: Line) => boolean} wanted @param {string} text */
  show(wanted, text) {
    let shown = 0;
    for (const line of this.lines) {
      const hidden = !wanted(line);
      if (line.tr.hidden !== hidden) line.tr.hidden = hidden;
      if (!hidden) shown += 1;
    }
    const all = this.lines.length;
    this.tell(shown === 0 && all > 0 ? "No row matches." : text ? `${shown} of ${all} rows` : `${all} rows`);
    if (this.reset) this.reset.hidden = !text;
    this.input?.removeAttribute("aria-invalid");
    void this.average();
  }

  /** @param {string} text */
  tell(text) {
    if (this.says && this.says.textContent !== text) this.says.textContent = text;
  }

  /** @param {string} text */
  complain(text) {
    this.tell(text);
    if (this.reset) this.reset.hidden = false;
    this.input?.setAttribute("aria-invalid", "true");
  }

  /** @returns {import("./query.js").Vocabulary} */
  vocabulary() {
    const metrics = /** @type {Record<string, string>} */ (JSON.parse(this.table.dataset.metrics ?? "{}"));
    return {
      devices: this.devices,
      configurations: [...new Set(this.columns.map((column) => column.configuration))],
      metrics,
    };
  }

  /** What a query may ask of a row. @param {Line} line @returns {Row} */
  read(line) {
    if (line.row) return line.row;
    const head = line.tr.cells[0];
    const link = head.querySelector("a");
    const parts = (head.querySelector(".variant")?.textContent ?? "").split(" · ");
    line.row = {
      suite: (link?.firstChild?.textContent ?? "").replace(/\/$/, ""),
      model: link?.lastChild?.textContent ?? "",
      mode: parts[0],
      dtype: parts[1] ?? "",
      batch: (parts[2] ?? "").replace(/^b/, ""),
      text: (head.textContent ?? "").toLowerCase(),
      cells: this.columns.map(({ device, configuration }, index) => {
        const cell = line.tr.cells[index + 1];
        const letter = cell.className.charAt(0);
        return {
          device,
          configuration,
          status: letter === "z" ? "." : letter,
          marks: (cell.querySelector("small")?.textContent ?? "").split(/[\s,]+/),
          numbers: {},
          history: "",
        };
      }),
    };
    return line.row;
  }

  /** @param {{metrics: string[], history: boolean}} missing */
  async load(missing) {
    const { loadHistory, loadMetric } = await import("./numbers.js");
    const width = this.columns.length;
    for (const name of missing.metrics.filter((metric) => !this.loaded.has(metric))) {
      const shard = await loadMetric(name);
      const places = this.columns.map((column) => shard.columns.indexOf(column.anchor));
      for (const line of this.lines) {
        const { cells } = this.read(line);
        for (let i = 0; i < width; i += 1) {
          cells[i].numbers[name] = places[i] < 0 ? null : shard.median[line.order * shard.columns.length + places[i]];
        }
      }
      this.loaded.add(name);
    }
    if (missing.history && !this.loaded.has("seq")) {
      const heads = /** @type {NodeListOf<HTMLElement>} */ (this.table.querySelectorAll("th[data-id]"));
      for (const head of heads) {
        const shard = await loadHistory(head.dataset.id ?? "");
        const places = this.columns.map((column) => shard.columns.indexOf(column.anchor));
        for (const line of this.lines) {
          const { cells } = this.read(line);
          places.forEach((place, i) => {
            if (place >= 0) cells[i].history = shard.status[line.order * shard.columns.length + place];
          });
        }
      }
      this.loaded.add("seq");
    }
  }

  // -- Order, columns, baseline --------------------------------------------------------------------------

  /** @param {string} text names of devices, percent-encoded, with commas between them */
  hide(text) {
    if (text === this.hidden) return;
    this.hidden = text;
    const off = new Set(text.split(",").filter(Boolean).map(decode));
    if (this.devices.every((device) => off.has(device))) off.clear();
    for (const box of this.boxes ?? []) box.checked = !off.has(box.value);
    const hidden = this.columns.map((column) => off.has(column.device));
    this.columns.forEach((column, i) => (column.head.hidden = hidden[i]));
    for (const tr of [...this.lines.map((line) => line.tr), ...(this.table.tFoot?.rows ?? [])]) {
      for (let i = 0; i < hidden.length; i += 1) {
        const cell = tr.cells[i + 1];
        if (cell && cell.hidden !== hidden[i]) cell.hidden = hidden[i];
      }
    }
  }

  /** @param {string} text `worst`, or a column's anchor or `name`, with `-` before it from the last to the first */
  sortBy(text) {
    if (text === this.sort) return;
    const down = text.startsWith("-");
    const name = down ? text.slice(1) : text;
    const index = this.columns.findIndex((column) => column.anchor === name);
    const known = text === "" || text === "worst" || name === "name" || index >= 0;
    this.sort = known ? text : "";
    for (const head of [this.corner, ...this.columns.map((column) => column.head)]) head.removeAttribute("aria-sort");
    this.worst?.setAttribute("aria-pressed", String(text === "worst"));
    const direction = down ? "descending" : "ascending";
    if (name === "name") this.corner.setAttribute("aria-sort", direction);
    if (index >= 0) this.columns[index].head.setAttribute("aria-sort", direction);
    const keyed = this.lines.map((line) => ({ line, key: this.key(line, text, name, index) }));
    keyed.sort((a, b) => compare(a.key, b.key, down || text === "worst" ? -1 : 1) || a.line.order - b.line.order);
    this.body.append(...keyed.map(({ line }) => line.tr));
  }

  /** @param {Line} line @param {string} text @param {string} name @param {number} index @returns {number | null} */
  key(line, text, name, index) {
    if (text === "worst") {
      let sum = 0;
      for (const cell of line.tr.cells) sum += Math.max(0, BADNESS.indexOf(cell.className.charAt(0) || "p"));
      return sum;
    }
    if (index < 0 || name === "name") return line.order;
    const cell = line.tr.cells[index + 1];
    if (this.table.dataset.matrix === "status") {
      const place = BADNESS.indexOf(cell.className.charAt(0));
      return place < 0 ? null : place;
    }
    if (cell.classList.contains("d")) return null; // in doubt: neither large nor small
    const found = parseFloat((cell.firstChild?.textContent ?? "").replace(/[,\s]/g, "").replace("−", "-"));
    return Number.isNaN(found) ? null : found;
  }

  /** @param {string} anchor */
  async rebase(anchor) {
    if (!this.columns.some((column) => column.anchor === anchor)) anchor = "";
    if (anchor === this.base || !this.bases) return;
    this.bases.value = anchor;
    this.base = anchor;
    const places = this.columns.map((column) => column.anchor);
    const { loadMetric, showRatios, showOriginal } = await import("./numbers.js");
    if (anchor !== "") await loadMetric(this.table.dataset.metric ?? "");
    if (anchor !== this.base) return; // another one was chosen meanwhile
    if (anchor === "") showOriginal(this.table);
    else await showRatios(this.table, this.lines.map((line) => line.tr), places, anchor);
    (await import("./means.js")).relabel(this.baseName());
    this.sort = "-";
  }

  baseName() {
    const found = this.columns.find((column) => column.anchor === this.base);
    return found ? `${found.device} · ${found.configuration}` : "";
  }

  /** The means beneath the table follow its rows and the baseline. */
  async average() {
    const orders = this.lines.filter(({ tr }) => !tr.hidden).map(({ order }) => order);
    if (orders.length === this.lines.length && !this.base && !this.averaged) return; // as the page was built
    this.averaged = true;
    const turn = (this.averages += 1);
    try {
      const { showMeans } = await import("./means.js");
      const chosen = { anchor: this.base, name: this.baseName() };
      await showMeans(this.table, orders, chosen, this.columns.map(({ anchor }) => anchor), () => turn === this.averages);
    } catch (error) {
      this.tell(`The means cannot be loaded, and those beneath are of all rows: ${error instanceof Error ? error.message : error}.`);
    }
  }
}

/** A name as a query has it. @param {string} name */
function quoted(name) {
  return /^[^\s,():<>="]+$/.test(name) ? name : `"${name}"`;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Rows without a number stay at the end, whichever way a column is sorted.
 * @param {number | null} left @param {number | null} right @param {number} direction */
function compare(left, right, direction) {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return direction * (left - right);
}

const table = /** @type {HTMLTableElement | null} */ (document.querySelector("table[data-matrix]"));
const controls = /** @type {HTMLElement | null} */ (document.querySelector("[data-controls]"));
if (table && controls) new Matrix(table, controls);
