"use strict";
// Sort a table by a column: numbers by value, text by alphabet, blanks last.
(function () {
  function key(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent.trim();
    const number = Number(text.replace(/,/g, ""));
    return text === "" || text === "—" ? null : Number.isNaN(number) ? text : number;
  }
  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }
  function sort(table, header, column) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [key(row, column), row]);
    rows.sort((a, b) => (a[0] !== null && b[0] !== null && descending ? compare(b[0], a[0]) : compare(a[0], b[0])));
    body.append(...rows.map((entry) => entry[1]));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, column));
    });
  }
})();
// A link to a run opens its details.
(function () {
  function open() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  addEventListener("hashchange", open);
  open();
})();
