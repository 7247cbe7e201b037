// The form of questions: fields that hang on others follow them.
"use strict";
(() => {
  const form = document.querySelector("form[data-ask]");
  if (!form) return;
  // Another dimension has other arms: ask again, without those of the first.
  function follow(field) {
    const hanging = [...form.querySelectorAll(`[data-of="${field.dataset.choice}"]`)];
    for (const part of hanging) part.disabled = true;
    for (const part of form.elements) if (part.name && part.value === "") part.disabled = true;
    form.submit();
  }
  form.addEventListener("change", (event) => {
    const field = event.target;
    const dates = form.querySelector(".dates[data-for]");
    if (field.name === "against" && dates) {
      if (field.value === "dates") { delete dates.dataset.optional; dates.querySelector("input").focus(); return; }
      dates.dataset.optional = "";
      for (const part of dates.querySelectorAll("input")) part.value = "";
    }
    if (field.dataset.choice) follow(field);
  });
  // A day of the earlier range is only asked for together with it.
  form.addEventListener("submit", () => {
    for (const part of form.elements) if (part.name && part.value === "") part.disabled = true;
  });
})();
