// The columns of a matrix: which device and configuration each is, which are hidden, and which stand for several.

/** @typedef {{device: string, id: string, configuration: string, anchor: string, head: HTMLTableCellElement,
 *   hidden: boolean, folds: number[]}} Column
 * `id` is the device's in names of files; `folds` are the places of the columns that this one stands for, if any. */

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
    folds: [],
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
 * @param {boolean} fold whether one column stands for all that are left of a device
 * @returns {boolean} whether anything changed
 */
export function hide(columns, devices, configurations, fold) {
  const off = names(devices), without = names(configurations);
  const hidden = columns.map((column) => off.has(column.device) || without.has(column.configuration));
  if (!hidden.includes(false)) hidden.fill(false);
  const left = columns.map((_, i) => i).filter((i) => fold && !hidden[i]);
  for (const column of columns) {
    const members = left.filter((i) => columns[i].device === column.device);
    column.folds = members.length > 1 && columns[members[0]] === column ? members : [];
    for (const i of column.folds.slice(1)) hidden[i] = true;
    const name = column.head.querySelector("b");
    if (name) name.textContent = column.folds.length ? `${column.folds.length} configurations` : column.configuration;
  }
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
