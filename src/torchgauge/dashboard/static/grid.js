// One tab stop for a whole matrix: arrow keys walk its cells, Enter opens. Without this file every link is a stop.

/** @typedef {import("./rows.js").Rows} Rows */

/** What takes the focus in a cell: its link or button, else the cell itself. @param {HTMLTableCellElement} cell */
function target(cell) {
  return /** @type {HTMLElement} */ (cell.querySelector("a, button") ?? cell);
}

/** @param {Element} node @returns {HTMLTableCellElement | null} */
export function cellAt(node) {
  return node.closest("td, th");
}

/** Links of a row are reached by arrows, not by Tab. @param {HTMLTableRowElement} tr */
export function settle(tr) {
  for (const link of tr.querySelectorAll("a")) link.tabIndex = -1;
}

/**
 * Make `table` one tab stop.
 * @param {HTMLTableElement} table
 * @param {Rows} rows
 */
export function makeGrid(table, rows) {
  /** @type {HTMLElement | null} */
  let active = null;
  const heads = table.tHead?.rows[table.tHead.rows.length - 1];

  /** @param {HTMLElement} node */
  const choose = (node) => {
    if (active) active.tabIndex = -1;
    active = node;
    node.tabIndex = 0;
  };

  /** The stop is a cell that stands in the page, also after scrolling and filtering. */
  const refresh = () => {
    if (active && table.contains(active) && !cellAt(active)?.hidden) return choose(active);
    const first = rows.shown[rows.top] ?? null;
    const node = first ? target(first.tr.cells[0]) : heads?.querySelector("button");
    if (node) choose(/** @type {HTMLElement} */ (node));
  };

  /** Row -1 is the heading. @param {number} column @param {number} row */
  const move = (column, row) => {
    const place = Math.min(row, rows.shown.length - 1);
    const line = place < 0 ? heads : rows.reveal(place);
    if (!line) return;
    const cell = line.cells[Math.max(0, Math.min(column, line.cells.length - 1))];
    if (cell.hidden) return;
    const node = target(cell);
    choose(node);
    node.focus({ preventScroll: true });
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  table.setAttribute("role", "grid");
  for (const button of heads?.querySelectorAll("button") ?? []) button.tabIndex = -1;
  rows.drawn = refresh;
  refresh();

  table.addEventListener("focusin", (event) => {
    const cell = cellAt(/** @type {Element} */ (event.target));
    if (cell) choose(target(cell));
  });

  table.addEventListener("keydown", (event) => {
    const cell = cellAt(/** @type {Element} */ (event.target));
    if (!cell || event.altKey || event.metaKey) return;
    const line = rows.placeOf(cell.parentElement);
    if (line < 0 && cell.parentElement !== heads) return;
    const places = [.../** @type {HTMLTableRowElement} */ (cell.parentElement).cells];
    const at = cell.cellIndex;
    /** @param {number} step */
    const beside = (step) => {
      let next = at + step;
      while (places[next]?.hidden) next += step;
      return places[next] ? next : at;
    };
    const far = event.ctrlKey;
    const last = rows.shown.length - 1;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowLeft: [beside(-1), line],
      ArrowRight: [beside(1), line],
      ArrowUp: [at, Math.max(-1, line - 1)],
      ArrowDown: [at, line + 1],
      PageUp: [at, Math.max(-1, line - 10)],
      PageDown: [at, line + 10],
      Home: [0, far ? 0 : line],
      End: [places.findLastIndex((place) => !place.hidden), far ? last : line],
    };
    if (event.key === "Enter" && target(cell) === cell) open(cell);
    if (!(event.key in moves)) return;
    event.preventDefault();
    move(...moves[event.key]);
  });

  table.addEventListener("click", (event) => {
    const cell = /** @type {Element} */ (event.target).closest("td");
    if (cell && cell.parentElement?.parentElement === table.tBodies[0] && !cell.querySelector("a")) open(cell);
  });

  /** Go to the case of a cell without a link: the row's section of its page, and the column's part of it.
   * @param {HTMLTableCellElement} cell */
  function open(cell) {
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
    const link = row.cells[0].querySelector("a");
    const head = /** @type {HTMLElement | undefined} */ (table.tHead?.querySelectorAll("th[data-anchor]")[cell.cellIndex - 1]);
    if (!link || !head || cell.className.startsWith("z")) return;
    window.location.href = `${link.href}-${head.dataset.anchor}`;
  }
}
