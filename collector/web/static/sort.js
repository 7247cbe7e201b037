// Panels of a board are moved and made wide by a pointer or by buttons; the form can do both without.
"use strict";
(() => {
  const list = document.querySelector("[data-sort]");
  const panels = () => [...list.children];
  const field = (panel, name) => panel.querySelector(`[name=${name}]`);
  const sent = panels();  // the server reads them in this order
  list.closest("form").addEventListener("submit", () => list.append(...sent));
  list.append(...panels().sort((a, b) => field(a, "place").value - field(b, "place").value));
  for (const part of list.querySelectorAll("[data-move]")) part.hidden = false;

  // The others give way: what is moved keeps the focus and the pointer.
  function move(panel, step) {
    const at = panels().indexOf(panel) + step;
    if (!panels()[at]) return;
    for (let i = 0; i < step; i++) panel.before(panel.nextElementSibling);
    for (let i = 0; i > step; i--) panel.after(panel.previousElementSibling);
    panels().forEach((one, i) => { field(one, "place").value = i + 1; one.firstElementChild.textContent = `Panel ${i + 1}`; });
    document.getElementById("status").textContent = `Position ${at + 1} of ${sent.length}`;
  }
  list.addEventListener("click", ({ target }) => {
    const step = Number(target.dataset.move);
    if (step) move(target.closest("fieldset"), step);
  });
  list.addEventListener("pointerdown", (event) => {
    const grip = event.target, panel = grip.closest("fieldset"), kind = grip.dataset.move;
    if (kind !== "to" && kind !== "wide") return;
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    panel.classList.add("moving");
    grip.onpointermove = ({ clientX: x, clientY: y }) => {
      const by = x - event.clientX;
      if (kind === "wide") { if (Math.abs(by) > 40) field(panel, "wide").checked = by > 0; return; }
      const over = document.elementsFromPoint(x, y).find((one) => one.parentNode === list);
      if (!over || over === panel) return;
      const box = over.getBoundingClientRect(), own = panel.getBoundingClientRect();
      const step = panels().indexOf(over) - panels().indexOf(panel);
      const past = box.top === own.top ? x > box.left + box.width / 2 : y > box.top + box.height / 2;
      if (past === step > 0) move(panel, step);
    };
    grip.onlostpointercapture = () => { grip.onpointermove = null; panel.classList.remove("moving"); };
  });
})();
