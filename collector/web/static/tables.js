// Tables are sorted by a click on the head of a column, and by it again the other way round.
"use strict";
(() => {
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const chosen = new Map(); // of each table: its column, and which way round

  // The number that a cell shows, null if it shows none: "−1.2 points", "12,345", "3.1 × 10⁻⁷".
  function number(text) {
    const plain = text.replaceAll(",", "").replaceAll("−", "-").trim();
    const parts = /^\+?(-?[0-9.]+)(?: × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?/.exec(plain);
    if (!parts) return null;
    const power = [...(parts[2] || "")].map((sign) => (sign === "⁻" ? "-" : SUPERSCRIPTS.indexOf(sign)));
    return Number(`${parts[1]}e${power.join("") || 0}`);
  }

  // Where a cell stands for the eye, as one can span several columns.
  function cell(row, column) {
    let place = 0;
    for (const part of row.cells) {
      place += part.colSpan;
      if (place > column) return part;
    }
    return null;
  }

  function order(table, column, down) {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => {
      const part = cell(row, column);
      const text = part ? part.textContent : "";
      return { row, text, number: part && part.colSpan === 1 ? number(text) : null };
    });
    const isText = keyed[0] && cell(keyed[0].row, column).tagName === "TH";
    const sign = down ? -1 : 1;
    keyed.sort((a, b) => {
      if (isText) return sign * a.text.localeCompare(b.text, undefined, { numeric: true });
      if (a.number === null || b.number === null) return (a.number === null) - (b.number === null);
      return sign * (a.number - b.number);
    });
    body.append(...keyed.map((one) => one.row));
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  function name(table) {
    const panel = table.closest("[id]");
    return `${panel ? panel.id : ""} ${table.caption ? table.caption.textContent : ""}`;
  }

  // A table that is cut off is left as it is: sorted, it would hide that others are larger.
  function prepare(table) {
    if (table.dataset.sorts || !table.tHead || table.tFoot || table.tBodies[0].rows.length < 2) return;
    table.dataset.sorts = "";
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent || head.textContent === "remarks") return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const isText = cell(table.tBodies[0].rows[0], column).tagName === "TH";
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : !isText;
        chosen.set(name(table), [column, down]);
        order(table, column, down);
      });
    });
    const last = chosen.get(name(table));
    if (last) order(table, ...last);
  }

  function dress() {
    for (const table of document.querySelectorAll("table.chart-table")) prepare(table);
  }
  document.addEventListener("dressed", dress); // also when the main part of a page was renewed
  dress();
})();
