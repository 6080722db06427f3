// One tab stop for a whole matrix: arrow keys walk its cells, Enter opens. Without this file every link is a stop.

/** @typedef {{refresh: () => void}} Grid */

/** What takes the focus in a cell: its link or button, else the cell itself. @param {HTMLTableCellElement} cell */
function target(cell) {
  return /** @type {HTMLElement} */ (cell.querySelector("a, button") ?? cell);
}

/** @param {HTMLElement} node */
function shown(node) {
  return !node.hidden;
}

/** The rows that the arrows walk: the headings that sort, then what the filter left. @param {HTMLTableElement} table */
function rows(table) {
  const body = [...table.tBodies[0].rows].filter(shown);
  const heads = table.tHead ? [...table.tHead.rows].slice(-1) : [];
  return [...heads, ...body];
}

/** @param {HTMLTableRowElement} row @returns {HTMLTableCellElement[]} */
function cells(row) {
  return [...row.cells];
}

/**
 * Make `table` one tab stop.
 * @param {HTMLTableElement} table
 * @returns {Grid}
 */
export function makeGrid(table) {
  /** @type {HTMLElement | null} */
  let active = null;

  /** @param {HTMLElement} node */
  const focus = (node) => {
    if (active) active.tabIndex = -1;
    active = node;
    node.tabIndex = 0;
  };

  const refresh = () => {
    for (const link of /** @type {NodeListOf<HTMLElement>} */ (table.querySelectorAll("a, button"))) link.tabIndex = -1;
    const first = table.tBodies[0].rows[0]?.cells[0];
    if (first) focus(target(first));
  };

  /** @param {number} column @param {number} row @param {HTMLTableRowElement[]} all */
  const move = (column, row, all) => {
    const line = all[Math.max(0, Math.min(row, all.length - 1))];
    if (!line) return;
    const places = cells(line);
    const cell = places[Math.max(0, Math.min(column, places.length - 1))];
    if (!shown(cell)) return;
    const node = target(cell);
    focus(node);
    node.focus({ preventScroll: true });
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  table.setAttribute("role", "grid");
  refresh();

  table.addEventListener("focusin", (event) => {
    const cell = /** @type {Element} */ (event.target).closest("td, th");
    if (cell instanceof HTMLTableCellElement) focus(target(cell));
  });

  table.addEventListener("keydown", (event) => {
    const cell = /** @type {Element} */ (event.target).closest("td, th");
    if (!(cell instanceof HTMLTableCellElement) || event.altKey || event.metaKey) return;
    const all = rows(table);
    const line = all.findIndex((row) => cells(row).includes(cell));
    if (line < 0) return;
    const places = cells(all[line]);
    const at = places.indexOf(cell);
    /** @param {number} step */
    const beside = (step) => {
      let next = at + step;
      while (places[next] && !shown(places[next])) next += step;
      return places[next] ? next : at;
    };
    const far = event.ctrlKey;
    const last = all.length - 1;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowLeft: [beside(-1), line],
      ArrowRight: [beside(1), line],
      ArrowUp: [at, line - 1],
      ArrowDown: [at, line + 1],
      PageUp: [at, line - 10],
      PageDown: [at, line + 10],
      Home: [0, far ? Math.min(1, last) : line],
      End: [places.findLastIndex(shown), far ? last : line],
    };
    if (event.key === "Enter" && target(cell) === cell) open(cell);
    if (!(event.key in moves)) return;
    event.preventDefault();
    move(...moves[event.key], all);
  });

  table.addEventListener("click", (event) => {
    const cell = /** @type {Element} */ (event.target).closest("td");
    if (cell && cell.parentElement?.parentElement === table.tBodies[0] && !cell.querySelector("a")) open(cell);
  });

  /** Go to the case of a cell without a link: the row's page, at the row's and the column's part of its anchor.
   * @param {HTMLTableCellElement} cell */
  function open(cell) {
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
    const link = row.cells[0].querySelector("a");
    const head = /** @type {HTMLElement | undefined} */ (table.tHead?.querySelectorAll("th[data-anchor]")[cell.cellIndex - 1]);
    if (!link || !head || cell.className.startsWith("z")) return;
    window.location.href = `${link.href.split("#")[0]}#${row.cells[0].dataset.row ?? ""}-${head.dataset.anchor}`;
  }

  return { refresh };
}
