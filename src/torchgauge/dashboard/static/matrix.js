// The matrix as a whole: the state in the address, what it shows of rows and columns, and the answers to queries.
// The table is complete without this file.

import { columnsOf, hide, hideCells } from "./columns.js";
import { Controls, element } from "./controls.js";
import { makeGrid, settle } from "./grid.js";
import { Rows } from "./rows.js";
import { absent, miss } from "./start.js";
import * as state from "./state.js";

/** @typedef {import("./line.js").Line} Line */

/** @param {unknown} error */
function words(error) {
  return error instanceof Error ? error.message : String(error);
}

class Matrix {
  /** @param {HTMLTableElement} table @param {HTMLElement} host of the controls */
  constructor(table, host) {
    this.table = table;
    this.byStatus = table.dataset.matrix === "status";
    this.columns = columnsOf(table);
    this.corner = /** @type {HTMLTableCellElement} */ (table.tHead?.querySelector(".corner"));
    this.metrics = /** @type {Record<string, string>} */ (JSON.parse(table.dataset.metrics ?? "{}"));
    const letters = this.columns.map(({ head, device, configuration }) => configuration.length + (head.dataset.id ? device.length + 1 : 0));
    table.style.setProperty("--heads", `${Math.min(210, 10 + 7 * Math.max(...letters))}px`); // of upright names
    this.rows = new Rows(table, (line) => this.dress(line));
    this.controls = new Controls(host, this.columns, !this.byStatus, (changes) => this.go(changes));
    /** @type {Record<string, string[]> | null} */
    this.values = null;
    /** @type {Set<string>} */
    this.loaded = new Set();
    /** @type {typeof import("./query.js") | null} */
    this.language = null;
    /** @type {typeof import("./line.js") | null} */
    this.reader = null;
    this.order = this.rows.lines;
    this.sort = "";
    this.base = "";
    this.averages = 0;
    this.averaged = false;
    this.compact = false;
    /** @type {typeof import("./one_column.js").foldCells | null} */
    this.foldCells = null;
    this.typing = false;
    this.turn = 0;
    this.listen();
    makeGrid(table, this.rows);
    state.follow((found) => void this.apply(found));
    void this.apply(state.read());
  }

  listen() {
    const { input } = this.controls;
    input.addEventListener("focus", () => void Promise.all([this.speak(), this.learn()]).catch(() => undefined), { once: true });
    input.addEventListener("input", () => {
      this.remember(!this.typing, { q: input.value });
      this.typing = true;
      void this.filter(input.value);
    });
    input.addEventListener("change", () => (this.typing = false));
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
    for (const { head, device, configuration } of this.columns) head.title = `${device} · ${configuration}`;
    const wake = () => {
      for (const kind of ["focusin", "pointerover"]) this.table.removeEventListener(kind, wake);
      import("./tip.js").catch(absent("tip.js")).then(
        ({ makeTip }) => makeTip(this.table, this.columns, this.rows),
        (error) => miss(`Details of a cell are unavailable here: ${words(error)}. Click the cell for its case.`),
      );
    };
    for (const kind of ["focusin", "pointerover"]) this.table.addEventListener(kind, wake);
  }

  /** Make a row look as the matrix does now. @param {Line} line */
  dress(line) {
    if (!line.dressed) settle(line.tr);
    hideCells(line.tr, this.columns);
    if (this.reader) this.foldCells?.(line.tr, this.reader.read(line, this.columns), this.columns);
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
    this.remember(true, changes);
    void this.apply(state.read());
  }

