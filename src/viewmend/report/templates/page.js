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

// On paper nothing is folded.
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
