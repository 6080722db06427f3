// Numbers behind a matrix, loaded when somebody asks for them, and ratios to a column that the reader chose.

import { digits, gain, spread, together } from "./number_text.js";

/** @typedef {{schema: number, metric: string, unit: string, better: string, columns: string[],
 *   median: (number | null)[], half: (number | null)[], apart: Record<string, string>, out: Record<string, number[]>,
 *   built: Record<string, (number | null)[]>}} MetricShard
 * Rows of the page one after the other, `columns` values each. `half` is half of the interval in percent, the
 * wider side; null where there are too few samples. `apart` has the modifier of each number that may not be compared,
 * `out` the places that enter no mean by the reason, and `built` of some rows which cells built the same.
 * @typedef {{schema: number, columns: string[], snapshots: string[], status: string[]}} HistoryShard */

/** @type {Map<string, Promise<any>>} */
const cache = new Map();

/** @param {string} path */
function load(path) {
  let found = cache.get(path);
  if (!found) {
    found = fetch(path).then((answer) => {
      if (!answer.ok) throw new Error(`${path} answers ${answer.status}`);
      return answer.json();
    });
    found.catch(() => cache.delete(path));
    cache.set(path, found);
  }
  return found;
}

/** @param {string} name @returns {Promise<MetricShard>} */
export function loadMetric(name) {
  return load(`latest/${encodeURIComponent(name)}.json`);
}

/** @param {string} device its id @returns {Promise<HistoryShard>} */
export function loadHistory(device) {
  return load(`latest/history-${encodeURIComponent(device)}.json`);
}

/** @type {WeakMap<MetricShard, Map<number, string>>} */
const reasons = new WeakMap();

/** Why a number of `shard` enters no mean, by its place. @param {MetricShard} shard */
export function reasonsOf(shard) {
  const known = reasons.get(shard);
  if (known) return known;
  /** @type {Map<number, string>} */
  const found = new Map();
  for (const [why, places] of Object.entries(shard.out)) for (const place of places) found.set(place, why);
  reasons.set(shard, found);
  return found;
}

/**
 * Whether two cells of a row built the same model, as far as is known.
 * @param {MetricShard} shard @param {number} order of the row @param {number} place @param {number} base
 */
export function builtAlike(shard, order, place, base) {
  const [left, right] = [shard.built[order]?.[place] ?? null, shard.built[order]?.[base] ?? null];
  return left === null || right === null || left === right;
}

/** The class of the colour of a ratio that is shown: only where its interval excludes 1. @param {number} ratio @param {number | null} half @param {string} better */
function heat(ratio, half, better) {
  if (half === null || better === "neither" || !(ratio > 0)) return "";
  if (!(ratio * (1 - half / 100) > 1 || ratio * (1 + half / 100) < 1)) return "";
  const size = Math.abs(Math.log(ratio));
  const depth = 1 + [Math.log(1.1), Math.log(1.5)].filter((step) => size > step).length;
  return ` ${ratio > 1 ? "b" : "w"}${depth}`;
}

/**
 * Write ratios to the column `anchor` into the cells of `table`.
 * @param {HTMLTableElement} table
 * @param {HTMLTableRowElement[]} rows in the order in which the page was built
 * @param {string[]} columns
 * @param {string} anchor
 */
export async function showRatios(table, rows, columns, anchor) {
  const shard = await loadMetric(table.dataset.metric ?? "");
  showOriginal(table);
  const width = shard.columns.length;
  const places = columns.map((column) => shard.columns.indexOf(column));
  const base = shard.columns.indexOf(anchor);
  const out = reasonsOf(shard);
  rows.forEach((row, order) => {
    const at = order * width + base;
    const below = shard.median[at];
    const doubt = shard.apart[at];
    const planned = below !== null || doubt || out.has(at);
    places.forEach((place, i) => {
      const cell = row.cells[i + 1];
      const value = shard.median[order * width + place];
      const own = shard.apart[order * width + place];
      if (typeof value !== "number" && !own) return;
      keep(table, cell);
      if (own || typeof value !== "number") return write(cell, "–", own);
      if (!planned) return write(cell, "–", "no baseline planned");
      if (doubt) return write(cell, "–", `baseline ${doubt}`);
      if (typeof below !== "number" || !(below > 0)) return write(cell, "–", "no baseline");
      if (!builtAlike(shard, order, place, base)) return write(cell, "–", "built differently");
      const half = together(shard.half[order * width + place], shard.half[at]);
      if (place === base) return write(cell, "1x", "baseline");
      const ratio = gain(value / below, shard.better);
      write(cell, `${digits(ratio, half)}x`, spread(half), cell.className.startsWith("p") ? heat(ratio, half, shard.better) : "");
    });
  });
}

/**
 * A cell with another number; the marks beneath it stay, and what they say is not said twice.
 * @param {HTMLTableCellElement} cell @param {string} value @param {string} beside @param {string} [colour]
 */
function write(cell, value, beside, colour = "") {
  const marks = cell.querySelector("small");
  const said = document.createElement(value === "–" ? "em" : "i");
  said.textContent = marks?.textContent?.split(" ").includes(beside) ? "" : beside;
  cell.replaceChildren(value, ...(marks ? [marks] : []), ...(said.textContent ? [said] : []));
  cell.className = cell.className.charAt(0) + colour;
}

/** @type {WeakMap<HTMLTableElement, Map<HTMLTableCellElement, {nodes: ChildNode[], look: string}>>} */
const before = new WeakMap();

/** @param {HTMLTableElement} table @param {HTMLTableCellElement} cell */
function keep(table, cell) {
  const kept = before.get(table) ?? new Map();
  before.set(table, kept);
  if (!kept.has(cell)) kept.set(cell, { nodes: [...cell.childNodes], look: cell.className });
}

/** The cells as the page was built. @param {HTMLTableElement} table */
export function showOriginal(table) {
  for (const [cell, { nodes, look }] of before.get(table) ?? []) {
    cell.replaceChildren(...nodes);
    cell.className = look;
  }
}