  /** @param {import("./state.js").State} found */
  async apply(found) {
    const { input } = this.controls;
    if (input.value !== (found.q ?? "")) input.value = found.q ?? "";
    this.typing = false;
    this.carry(found.q ?? "");
    this.squeeze(found.view === "compact");
    if (found.sort || found.base || found.fold) {
      await this.learn().catch((error) => miss(`Sorting, folding and baselines are unavailable: ${words(error)}.`));
      found = state.read();
    }
    if (found.fold && !this.foldCells) {
      await import("./one_column.js").catch(absent("one_column.js")).then((module) => (this.foldCells = module.foldCells), (error) => miss(`Configurations cannot be folded: ${words(error)}.`));
      found = state.read();
    }
    const fold = this.byStatus && this.foldCells !== null && Boolean(found.fold);
    if (hide(this.columns, found.hide ?? "", found.without ?? "", fold)) this.hideColumns(fold);
    let failed = "";
    try {
      await this.rebase(found.base ?? "");
    } catch (error) {
      failed = `The baseline cannot be loaded: ${words(error)}.`;
      if (this.base === found.base) this.base = ""; // the cells are as they were
    }
    // What was chosen while the numbers of a baseline were on their way is in the address, and holds.
    const now = state.read();
    this.sortBy(now.sort ?? "");
    this.controls.set(now, this.sort);
    await this.filter(now.q ?? "");
    if (failed) this.controls.tell(failed);
  }

  // -- Filter ------------------------------------------------------------------------------------------

  /** How rows are read, which only those need who ask for something. */
  async learn() {
    this.reader ??= await import("./line.js").catch(absent("line.js"));
    return this.reader;
  }

  async speak() {
    this.language ??= await import("./query.js").catch(absent("query.js"));
    return this.language;
  }

  /** @param {string} text */
  async filter(text) {
    this.turn += 1;
    const turn = this.turn;
    if (!text.trim()) return this.show(() => true, "");
    try {
      const { read, valuesOf } = this.reader ?? (await this.learn());
      const language = this.language ?? (await this.speak());
      if (turn !== this.turn) return;
      this.values ??= valuesOf(this.rows.lines);
      const tree = language.parse(text, this.vocabulary(this.values));
      const missing = language.needs(tree);
      if (missing.metrics.some((name) => !this.loaded.has(name)) || (missing.history && !this.loaded.has("seq"))) {
        this.controls.tell("Loading …");
        await this.load(missing);
        if (turn !== this.turn) return;
      }
      let cells = 0;
      this.show((line) => {
        const row = read(line, this.columns);
        const holds = language.rowHolds(tree, row);
        if (holds) cells += language.cellsFound(tree, row).length;
        return holds;
      }, text, () => cells);
    } catch (error) {
      if (turn !== this.turn) return;
      const mistake = error instanceof Error && error.name === "QueryError";
      const at = mistake ? /** @type {import("./query.js").QueryError} */ (error).at : 0;
      this.complain(mistake ? `At character ${at + 1}: ${words(error)}.` : `The query failed: ${words(error)}.`);
    }
  }

  /** @param {(line: Line) => boolean} wanted @param {string} text @param {() => number} [cells] found in these rows */
  show(wanted, text, cells = () => 0) {
    const found = new Set(this.order.filter(wanted));
    this.rows.show(this.order.filter((line) => found.has(line)));
    const all = this.order.length, shown = found.size, inside = cells();
    const counted = inside ? `, ${inside} cell${inside > 1 ? "s" : ""}` : "";
    this.controls.tell(shown === 0 && all > 0 ? "No row matches." : text ? `${shown} of ${all} rows${counted}` : `${all} rows`);
    this.controls.reset.hidden = !text;
    this.controls.input.removeAttribute("aria-invalid");
    void this.average();
  }

  /** @param {string} text */
  complain(text) {
    this.controls.tell(text);
    this.controls.reset.hidden = false;
    this.controls.input.setAttribute("aria-invalid", "true");
  }

  /** @param {Record<string, string[]>} values @returns {import("./query.js").Vocabulary} */
  vocabulary(values) {
    const { devices, configurations } = this.controls;
    return { devices, configurations, metrics: this.metrics, values };
  }

  /** @param {{metrics: string[], history: boolean}} missing */
  async load(missing) {
    const { read } = await this.learn();
    const { loadHistory, loadMetric } = await import("./numbers.js").catch(absent("numbers.js"));
    const rows = this.rows.lines.map((line) => read(line, this.columns).cells);
    for (const name of missing.metrics.filter((metric) => !this.loaded.has(metric))) {
      const shard = await loadMetric(name);
      const places = this.columns.map((column) => shard.columns.indexOf(column.anchor));
      rows.forEach((cells, order) => places.forEach((place, i) => {
        cells[i].numbers[name] = place < 0 ? null : shard.median[order * shard.columns.length + place];
      }));
      this.loaded.add(name);
    }
    if (!missing.history || this.loaded.has("seq")) return;
    for (const id of new Set(this.columns.map((column) => column.id))) {
      const shard = await loadHistory(id);
      const places = this.columns.map((column) => shard.columns.indexOf(column.anchor));
      rows.forEach((cells, order) => places.forEach((place, i) => {
        if (place >= 0) cells[i].history = shard.status[order * shard.columns.length + place];
      }));
    }
    this.loaded.add("seq");
  }

