// Whether a query holds for a row of a matrix, and for which of its cells: the evaluator, without any DOM.

/** @typedef {import("./query.js").Node} Node
 * @typedef {import("./query.js").Row} Row
 * @typedef {import("./query.js").Cell} Cell
 * @typedef {import("./query.js").Field} Field */

/** @param {number} left @param {string} sign @param {number} right */
function compares(left, sign, right) {
  if (sign === "<") return left < right;
  if (sign === "<=") return left <= right;
  if (sign === ">") return left > right;
  return sign === ">=" ? left >= right : left === right;
}

/** Whether `node` speaks of cells that nobody planned. @param {Node} node @returns {boolean} */
function speaksOfNone(node) {
  if (node.op === "status") return node.letters === ".";
  if (!("of" in node)) return false;
  return Array.isArray(node.of) ? node.of.some(speaksOfNone) : speaksOfNone(node.of);
}

/** @param {Row} row @param {Node[]} nodes @returns {Cell[]} */
function cellsOf(row, nodes) {
  return nodes.some(speaksOfNone) ? row.cells : row.cells.filter((cell) => cell.status !== ".");
}

/** @param {Field} node @param {Row} row @param {Cell} cell */
function fieldHolds(node, row, cell) {
  if (node.field === "device") return node.value(cell.device);
  if (node.field === "config") return node.value(cell.configuration);
  return node.value(row[/** @type {"suite" | "model" | "mode" | "dtype" | "batch" | "text"} */ (node.field)]);
}

/** Whether `node` only says which columns are meant. @param {Node} node @returns {boolean} */
function isScope(node) {
  if (node.op === "field") return node.field === "device" || node.field === "config";
  if (node.op === "not") return isScope(node.of);
  return (node.op === "and" || node.op === "or") && node.of.every(isScope);
}

/** `row` with the cells of which `nodes` speak: device:npu beside a term limits it. @param {Row} row @param {Node[]} nodes @returns {Row} */
function within(row, nodes) {
  const scopes = nodes.filter(isScope);
  if (!scopes.length) return row;
  return { ...row, cells: row.cells.filter((cell) => scopes.every((scope) => cellHolds(scope, row, cell))) };
}

/** Whether `steps` follow each other in what is known of `cell`. @param {Node[]} steps @param {Row} row @param {Cell} cell */
function happened(steps, row, cell) {
  const said = [...cell.history].filter((letter) => !".in".includes(letter));
  for (let start = 0; start + steps.length <= said.length; start += 1) {
    if (steps.every((step, i) => cellHolds(step, row, { ...cell, status: said[start + i] }))) return true;
  }
  return false;
}

/**
 * Whether one cell of `row` fulfils `node`.
 * @param {Node} node
 * @param {Row} row
 * @param {Cell} cell
 * @returns {boolean}
 */
function cellHolds(node, row, cell) {
  switch (node.op) {
    case "and": case "cell": case "every": return node.of.every((child) => cellHolds(child, row, cell));
    case "or": return node.of.some((child) => cellHolds(child, row, cell));
    case "not": return !cellHolds(node.of, row, cell);
    case "count": return rowHolds(node, row);
    case "seq": return happened(node.of, row, cell);
    case "column":
      return node.device(cell.device) && node.configuration(cell.configuration) && cellHolds(node.of, row, cell);
    case "field": return fieldHolds(node, row, cell);
    case "status": return node.letters.includes(cell.status);
    case "mark": return cell.marks.includes(node.mark);
    case "metric": {
      const value = cell.numbers[node.metric];
      return typeof value === "number" && compares(value, node.sign, node.value);
    }
    case "text": return row.text.includes(node.text);
  }
}

/**
 * Whether `row` fulfils `node`: what is said of cells holds where it holds for any planned cell.
 * @param {Node} node
 * @param {Row} row
 * @returns {boolean}
 */
export function rowHolds(node, row) {
  switch (node.op) {
    case "and": {
      const meant = within(row, node.of);
      return node.of.every((child) => rowHolds(child, meant));
    }
    case "or": return node.of.some((child) => rowHolds(child, row));
    case "not": return isScope(node) ? row.cells.some((cell) => cell.status !== "." && cellHolds(node, row, cell)) : !rowHolds(node.of, row);
    case "text": return row.text.includes(node.text);
    case "count": {
      const cells = cellsOf(row, node.of);
      const found = cells.filter((cell) => node.of.every((child) => cellHolds(child, row, cell)));
      return compares(found.length, node.sign, node.value);
    }
    case "every": {
      const cells = cellsOf(row, node.of).filter((cell) => node.of.every((child) => inScope(child, row, cell)));
      return cells.length > 0 && cells.every((cell) => cellHolds(node, row, cell));
    }
    default: return cellsOf(row, [node]).some((cell) => cellHolds(node, row, cell));
  }
}

/** Whether `cell` is in a column that `node` speaks of. @param {Node} node @param {Row} row @param {Cell} cell @returns {boolean} */
function inScope(node, row, cell) {
  if (node.op === "column") return node.device(cell.device) && node.configuration(cell.configuration);
  if (node.op === "field") return fieldHolds(node, row, cell);
  return true;
}

/** Whether a cell can decide `node`. @param {Node} node @returns {boolean} */
function speaksOfCells(node) {
  if (["count", "every", "text", "not"].includes(node.op)) return false;
  if (node.op === "field") return isScope(node);
  if (!("of" in node)) return true;
  return Array.isArray(node.of) ? node.of.some(speaksOfCells) : speaksOfCells(node.of);
}

/**
 * The cells of a row found by `node` that fulfil all of it alone; empty where it speaks of no cell.
 * @param {Node} node
 * @param {Row} row
 * @returns {Cell[]}
 */
export function cellsFound(node, row) {
  return speaksOfCells(node) ? cellsOf(row, [node]).filter((cell) => cellHolds(node, row, cell)) : [];
}

/**
 * What must be loaded before `node` can be evaluated.
 * @param {Node} node
 * @returns {{metrics: string[], history: boolean}}
 */
export function needs(node) {
  /** @type {Set<string>} */
  const metrics = new Set();
  let history = false;
  /** @param {Node} at */
  const walk = (at) => {
    if (at.op === "metric") metrics.add(at.metric);
    if (at.op === "seq") history = true;
    if ("of" in at) (Array.isArray(at.of) ? at.of : [at.of]).forEach(walk);
  };
  walk(node);
  return { metrics: [...metrics], history };
}
