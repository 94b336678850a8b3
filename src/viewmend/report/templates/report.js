"use strict";

// The button of a header sorts its table by that column; pressed again, the other way round.
const opposite = { none: "ascending", ascending: "descending", descending: "ascending" };
const words = new Intl.Collator("en", { numeric: true });

function order(one, two, sign) {
  const values = [one, two].map((cell) => cell.dataset.value);
  // Cells without a number stay below those that have one.
  if (values[0] === undefined && values[1] !== undefined) return 1;
  if (values[0] !== undefined && values[1] === undefined) return -1;
  if (values[0] === undefined) return sign * words.compare(one.textContent, two.textContent);
  return sign * (values[0] - values[1]);
}

function sortBy(header) {
  const table = header.closest("table");
  const direction = opposite[header.getAttribute("aria-sort")];
  const sign = direction === "ascending" ? 1 : -1;
  const cell = (row) => row.cells[header.cellIndex];
  const rows = [...table.tBodies[0].rows].sort((one, two) => order(cell(one), cell(two), sign));
  table.tBodies[0].append(...rows);
  for (const each of header.parentElement.cells) each.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", direction);
  const said = `Sorted by ${header.textContent.trim()}, ${direction}`;
  document.getElementById("spoken").textContent = said;
}

for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