  // -- Order, columns, baseline, view ------------------------------------------------------------------

  /** @param {boolean} fold whether a column stands for a device: what is counted beneath is of single ones */
  hideColumns(fold) {
    if (this.byStatus && this.table.tFoot) this.table.tFoot.hidden = fold;
    for (const tr of this.table.tFoot?.rows ?? []) hideCells(tr, this.columns);
    this.rows.redress();
  }

  /** @param {string} text as `sorted` reads it; nothing where it names nothing */
  sortBy(text) {
    const order = this.reader && text ? this.reader.sorted(this.rows.lines, this.columns, text, this.byStatus ? "" : this.table.dataset.better ?? "") : null;
    this.sort = order ? text : "";
    this.order = order ?? this.rows.lines;
    for (const head of [this.corner, ...this.columns.map((column) => column.head)]) {
      const key = head.dataset.anchor ?? "name";
      const direction = this.sort === `-${key}` ? "descending" : this.sort === key ? "ascending" : "";
      if (direction) head.setAttribute("aria-sort", direction);
      else head.removeAttribute("aria-sort");
    }
  }

  /** Squares by status or by heat, or rows of text. @param {boolean} wanted */
  squeeze(wanted) {
    if (wanted === this.compact) return;
    this.compact = wanted;
    this.table.classList.toggle("compact", wanted);
    document.body.classList.toggle("squares", wanted);
    this.rows.squeeze(wanted);
  }

  /** @param {string} anchor */
  async rebase(anchor) {
    const { bases } = this.controls;
    if (!this.columns.some((column) => column.anchor === anchor)) anchor = "";
    if (anchor === this.base || !bases) return;
    bases.value = anchor;
    this.base = anchor;
    const places = this.columns.map((column) => column.anchor);
    const { loadMetric, showRatios, showOriginal } = await import("./numbers.js").catch(absent("numbers.js"));
    if (anchor !== "") await loadMetric(this.table.dataset.metric ?? "");
    if (anchor !== this.base) return; // another one was chosen meanwhile
    const { read } = await this.learn();
    for (const line of this.rows.lines) read(line, this.columns); // marks are read before cells are written anew
    if (anchor === "") showOriginal(this.table);
    else await showRatios(this.table, this.rows.lines.map((line) => line.tr), places, anchor);
    (await import("./means.js").catch(absent("means.js"))).relabel(this.baseName(), this.table.dataset.gain ?? "");
    this.rows.redress();
  }

  baseName() {
    const found = this.columns.find((column) => column.anchor === this.base);
    return found ? `${found.device} · ${found.configuration}` : "";
  }

  /** The means beneath the table follow its rows and the baseline. */
  async average() {
    const orders = this.rows.shown.map(({ order }) => order).sort((a, b) => a - b);
    if (orders.length === this.rows.lines.length && !this.base && !this.averaged) return; // as the page was built
    this.averaged = true;
    const turn = (this.averages += 1);
    try {
      const { showMeans } = await import("./means.js").catch(absent("means.js"));
      const chosen = { anchor: this.base, name: this.baseName() };
      await showMeans(this.table, orders, chosen, this.columns.map(({ anchor }) => anchor), () => turn === this.averages);
    } catch (error) {
      this.controls.tell(`The means below cover all rows, because the data for means of these rows cannot be loaded: ${words(error)}.`);
    }
  }
}

const table = /** @type {HTMLTableElement | null} */ (document.querySelector("table[data-matrix]"));
const host = /** @type {HTMLElement | null} */ (document.querySelector("[data-controls]"));
if (table && host) new Matrix(table, host);
