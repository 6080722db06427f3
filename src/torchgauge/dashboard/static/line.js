// One row of a matrix: what a query may ask of it, and by what it is sorted.

/** @typedef {import("./query.js").Row} Row
 * @typedef {{tr: HTMLTableRowElement, order: number, row: Row | null, dressed: number}} Line
 * `order` is its place as the page was built, `dressed` the look of the matrix that its cells have.
 * @typedef {import("./columns.js").Column} Column */

/** Letters of statuses, the best first. */
export const BADNESS = "pqsunitoaec";

/** The name of a row: suite, model and what its variant says. @param {Line} line */
function name(line) {
  const head = line.tr.cells[0];
  const link = head.querySelector("a");
  const parts = (head.querySelector(".variant")?.textContent ?? "").split(" · ");
  return {
    suite: (link?.firstChild?.textContent ?? "").replace(/\/$/, ""),
    model: link?.lastChild?.textContent ?? "",
    mode: parts[0],
    dtype: parts[1] ?? "",
    batch: (parts[2] ?? "").replace(/^b/, ""),
    text: (head.textContent ?? "").toLowerCase(),
  };
}

/** The pieces of text in `node`, which stand apart though nothing is between them. @param {Node} node @returns {string[]} */
export function textsOf(node) {
  return node.nodeType === Node.TEXT_NODE ? [(node.textContent ?? "").trim()] : [...node.childNodes].flatMap(textsOf);
}

/** @param {HTMLTableCellElement} cell */
export function letterOf(cell) {
  const letter = cell.className.charAt(0);
  return letter === "z" ? "." : letter;
}

/** What a query may ask of a row. @param {Line} line @param {Column[]} columns @returns {Row} */
export function read(line, columns) {
  line.row ??= {
    ...name(line),
    cells: columns.map(({ device, configuration }, index) => {
      const cell = line.tr.cells[index + 1];
      return {
        device,
        configuration,
        status: letterOf(cell),
        marks: (cell.querySelector("small")?.textContent ?? "").split(/[\s,]+/),
        numbers: {},
        history: "",
      };
    }),
  };
  return line.row;
}

/** The values of the fields of all rows, which a query is checked by. @param {Line[]} lines */
export function valuesOf(lines) {
  const rows = lines.map(name);
  const fields = /** @type {("suite" | "model" | "mode" | "dtype" | "batch")[]} */ (["suite", "model", "mode", "dtype", "batch"]);
  return Object.fromEntries(fields.map((field) => [field, [...new Set(rows.map((row) => row[field]))].sort()]));
}

/** By what a row is sorted; null stays at the end. @param {Line} line @param {number} index of a column
 * @param {boolean} byStatus whether the cells of the column are statuses @returns {number | null} */
function key(line, index, byStatus) {
  const cell = line.tr.cells[index + 1];
  if (byStatus) {
    const place = BADNESS.indexOf(cell.className.charAt(0));
    return place < 0 ? null : place;
  }
  if (cell.classList.contains("d")) return null; // in doubt: neither large nor small
  const found = parseFloat((cell.firstChild?.textContent ?? "").replace(/[,\s]/g, "").replace("−", "-"));
  return Number.isNaN(found) ? null : found;
}

/** How bad a row is: all statuses together, or the worst number that is shown; hidden cells are left out.
 * In a row with ratios the plain numbers are the baseline. @param {Line} line @param {Column[]} columns
 * @param {string} better of the numbers, empty for statuses */
function badness(line, columns, better) {
  const cells = columns.flatMap(({ hidden }, i) => (hidden ? [] : [{ i, cell: line.tr.cells[i + 1] }]));
  if (!better) return cells.reduce((sum, { cell }) => sum + Math.max(0, BADNESS.indexOf(cell.className.charAt(0))), 0);
  const isRatio = (/** @type {HTMLTableCellElement} */ cell) => /x$/.test(cell.firstChild?.textContent ?? "") && cell.firstChild?.textContent !== "1x"; // 1x is the chosen baseline
  const ratios = cells.filter(({ cell }) => isRatio(cell));
  const found = (ratios.length ? ratios : cells).filter(({ cell }) => letterOf(cell) === "p").flatMap(({ i }) => key(line, i, false) ?? []);
  if (!found.length) return null;
  return ratios.length || better === "higher" ? -Math.min(...found) : Math.max(...found);
}

/**
 * `lines` in the order that `text` names: `worst`, or a column's anchor or `name`, with `-` before it from the
 * last to the first. Null where it names nothing. `better` is of the numbers, empty where cells are statuses.
 * @param {Line[]} lines @param {Column[]} columns @param {string} text @param {string} better
 */
export function sorted(lines, columns, text, better) {
  const down = text.startsWith("-") || text === "worst";
  const named = text.replace(/^-/, "");
  const index = columns.findIndex((column) => column.anchor === named);
  if (text !== "" && text !== "worst" && named !== "name" && index < 0) return null;
  const keyed = lines.map((line) => ({
    line,
    key: text === "worst" ? badness(line, columns, better) : index < 0 ? line.order : key(line, index, !better),
  }));
  keyed.sort((a, b) => compare(a.key, b.key, down ? -1 : 1) || a.line.order - b.line.order);
  return keyed.map(({ line }) => line);
}

/** Rows without a number stay at the end, whichever way a column is sorted.
 * @param {number | null} left @param {number | null} right @param {number} direction */
function compare(left, right, direction) {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return direction * (left - right);
}
