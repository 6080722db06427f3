// What a reader may do with a matrix: the query box, the order, the columns, the baseline and the compact view.

import { listed, names } from "./columns.js";
import { absent, miss } from "./start.js";

/** @typedef {import("./columns.js").Column} Column
 * @typedef {import("./state.js").State} State */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, unknown>} [properties]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

/** A name as a query has it. @param {string} name */
function quoted(name) {
  return /^[^\s,():<>="|&]+$/.test(name) ? name : `"${name}"`;
}

/** Checkboxes of `names`; those that are off are told, as an address has them.
 * @param {string} legend @param {string[]} names @param {(off: string) => void} changed */
function boxes(legend, names, changed) {
  const set = element("fieldset", { className: "chips" });
  set.append(element("legend", { textContent: legend }));
  const made = names.map((name) => {
    const label = element("label");
    const box = element("input", { type: "checkbox", checked: true, value: name });
    box.addEventListener("change", () => changed(listed(made.filter((other) => !other.checked).map((other) => other.value))));
    label.append(box, ` ${name}`);
    set.append(label);
    return box;
  });
  return { set, boxes: made };
}

export class Controls {
  /**
   * @param {HTMLElement} host @param {Column[]} columns @param {boolean} numbers whether the table holds numbers
   * @param {(changes: State) => void} go makes a choice a step of the history
   */
  constructor(host, columns, numbers, go) {
    this.go = go;
    this.columns = columns;
    this.devices = [...new Set(columns.map((column) => column.device))];
    this.configurations = [...new Set(columns.map((column) => column.configuration))];
    this.input = element("input", { type: "search", autocomplete: "off", spellcheck: false, maxLength: 2000 });
    this.input.placeholder = `resnet* ${quoted(this.devices.at(-1) ?? "")}:error -flaky`;
    this.input.setAttribute("aria-describedby", "query-says");
    this.says = element("output", { id: "query-says", className: "muted" });
    this.reset = element("button", { type: "button", textContent: "Show all", hidden: true });
    this.worst = element("button", { type: "button", textContent: "Worst rows first" });
    this.failures = element("button", { type: "button", textContent: "Failures only" });
    this.compact = element("button", { type: "button", textContent: "Compact view" });
    this.fold = element("button", { type: "button", textContent: "Fold configurations" });
    /** @type {HTMLSelectElement | null} */
    this.bases = null;
    /** @type {HTMLInputElement[]} */
    this.deviceBoxes = [];
    /** @type {HTMLInputElement[]} */
    this.configurationBoxes = [];
    this.make(host, numbers);
  }

  /** @param {HTMLElement} host @param {boolean} numbers */
  make(host, numbers) {
    const label = element("label", { textContent: "Query " });
    label.append(this.input);
    this.reset.addEventListener("click", () => {
      this.go({ q: "" });
      this.input.focus();
    });
    /** @param {HTMLButtonElement} button @param {string} name @param {string} value */
    const toggles = (button, name, value) =>
      button.addEventListener("click", () => this.go({ [name]: button.getAttribute("aria-pressed") === "true" ? "" : value }));
    toggles(this.worst, "sort", "worst");
    toggles(this.failures, "q", "fail");
    toggles(this.compact, "view", "compact");
    toggles(this.fold, "fold", "1");
    host.replaceChildren(label, this.reset, this.says, this.worst, this.failures, this.compact);
    if (!numbers && this.columns.length > this.devices.length) host.append(this.fold);
    if (this.columns.length > 1) host.append(this.makeFold());
    if (this.devices.length > 1) {
      const made = boxes("Devices", this.devices, (off) => this.go({ hide: off }));
      this.deviceBoxes = made.boxes;
      host.append(made.set);
    }
    if (this.configurations.length > 1) {
      const made = boxes("Configurations", this.configurations, (off) => this.go({ without: off }));
      this.configurationBoxes = made.boxes;
      host.append(made.set);
    }
    if (numbers) host.append(this.makeBaselines());
    host.append(this.makeHelp());
  }

  /** Show what `state` says. @param {State} state @param {string} sort */
  set(state, sort) {
    this.worst.setAttribute("aria-pressed", String(sort === "worst"));
    this.failures.setAttribute("aria-pressed", String(state.q === "fail"));
    this.compact.setAttribute("aria-pressed", String(state.view === "compact"));
    this.fold.setAttribute("aria-pressed", String(Boolean(state.fold)));
    const all = this.columns.every(({ hidden }) => !hidden);
    const off = names(state.hide ?? ""), without = names(state.without ?? "");
    for (const box of this.deviceBoxes) box.checked = all || !off.has(box.value);
    for (const box of this.configurationBoxes) box.checked = all || !without.has(box.value);
  }

  /** @param {string} text */
  tell(text) {
    if (this.says.textContent !== text) this.says.textContent = text;
  }

  /** Unfolds the choice of columns where the screen is narrow. */
  makeFold() {
    const button = element("button", { type: "button", className: "columns-fold", textContent: "Columns" });
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") !== "true")));
    return button;
  }

  makeBaselines() {
    const label = element("label", { textContent: "Baseline " });
    const bases = element("select");
    bases.append(element("option", { value: "", textContent: "default" }));
    for (const { device, configuration, anchor } of this.columns) {
      bases.append(element("option", { value: anchor, textContent: `${device} · ${configuration}` }));
    }
    bases.addEventListener("change", () => this.go({ base: bases.value }));
    this.bases = bases;
    label.append(bases);
    return label;
  }

  /** What may be asked, loaded when somebody wants to know it. */
  makeHelp() {
    const help = element("details", { className: "query-help" });
    help.append(element("summary", { textContent: "Query syntax" }));
    help.addEventListener("toggle", async () => {
      try {
        const { examples } = await import("./query_help.js").catch(absent("query_help.js"));
        help.append(examples(quoted(this.devices.at(-1) ?? ""), quoted(this.configurations.at(-1) ?? ""), quoted(`${this.devices.at(-1)}/${this.configurations.at(-1)}`), (q) => {
          this.go({ q });
          this.input.focus();
        }));
      } catch (error) {
        miss(`Query syntax is unavailable: ${error instanceof Error ? error.message : error}.`);
      }
    }, { once: true });
    return help;
  }
}
