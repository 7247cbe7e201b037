// The form of questions: fields that hang on others follow them.
"use strict";
(() => {
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
