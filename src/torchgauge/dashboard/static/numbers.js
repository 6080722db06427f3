// Numbers behind a matrix, loaded when somebody asks for them, and ratios to a column that the reader chose.

/** @typedef {{schema: number, metric: string, unit: string, better: string, columns: string[],
 *   median: (number | null)[], half: (number | null)[], apart: Record<string, string>, built_differently: number[]}} MetricShard
 * Rows of the page one after the other, `columns` values each. `half` is half of the interval in percent, the
 * wider side; null where there are too few samples. `apart` has the modifier of each number that may not be compared.
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

/** @param {number} value as many digits as its interval warrants @param {number | null} half in percent */
export function digits(value, half) {
  const wanted = half !== null && half < 1 ? 4 : 3;
  const magnitude = value > 0 ? Math.floor(Math.log10(value)) : 0;
  return value.toLocaleString("en-GB", {
    minimumFractionDigits: Math.max(0, wanted - 1 - magnitude),
    maximumFractionDigits: Math.max(0, wanted - 1 - magnitude),
  });
}

/** @param {number | null} half in percent */
export function spread(half) {
  if (half === null) return "n<6";
  return `±${half >= 10 ? half.toFixed(0) : Number(half.toPrecision(half >= 1 ? 2 : 1))}%`;
}

/** Half of the interval of a ratio of two independent numbers. @param {number | null} a @param {number | null} b */
export function together(a, b) {
  return a === null || b === null ? null : Math.hypot(a, b);
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
  const different = new Set(shard.built_differently);
  rows.forEach((row, order) => {
    const below = shard.median[order * width + base];
    const doubt = shard.apart[order * width + base];
    places.forEach((place, i) => {
      const cell = row.cells[i + 1];
      const value = shard.median[order * width + place];
      const own = shard.apart[order * width + place];
      if (typeof value !== "number" && !own) return;
      keep(table, cell);
      if (own || typeof value !== "number") return write(cell, "–", own);
      if (place !== base && different.has(order)) return write(cell, "–", "built differently");
      if (doubt) return write(cell, "–", `baseline ${doubt}`);
      if (typeof below !== "number" || !(below > 0)) return write(cell, "–", "no baseline");
      const half = together(shard.half[order * width + place], shard.half[order * width + base]);
      write(cell, `${digits(value / below, half)}×`, place === base ? "baseline" : spread(half));
    });
  });
  table.querySelectorAll("tfoot").forEach((foot) => (foot.hidden = true));
}

/** @param {HTMLTableCellElement} cell @param {string} value @param {string} beside */
function write(cell, value, beside) {
  const small = document.createElement("i");
  small.textContent = beside;
  cell.replaceChildren(value, small);
}

/** @type {WeakMap<HTMLTableElement, Map<HTMLTableCellElement, ChildNode[]>>} */
const before = new WeakMap();

/** @param {HTMLTableElement} table @param {HTMLTableCellElement} cell */
function keep(table, cell) {
  const kept = before.get(table) ?? new Map();
  before.set(table, kept);
  if (!kept.has(cell)) kept.set(cell, [...cell.childNodes]);
}

/** The cells as the page was built. @param {HTMLTableElement} table */
export function showOriginal(table) {
  for (const [cell, nodes] of before.get(table) ?? []) cell.replaceChildren(...nodes);
  table.querySelectorAll("tfoot").forEach((foot) => (foot.hidden = false));
}
