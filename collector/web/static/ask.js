// The line and the form of questions: a key leads to the line, and fields that hang on others follow them.
"use strict";
(() => {
  // A slash leads to the line to type a question in, unless something is being typed.
  document.addEventListener("keydown", (event) => {
    const line = document.querySelector(".find input");
    if (event.key !== "/" || !line || event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    line.focus();
    line.select();
  });

  // Arrows go from the line through the questions below it, and back.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const own = event.target.closest && event.target.closest(".find input, .questions a");
    if (!step || !own || event.ctrlKey || event.metaKey || event.altKey) return;
    const stops = [...document.querySelectorAll(".find input, .questions a")].filter((one) => one.getClientRects().length);
    const next = stops[stops.indexOf(own) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  const form = document.querySelector("form[data-ask]");
  if (!form) return;
  // Another dimension has other arms: ask again, without the arms of the first.
  function follow(field) {
    const hanging = [...form.querySelectorAll(`[data-of="${field.dataset.choice}"]`)];
    for (const part of hanging) part.disabled = true;
    for (const part of form.elements) if (part.name && part.value === "") part.disabled = true;
    form.submit();
  }
  form.addEventListener("change", (event) => {
    const field = event.target;
    if (field.value === "dates") return; // its days come first
    if (field.dataset.choice) follow(field);
  });
  // So that the address holds what was chosen, and no more.
  form.addEventListener("submit", () => {
    for (const part of form.elements) if (part.name && part.value === "") part.disabled = true;
  });
})();
