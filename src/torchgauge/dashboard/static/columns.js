// The columns of a matrix: which device and configuration each is, and which are hidden.

/** @typedef {{device: string, id: string, configuration: string, anchor: string, head: HTMLTableCellElement, hidden: boolean}} Column
 * `id` is the device's in names of files. */

/** The columns that the headings of `table` name. @param {HTMLTableElement} table @returns {Column[]} */
export function columnsOf(table) {
  const heads = /** @type {NodeListOf<HTMLTableCellElement>} */ (table.tHead?.querySelectorAll("th[data-anchor]"));
  let id = "";
  return [...heads].map((head) => ({
    device: head.dataset.device ?? "",
    id: (id = head.dataset.id ?? id),
    configuration: head.lastElementChild?.textContent ?? "",
    anchor: head.dataset.anchor ?? "",
    head,
    hidden: false,
  }));
}

/** Names in an address: percent-encoded, with commas between them. @param {string[]} found */
export function listed(found) {
  return found.map(encodeURIComponent).join(",");
}

/** The names in an address. @param {string} text */
export function names(text) {
  return new Set(text.split(",").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  }));
}

/**
 * Hide the devices and configurations that the address names; all are shown where nothing would be left.
 * @param {Column[]} columns @param {string} devices @param {string} configurations
 * @returns {boolean} whether anything changed
 */
export function hide(columns, devices, configurations) {
  const off = names(devices), without = names(configurations);
  const hidden = columns.map((column) => off.has(column.device) || without.has(column.configuration));
  if (!hidden.includes(false)) hidden.fill(false);
  const changed = columns.some((column, i) => column.hidden !== hidden[i]);
  let before = "";
  columns.forEach((column, i) => {
    column.hidden = hidden[i];
    column.head.hidden = hidden[i];
    column.head.classList.toggle("first", !hidden[i] && column.device !== before);
    if (!hidden[i]) before = column.device;
  });
  return changed;
}

/** Hide the cells of `tr` that stand in hidden columns. @param {HTMLTableRowElement} tr @param {Column[]} columns */
export function hideCells(tr, columns) {
  columns.forEach((column, i) => {
    const cell = tr.cells[i + 1];
    if (cell && cell.hidden !== column.hidden) cell.hidden = column.hidden;
  });
}
