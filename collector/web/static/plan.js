// Sliders: the plan is computed by the server, and its part of the page replaced.
"use strict";
(() => {
  const form = document.querySelector("form[data-live]");
  const status = document.getElementById("status");
  let waiting = null;
  let current = null;
  async function show() {
    const target = document.querySelector(form.dataset.live);
    if (current) current.abort();
    current = new AbortController();
    const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
    target.classList.add("busy");
    let text = "";
    try {
      const answer = await fetch(address, { signal: current.signal, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) {
        target.replaceChildren(...page.querySelector(form.dataset.live).childNodes);
        history.replaceState(null, "", address);
      } else text = "This cannot be planned: look at the numbers.";
    } catch (error) {
      if (error.name === "AbortError") return;
      text = "The collector does not answer.";
    }
    status.textContent = text;
    target.classList.remove("busy");
  }
  form.addEventListener("input", ({ target }) => {
    const output = form.querySelector(`output[data-of="${target.name}"]`);
    if (output) {
      const value = Number(target.value);
      const shown = "power" in output.dataset ? Number((10 ** value).toPrecision(2)) : value;
      output.textContent = shown.toLocaleString("en") + (output.dataset.unit || "");
    }
    clearTimeout(waiting);
    waiting = setTimeout(show, 150);
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "metric") location.search = `?metric=${encodeURIComponent(target.value)}`;
  });
})();
