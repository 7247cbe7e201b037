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
