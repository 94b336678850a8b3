"use strict";

// Tables: a header's button sorts by its column, the other way round when pressed again.
const other = { ascending: "descending", descending: "ascending", none: "ascending" };

function compare(a, b) {
  const x = a.dataset.value, y = b.dataset.value;
  if (x !== undefined && y !== undefined) return Number(x) - Number(y);
  // What has no value comes last among numbers, see sortBy.
  if (x !== undefined || y !== undefined) return null;
  return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
}

function sortBy(header) {
  const table = header.closest("table");
  const column = header.cellIndex;
  const direction = other[header.getAttribute("aria-sort")];
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, two) => {
    const order = compare(one.cells[column], two.cells[column]);
    if (order !== null) return sign * order;
    return one.cells[column].dataset.value === undefined ? 1 : -1;
  });
  table.tBodies[0].append(...rows);
  for (const each of table.tHead.rows[0].cells) each.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", direction);
  const name = header.textContent.trim();
  document.getElementById("spoken").textContent = `Sorted by ${name}, ${direction}`;
}

for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// Charts: a key hides its series, and shows it alone while the pointer is on it.
function parts(key) {
  return [...key.closest("figure").querySelectorAll("g[data-series]")];
}

for (const key of document.querySelectorAll(".key")) {
  const mine = (part) => part.dataset.series === key.dataset.series;
  key.addEventListener("click", () => {
    const shown = key.getAttribute("aria-pressed") === "true";
    key.setAttribute("aria-pressed", String(!shown));
    for (const part of parts(key).filter(mine)) part.classList.toggle("off", shown);
  });
  key.addEventListener("pointerenter", () => {
    for (const part of parts(key)) part.classList.toggle("dim", !mine(part));
  });
  key.addEventListener("pointerleave", () => {
    for (const part of parts(key)) part.classList.remove("dim");
  });
}

// Tips: what a mark stands for.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const room = window.innerWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, room))}px`;
  tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 10)}px`;
});
