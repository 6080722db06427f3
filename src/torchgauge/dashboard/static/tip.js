// What is known of a cell, beside it: status, reason, age, build of torch and interval. Pointing shows it, and so
// does the focus; Escape closes it. Its file is loaded when somebody points at the first cell of a device.

import { age, present } from "./age.js";
import { load, visible } from "./data.js";
import { ownText } from "./one_column.js";
import { cellAt } from "./grid.js";
import { letterOf, textsOf } from "./line.js";
import { quantity, spread } from "./number_text.js";
import { loadMetric } from "./numbers.js";

/** @typedef {import("./columns.js").Column} Column
 * @typedef {import("./rows.js").Rows} Rows
 * @typedef {{columns: string[], texts: string[], reason: number[], torch: number[], at: (number | null)[]}} Facts
 * Rows of the page one after the other, `columns` values each; `reason` and `torch` are places in `texts`, or -1. */

/** @param {number} at in seconds since the epoch */
function moment(at) {
  return `${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC, ${age(present() / 1000 - at)}`;
}

/**
 * @param {HTMLTableElement} table @param {Column[]} columns @param {Rows} rows
 */
export function makeTip(table, columns, rows) {
  const tip = document.createElement("div");
  tip.id = "cell-tip";
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  (document.querySelector("main") ?? document.body).append(tip);
  const metrics = Object.keys(JSON.parse(table.dataset.metrics ?? "{}"));
  const metric = table.dataset.metric ?? metrics[0] ?? "";
  /** @type {HTMLTableCellElement | null} */
  let shown = null;

  const close = () => {
    shown?.querySelector("[aria-describedby]")?.removeAttribute("aria-describedby");
    shown?.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };

  /** @param {string[]} lines */
  const write = (lines) => {
    tip.replaceChildren(...lines.filter(Boolean).map((line, i) => {
      const part = document.createElement(i ? "p" : "b");
      part.textContent = line;
      return part;
    }));
    if (!shown) return;
    const box = shown.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.max(4, Math.min(box.left, window.innerWidth - own.width - 4));
    const below = box.bottom + own.height + 6 < window.innerHeight;
    tip.style.left = `${left}px`;
    tip.style.top = `${below ? box.bottom + 4 : Math.max(4, box.top - own.height - 4)}px`;
  };

  /** @param {HTMLTableCellElement} cell */
  const open = async (cell) => {
    const column = columns[cell.cellIndex - 1];
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
    const line = rows.shown[rows.placeOf(row)];
    if (!column || !line || shown === cell) return;
    close();
    shown = cell;
    const why = cell.title || cell.dataset.why || "";
    if (cell.title) cell.dataset.why = cell.title;
    cell.removeAttribute("title");
    (cell.querySelector("a") ?? cell).setAttribute("aria-describedby", tip.id);
    tip.hidden = false;
    const name = (row.cells[0].textContent ?? "").replace(/\s+/g, " ").trim();
    const head = [`${name} on ${column.device} · ${column.configuration}`, textsOf(cell).join(" "), why];
    if (column.folds.length) {
      const each = column.folds.map((at) => `${columns[at].configuration}: ${ownText(row, at)}`);
      return write([`${name} on ${column.device}`, ...each]);
    }
    if (letterOf(cell) === ".") return write([...head, "This combination was not planned."]);
    write([...head, "Loading …"]);
    const known = await facts(line.order, column, metric);
    if (shown === cell) write([...head, ...known]);
  };

  /** @param {EventTarget | null} target */
  const lookAt = (target) => {
    const cell = target instanceof Element ? cellAt(target) : null;
    const known = cell?.localName === "td" && cell.closest("tbody") !== null;
    if (known) void open(/** @type {HTMLTableCellElement} */ (cell));
    return known;
  };
  /** @param {Event} event */
  const look = (event) => {
    if (!lookAt(event.target) && event.type === "focusin") close();
  };
  table.addEventListener("focusin", look);
  table.addEventListener("pointerover", look);
  table.addEventListener("focusout", close);
  table.addEventListener("pointerleave", (event) => {
    if (event.relatedTarget !== tip) close();
  });
  tip.addEventListener("pointerleave", close);
  rows.region.addEventListener("scroll", () => {
    if (shown && !shown.contains(document.activeElement)) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  // While this file was on its way somebody may have gone on to another cell, or the cells were drawn anew.
  if (!lookAt(table.querySelector("tbody td:hover"))) lookAt(document.activeElement);
}

/** @param {number} order @param {Column} column @param {string} metric */
async function facts(order, column, metric) {
  const lines = [];
  try {
    const found = /** @type {Facts} */ (await load(`latest/cells-${encodeURIComponent(column.id)}.json`));
    const place = order * found.columns.length + found.columns.indexOf(column.anchor);
    const at = found.at[place];
    lines.push(visible(found.texts[found.reason[place]] ?? ""));
    lines.push(at === null ? "Not started." : `Measured ${moment(at)}`);
    lines.push(found.torch[place] < 0 ? "" : `torch ${visible(found.texts[found.torch[place]])}`);
  } catch (error) {
    lines.push(`Reason, age and build are unavailable: ${error instanceof Error ? error.message : error}.`);
  }
  if (!metric) return lines;
  try {
    const shard = await loadMetric(metric);
    const place = order * shard.columns.length + shard.columns.indexOf(column.anchor);
    const value = shard.median[place], half = shard.half[place];
    const interval = half === null ? "no interval: fewer than 6 samples" : `${spread(half)} (half of the 95 % interval)`;
    const name = metric.replaceAll("_", " ");
    if (shard.apart[place]) lines.push(`${name}: ${shard.apart[place]}, excluded from means and ratios`);
    else if (typeof value === "number") lines.push(`${name} ${quantity(value, null, null, shard.unit)} ${interval}`);
  } catch (error) {
    lines.push(`The interval is unavailable: ${error instanceof Error ? error.message : error}.`);
  }
  return lines;
}
