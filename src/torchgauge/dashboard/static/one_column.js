// One column in place of several of its device: its cells count what passes, and are as bad as the worst.

import { BADNESS, textsOf } from "./line.js";

/** @typedef {import("./query.js").Row} Row
 * @typedef {import("./columns.js").Column} Column */

/** @type {WeakMap<HTMLTableCellElement, {nodes: ChildNode[], look: string}>} */
const kept = new WeakMap();

/** What stands in a cell that is not folded. @param {HTMLTableCellElement} cell */
function nodesOf(cell) {
  return kept.get(cell)?.nodes ?? [...cell.childNodes];
}

/** What the cell of a column says of its case, though another stands for it. @param {HTMLTableRowElement} tr @param {number} place */
export function ownText(tr, place) {
  return nodesOf(tr.cells[place + 1]).flatMap(textsOf).join(" ");
}

/**
 * Let the cells of columns that stand for several say how many of them pass, and be as bad as the worst; the others
 * are as the page was built.
 * @param {HTMLTableRowElement} tr @param {Row} row @param {Column[]} columns
 */
export function foldCells(tr, row, columns) {
  columns.forEach((column, i) => {
    const cell = tr.cells[i + 1];
    const own = kept.get(cell);
    if (own) {
      cell.replaceChildren(...own.nodes);
      cell.className = own.look;
      kept.delete(cell);
    }
    const planned = column.folds.filter((at) => row.cells[at].status !== ".");
    if (!planned.length) return;
    const passed = planned.filter((at) => row.cells[at].status === "p");
    const worst = planned.reduce((a, b) => (BADNESS.indexOf(row.cells[b].status) > BADNESS.indexOf(row.cells[a].status) ? b : a));
    const shown = /** @type {HTMLElement | undefined} */ (tr.cells[worst + 1].firstElementChild ?? undefined);
    const link = document.createElement("a");
    link.tabIndex = -1;
    if (shown instanceof HTMLAnchorElement) link.href = shown.href;
    link.append(`${passed.length}/${planned.length}`);
    if (row.cells[worst].status !== "p") {
      const code = document.createElement("small");
      code.textContent = shown?.firstChild?.textContent ?? "";
      link.append(code);
    }
    kept.set(cell, { nodes: [...cell.childNodes], look: cell.className });
    cell.replaceChildren(link);
    cell.className = row.cells[worst].status;
  });
}
