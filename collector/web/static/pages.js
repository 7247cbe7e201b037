// What a page gains by a script.  It is complete without one: everything here is a shortcut.
"use strict";
(() => {
  const root = document.documentElement;
  const status = document.getElementById("status");
  const COPIES = "[data-copy], [data-copy-text], [data-copy-of]";
  const main = () => document.getElementById("main");

  function tell(text) {
    status.textContent = text;
    clearTimeout(tell.timer);
    tell.timer = setTimeout(() => { status.textContent = ""; }, 2500);
  }

  // Theme: as the system has it, light, or dark.
  const THEMES = ["", "light", "dark"];
  const NAMES = { "": "System theme", light: "Light", dark: "Dark" };
  const toggle = document.querySelector("[data-theme-toggle]");
  function name() {
    toggle.querySelector("[data-theme-name]").textContent = NAMES[root.dataset.theme || ""];
  }
  toggle.hidden = false;
  name();
  toggle.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme || "") + 1) % THEMES.length];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    try { localStorage.setItem("hearsay-theme", next); } catch { /* not kept */ }
    name();
  });

  // Moments in the time of this machine, with its zone and as the server writes dates; its title is in UTC.
  function local(moment) {
    const zone = moment.toLocaleTimeString("en", { timeZoneName: "short" }).split(" ").pop();
    const here = new Date(moment - 60000 * moment.getTimezoneOffset());
    return `${here.toISOString().slice(0, 19).replace("T", " ")} ${zone}`;
  }
  function localise(part) {
    for (const one of part.querySelectorAll("time[data-local]")) {
      one.title = one.textContent;
      one.textContent = local(new Date(one.dateTime));
    }
  }

  function dress(part) {
    localise(part);
    for (const one of part.querySelectorAll(COPIES)) one.hidden = !navigator.clipboard;
    for (const one of part.querySelectorAll("[data-print]")) { one.hidden = false; one.onclick = () => print(); }
    document.dispatchEvent(new Event("dressed"));
  }
  let sent = main().innerHTML;  // as the server sent it: scripts change what is shown
  dress(document);

  // Under the pointer: the numbers of a mark, which its title tells to everybody else.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  let silenced = null;
  let seen = ""; // where the page was scrolled to when the tip came
  const scrolled = () => `${scrollX} ${scrollY}`;
  function still() {
    if (silenced) silenced.mark.prepend(silenced.title);
    silenced = null;
    tip.hidden = true;
  }
  function tipLine({ row, reason }) {
    const [label, value, low = value, high = value] = row.split("  ").map((text) => text || undefined); // as marks.py joins them
    const line = document.createElement("div");
    const head = document.createElement("b");
    head.textContent = label;
    line.append(head, value ? `${value}${low ? ` — between ${low} and ${high}` : ""}` : reason || "no number");
    return line;
  }
  function tipAt(x, y) {
    tip.hidden = false;
    seen = scrolled();
    const box = tip.getBoundingClientRect();
    const below = y + 18;
    tip.style.left = `${Math.max(Math.min(x + 14, innerWidth - box.width - 8), 8)}px`;
    tip.style.top = `${below + box.height > innerHeight ? y - box.height - 12 : below}px`;
  }
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("[data-row]");
    if (!mark) { if (!tip.hidden && !event.target.closest?.(".stretches")) still(); return; }
    if (!silenced || silenced.mark !== mark) {
      if (silenced) still();
      const title = mark.querySelector(":scope > title");
      if (title) { silenced = { mark, title }; title.remove(); } else { silenced = null; }
      tip.replaceChildren(tipLine(mark.dataset));
    }
    tipAt(event.clientX, event.clientY);
  });
  // What a tap or a key points at, where no pointer moves: several marks of one time.
  document.addEventListener("pointed", ({ detail }) => {
    still();
    tip.replaceChildren(...detail.marks.map((mark) => tipLine(mark.dataset)));
    tipAt(detail.x, detail.y);
  });
  document.addEventListener("pointerdown", still);
  // The event of a scroll that brought the chart into view comes late: a key may have shown a tip by then.
  document.addEventListener("scroll", (event) => { if (event.target !== document || seen !== scrolled()) still(); }, true);

  // Forms that show something answer at once when a choice is made.
  function leave(form) {
    for (const one of form.elements) if (one.name && one.value === "" ) one.disabled = true;
    form.submit();
  }
  let keyed = false;
  let passed = null;
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (!form) return;
    const field = event.target;
    const own = field.closest(".dates");
    const beginning = field.name === "range" ? "" : `${field.name}.`;
    const dates = own || [...form.querySelectorAll(".dates")].find((one) => (one.dataset.for || "") === beginning);
    if (dates && !own) {
      const wanted = field.value === "dates";
      if (wanted) delete dates.dataset.optional; else dates.dataset.optional = "";
      if (wanted) { dates.querySelector("input").focus(); return; }
      for (const one of dates.querySelectorAll("input")) one.value = "";
    }
    if (own) {
      if ([...own.querySelectorAll("input")].some((one) => !one.value)) return;
      form.elements[own.dataset.for ? own.dataset.for.slice(0, -1) : "range"].value = "dates";
    }
    if (!("auto" in form.dataset)) return;
    // Arrows pass through choices: the one where they stop counts, when the list is left or by Enter.
    if (keyed && field.tagName === "SELECT") passed = field; else leave(form);
  });
  document.addEventListener("keydown", (event) => {
    keyed = true;
    if (event.key === "Enter" && passed && passed === event.target) leave(passed.form);
  }, true);
  document.addEventListener("pointerdown", () => { keyed = false; }, true);
  document.addEventListener("focusout", (event) => { if (event.target === passed) leave(passed.form); });

  // Parts of a page: the address keeps which is open.  Menus close where nothing of them is wanted.
  function openPart(id) {
    const target = id && document.getElementById(id);
    const own = target && (target.name === "part" ? target : document.getElementById(`part-${target.closest("[data-part]")?.dataset.part}`));
    if (own) own.checked = true;
  }
  openPart(location.hash.slice(1));
  document.addEventListener("change", (event) => { if (event.target.name === "part") history.replaceState(history.state, "", `#${event.target.id}`); });
  function closeMenus(but) {
    for (const menu of document.querySelectorAll(".menu[open]")) {
      if (menu === but) continue;
      if (menu.contains(document.activeElement)) menu.firstElementChild.focus();
      menu.open = false;
    }
  }
  document.addEventListener("pointerdown", (event) => closeMenus(event.target.closest(".menu")));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeMenus(null); });

  // Copy the numbers of a panel, or an address.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(COPIES);
    if (!button) return;
    const { copy, copyText, copyOf } = button.dataset;
    const text = copyOf ? document.getElementById(copyOf).textContent : copyText;
    await navigator.clipboard.writeText(text || await (await fetch(copy)).text());
    tell("Copied.");
  });

  // Live: the main part again from time to time, while somebody looks and is not in the middle of it.
  let tag = null;
  function busy() {
    const active = document.activeElement;
    const picked = getSelection && String(getSelection());
    return document.hidden || picked || (active && active.matches("input:not([type=radio]), select, textarea") && main().contains(active));
  }
  let failures = 0;
  let answered = new Date();
  // Numbers that are no longer renewed must not pass for new ones.
  function failed(ended) {
    failures += 1;
    if (!ended && failures < 2) return;
    const text = ended ? "The log-in has ended. Load this page again to log in." : `No answer since ${answered.toLocaleTimeString()}`;
    main().dataset.old = "";
    clearTimeout(tell.timer);
    if (status.textContent !== text) status.textContent = text;
  }
  function succeeded() {
    if ("old" in main().dataset) { delete main().dataset.old; status.textContent = ""; }
    failures = 0;
    answered = new Date();
  }
  async function refresh() {
    if (busy()) return;
    let answer;
    try {
      answer = await fetch(location.href, { headers: { Accept: "text/html", ...(tag ? { "If-None-Match": tag } : {}) }, cache: "no-store" });
    } catch { failed(false); return; }
    const ended = answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/login");
    if (answer.status === 304) { succeeded(); return; }
    if (ended || answer.status !== 200 || answer.redirected) { failed(ended); return; }
    succeeded();
    tag = answer.headers.get("ETag");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    const text = fresh && fresh.innerHTML;
    if (!fresh || text === sent || busy()) return;
    swap(fresh);
    sent = text;
  }
  function swap(fresh) {
    const open = [...main().querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...main().querySelectorAll(".picture, .scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    const part = main().querySelector("[name=part]:checked")?.id;
    const place = focused();
    still();
    main().replaceChildren(...fresh.childNodes);
    dress(main());
    main().querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
    main().querySelectorAll(".picture, .scroll").forEach((one, i) => { if (scrolled[i]) [one.scrollLeft, one.scrollTop] = scrolled[i]; });
    openPart(part);
    if (place >= 0) { const again = focusable()[place]; if (again) again.focus({ preventScroll: true }); }
  }
  function focusable() { return [...main().querySelectorAll("a[href], button, summary, [tabindex], [name=part]")]; }
  function focused() { return focusable().indexOf(document.activeElement); }
  const seconds = Number(main().dataset.refresh);
  if (seconds) setInterval(refresh, 1000 * seconds);
})();
