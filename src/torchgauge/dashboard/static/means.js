// The means under a table of numbers, worked out again: over the rows that a reader left, to the column that was chosen.
// pages/column_means.py has the same rule for all rows and the page's own baseline.

import { mean } from "./contrast.js";
import { builtAlike, loadMetric, reasonsOf } from "./numbers.js";
import { change, digits, gain, spread } from "./number_text.js";

/** @typedef {{text: string, beside: string, out: string}} Words */

/**
 * The mean of one column in words.
 * @param {import("./numbers.js").MetricShard} shard @param {number[]} orders of the rows that take part
 * @param {string} column @param {string} to the baseline: a column, empty where the numbers are ratios, `-` for none
 * @returns {Words}
 */
function columnMean(shard, orders, column, to) {
  if (column === to) return { text: "baseline", beside: "", out: "" };
  const width = shard.columns.length;
  const place = shard.columns.indexOf(column);
  const base = shard.columns.indexOf(to);
  const out = reasonsOf(shard);
  /** @type {number[]} */
  const logs = [];
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const order of orders) {
    const at = order * width;
    const value = shard.median[at + place];
    let why = out.get(at + place) ?? "";
    if (value === null && !why) continue; // nobody planned it
    if (to && !why) why = against(shard, order, place, base);
    if (why) counts.set(why, (counts.get(why) ?? 0) + 1);
    else logs.push(Math.log(to ? gain(Number(value) / Number(shard.median[at + base]), shard.better) : Number(value)));
  }
  const found = mean(logs);
  const left = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([why, count]) => `${count} ${why}`);
  if (!found.n) return { text: "", beside: "", out: left.join(", ") };
  const [middle, low, high] = [found.mean, found.low, found.high].map(Math.exp);
  const half = (100 * Math.max(high - middle, middle - low)) / middle;
  const between = found.n < 3 ? "no interval" : Number.isFinite(half) ? spread(half) : "unbounded interval";
  const text = shard.unit === "change" ? change(middle) : `${digits(middle, null)}x`;
  return { text, beside: `${between}, n ${found.n}`, out: left.join(", ") };
}

/**
 * Why the row has no ratio to its baseline that counts; empty where it has.
 * @param {import("./numbers.js").MetricShard} shard @param {number} order @param {number} place @param {number} base
 */
function against(shard, order, place, base) {
  const at = order * shard.columns.length + base;
  const why = reasonsOf(shard).get(at);
  if (base >= 0 && why) return `baseline ${why}`;
  if (base < 0 || shard.median[at] === null) return "no baseline planned";
  return builtAlike(shard, order, place, base) ? "" : "built differently";
}

/**
 * Write the means of the rows `orders` beneath `table`; `anchor` is the baseline that was chosen, empty where none was.
 * @param {HTMLTableElement} table @param {number[]} orders @param {{anchor: string, name: string}} chosen
 * @param {string[]} columns anchors, column by column
 * @param {() => boolean} wanted whether this is still what the reader wants once the numbers are there
 */
export async function showMeans(table, orders, chosen, columns, wanted) {
  const row = /** @type {HTMLTableRowElement | null} */ (table.querySelector("tr[data-means]"));
  if (!row) return;
  const shard = await loadMetric((chosen.anchor ? table.dataset.metric : row.dataset.means) ?? "");
  if (!wanted()) return;
  const items = [...document.querySelectorAll("[data-left-out] > li > span")];
  const cells = [...row.cells].slice(1);
  columns.forEach((column, i) => {
    const { text, beside, out } = columnMean(shard, orders, column, chosen.anchor || (cells[i].dataset.to ?? ""));
    const small = document.createElement("i");
    small.textContent = beside;
    cells[i].replaceChildren(text || "–", small);
    items[i].textContent = `${text || "– (too few comparable models)"}${beside && ` ${beside}`}${out && `; excluded: ${out}`}`;
  });
}

/** @type {Map<Element, string>} */
const built = new Map();

/**
 * What a page says of its baseline follows `name`, the column that was chosen; as it was built where that is empty.
 * @param {string} name @param {string} ratio what a ratio of the page's metric is called
 */
export function relabel(name, ratio) {
  document.querySelector(".views [aria-current]")?.setAttribute("aria-current", name ? "false" : "page");
  const label = `${ratio} over ${name}`;
  const said = `The cells show the ${ratio} over ${name}, the chosen column: above 1 is better.`;
  const nodes = [...document.querySelectorAll("[data-label], [data-baseline], title")];
  for (const node of nodes) if (!built.has(node)) built.set(node, node.textContent ?? "");
  const own = built.get(nodes[0]) ?? "";
  for (const node of nodes) {
    const text = built.get(node) ?? "";
    if (!name) node.textContent = text;
    else if (node.matches("[data-baseline]")) node.textContent = said;
    else node.textContent = node.matches("title") ? text.replace(own, label) : label;
  }
}
