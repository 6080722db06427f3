// Filter and sort for the matrices. The tables are complete without this file.

const matrices = [...document.querySelectorAll("table[data-matrix]")];
const controls = document.querySelector("[data-controls]");

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const bodyRows = (table) => [...table.tBodies[0].rows];

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function applyFilter(query, status, reset) {
  const wanted = words(query);
  let shown = 0;
  for (const table of matrices) {
    for (const row of bodyRows(table)) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      if (table === matrices[0] && !row.hidden) shown += 1;
    }
  }
  const all = matrices.length ? bodyRows(matrices[0]).length : 0;
  status.textContent = shown === 0 && all > 0 ? "No row matches." : `${shown} of ${all} rows`;
  reset.hidden = wanted.length === 0;
}

function remember(query) {
  const address = new URL(window.location.href);
  if (query) address.searchParams.set("q", query);
  else address.searchParams.delete("q");
  window.history.replaceState(null, "", address);
}

function addFilter() {
  const label = element("label", { textContent: "Filter rows " });
  const input = element("input", { type: "search", autocomplete: "off", spellcheck: false });
  input.placeholder = "model, dtype, status …";
  const status = element("output", { className: "muted" });
  const reset = element("button", { type: "button", textContent: "Show all" });
  const apply = () => applyFilter(input.value, status, reset);
  input.value = new URLSearchParams(window.location.search).get("q") ?? "";
  input.addEventListener("input", () => {
    apply();
    remember(input.value);
  });
  reset.addEventListener("click", () => {
    input.value = "";
    apply();
    remember("");
    input.focus();
  });
  label.append(input);
  controls.append(label, status, reset);
  apply();
}

function sortKey(row, index) {
  const cell = row.cells[index];
  if (index === 0) return cell.textContent.trim();
  return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
}

// Rows without a number stay at the end, whichever way the column is sorted.
function compare(left, right, direction) {
  if (left === null || right === null) return (left === null) - (right === null);
  if (typeof left === "string") return direction * left.localeCompare(right);
  return direction * (left - right);
}

function sortBy(table, header, index) {
  const descending = header.getAttribute("aria-sort") === "descending";
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "ascending" : "descending");
  const direction = descending ? 1 : -1;
  const keyed = bodyRows(table).map((row) => ({ row, key: sortKey(row, index) }));
  keyed.sort((a, b) => compare(a.key, b.key, direction));
  table.tBodies[0].append(...keyed.map(({ row }) => row));
}

function addSort(table) {
  const headers = [...table.tHead.querySelectorAll("th[data-sortable]")];
  headers.forEach((header, index) => {
    const button = element("button", { type: "button", className: "sort", textContent: header.textContent });
    button.addEventListener("click", () => sortBy(table, header, index));
    header.replaceChildren(button);
  });
}

if (controls && matrices.length) {
  addFilter();
  matrices.forEach(addSort);
}
