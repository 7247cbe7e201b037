// What charts gain by a script: keys, zoom, lines to hide, and pictures.  All else works without.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEAST = 8; // pixels: a shorter way of the pointer is a click
  const shown = (picture) => [...picture.querySelectorAll("svg.chart")].find((svg) => svg.getClientRects().length);
  const stretches = (svg) => [...svg.querySelectorAll(".stretches a")];
  const middle = (node) => { const box = node.getBoundingClientRect(); return (box.left + box.right) / 2; };
  // The strip at a place across, or the nearest: a brush may end beside the plot.
  const stretchAt = (svg, x) => {
    const away = (node) => { const box = node.getBoundingClientRect(); return Math.max(box.left - x, x - box.right, 0); };
    return stretches(svg).sort((a, b) => away(a) - away(b))[0];
  };
  // The marks at a place across, all of one time: one of the drawings has them for all.
  function marksAt(picture, svg, x) {
    const strip = stretchAt(svg, x);
    const [from, to = from] = strip.querySelector("title").textContent.split(" – ");
    const box = strip.getBoundingClientRect();
    const momentOf = (mark) => mark.dataset.row.split("  ")[0].split(" · ").pop();
    const marks = [...picture.querySelectorAll("svg [data-row]")].filter((mark) => !mark.closest("a"));
    const within = marks.filter((mark) => from <= momentOf(mark) && momentOf(mark) <= to);
    const times = [...new Set(within.map(momentOf))].sort();
    const part = Math.min(Math.max((x - box.left) / box.width, 0), 1);
    const time = times[Math.min(Math.floor(part * times.length), times.length - 1)];
    return within.filter((mark) => momentOf(mark) === time);
  }
  function tell(svg, x, y) {
    const marks = marksAt(svg.closest(".picture"), svg, x);
    if (marks.length) document.dispatchEvent(new CustomEvent("pointed", { detail: { marks, x, y } }));
  }
  const follow = (link) => { location.href = link.href.baseVal; };
  function zoom(a, b) {
    const [first, last] = [a, b].sort((p, q) => middle(p) - middle(q)).map((link) => new URL(link.href.baseVal, location.href));
    first.searchParams.set("to", last.searchParams.get("to"));
    location.href = first;
  }

  // One line at the pointer, in every chart that shows the same time, and the numbers of that time.
  let lines = [];
  let pointed = "";
  const timeOf = (strip) => strip.querySelector("title").textContent;
  function across(svg, strip) {
    const all = stretches(svg).map((link) => link.querySelector("rect"));
    const apart = Math.max(...all.map((box) => box.width.baseVal.value));
    const box = strip.querySelector("rect");
    const [left, wide] = [box.x.baseVal.value, box.width.baseVal.value];
    const x = box === all[0] ? left + wide - apart / 2 : left + apart / 2; // at the ends a strip is cut off
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", "pointer");
    line.setAttribute("d", `M${x} ${box.y.baseVal.value}v${box.height.baseVal.value}`);
    strip.parentNode.before(line);
    return line;
  }
  document.addEventListener("pointermove", (event) => {
    const svg = event.target.closest && event.target.closest("svg.chart");
    const inPlot = svg && event.pointerType !== "touch" && event.target.closest(".stretches a, [data-row], .hover");
    const strip = inPlot && stretchAt(svg, event.clientX);
    const time = strip ? timeOf(strip) : "";
    if (time !== pointed) {
      for (const line of lines) line.remove();
      pointed = time;
      lines = !time ? [] : [...document.querySelectorAll(".picture")].map(shown).filter(Boolean).flatMap((one) => {
        const same = stretches(one).find((link) => timeOf(link) === time);
        return same ? [across(one, same)] : [];
      });
    }
    if (strip && event.target.closest(".stretches a") && !brush) tell(svg, event.clientX, event.clientY);
  });

  // Zoom: a way across the plot is a range of time.
  let brush = null;
  let brushed = false;
  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest && event.target.closest("svg.chart");
    brushed = false;
    if (!svg || event.button || !svg.querySelector(".stretches a") || !event.target.closest(".stretches a, [data-row], .hover")) return;
    brush = { svg, from: event.clientX, area: null };
  });
  document.addEventListener("pointermove", (event) => {
    if (!brush || Math.abs(event.clientX - brush.from) < LEAST && !brush.area) return;
    const strip = stretches(brush.svg)[0].querySelector("rect");
    if (!brush.area) {
      brush.area = document.createElementNS(SVG, "rect");
      brush.area.setAttribute("class", "brush");
      for (const name of ["y", "height"]) brush.area.setAttribute(name, strip.getAttribute(name));
      strip.closest("a").before(brush.area);
    }
    const toPlot = strip.getScreenCTM().inverse();
    const [from, to] = [brush.from, event.clientX].map((x) => new DOMPoint(x, 0).matrixTransform(toPlot).x);
    brush.area.setAttribute("x", Math.min(from, to));
    brush.area.setAttribute("width", Math.abs(to - from));
  });
  document.addEventListener("pointerup", (event) => {
    if (brush && brush.area) {
      brushed = true;
      zoom(stretchAt(brush.svg, brush.from), stretchAt(brush.svg, event.clientX));
    }
    still();
  });
  document.addEventListener("pointercancel", still);
  function still() { if (brush && brush.area) brush.area.remove(); brush = null; }
  document.addEventListener("dragstart", (event) => { if (event.target.closest && event.target.closest(".chart")) event.preventDefault(); });
  // A click or a tap tells the numbers; it leads on only from a row or a note.
  document.addEventListener("click", (event) => {
    const mark = event.target.closest && event.target.closest(".chart [data-row], .chart .stretches a");
    if (!mark) return;
    if (brushed) { event.preventDefault(); return; }
    const svg = mark.closest("svg.chart");
    if (mark.closest("a:not([tabindex='-1'])") || !stretches(svg).length || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    tell(svg, event.clientX, event.clientY);
  });

  // Keys: arrows go from mark to mark, with Shift they stretch a range, Enter goes there.
  const places = new WeakMap();
  const stops = (svg) => {
    const marks = [...svg.querySelectorAll("[data-row]")].filter((mark) => !mark.closest("a"));
    return (marks.length ? marks : stretches(svg)).sort((a, b) => Math.round(middle(a) - middle(b)) || 0);
  };
  function point(mark) {
    const box = mark.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    if (mark.matches("[data-row]")) mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
    else tell(mark.closest("svg.chart"), x, y);
  }
  function choose(picture, svg, marks, at, anchor) {
    for (const mark of svg.querySelectorAll(".chosen")) mark.classList.remove("chosen");
    const [low, high] = [Math.min(at, anchor), Math.max(at, anchor)];
    for (const mark of marks.slice(low, high + 1)) mark.classList.add("chosen");
    places.set(picture, { at, anchor });
    point(marks[at]);
  }
  document.addEventListener("keydown", (event) => {
    const picture = event.target;
    const svg = picture.matches && picture.matches(".picture") && shown(picture);
    const marks = svg ? stops(svg) : [];
    if (!marks.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = places.get(picture);
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step) {
      const wanted = (place ? place.at : step > 0 ? -1 : marks.length) + step;
      const at = Math.min(Math.max(wanted, 0), marks.length - 1);
      choose(picture, svg, marks, at, event.shiftKey && place ? place.anchor : at);
    } else if (event.key === "Enter" && place && marks[place.at]) {
      const [from, to] = [place.anchor, place.at].map((at) => stretchAt(svg, middle(marks[at])));
      if (from && to) { if (place.at === place.anchor) follow(to); else zoom(from, to); }
    } else if (event.key === "Escape") {
      places.delete(picture);
      for (const mark of svg.querySelectorAll(".chosen")) mark.classList.remove("chosen");
    } else return;
    event.preventDefault();
  });

  // Lines to hide: a button each.  What is hidden stays so when the page renews itself.
  const hidden = new Set();
  function hide(picture, number, name, button) {
    const key = `${picture.getAttribute("aria-label")} ${name}`;
    const apply = () => {
      for (const part of picture.querySelectorAll(`[class$="-${number}"], [data-series="${number}"]`)) part.toggleAttribute("data-gone", hidden.has(key));
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
    };
    button.addEventListener("click", () => { if (!hidden.delete(key)) hidden.add(key); apply(); });
    apply();
  }
  function dress() {
    for (const picture of document.querySelectorAll(".picture")) {
      const names = picture.querySelectorAll(".plot [data-series]");
      if (!names.length || picture.nextElementSibling?.matches(".series")) continue;
      const row = document.createElement("div");
      row.className = "series";
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", `Lines of ${picture.getAttribute("aria-label")}`);
      row.textContent = "Show";
      for (const name of names) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "plain";
        button.textContent = name.dataset.name;
        row.append(button);
        hide(picture, name.dataset.series, name.dataset.name, button);
      }
      picture.after(row);
    }
    // A picture of points, of the file of lines that the server draws.
    for (const link of document.querySelectorAll("a[download]")) {
      const address = link.getAttribute("href");
      if (!address.split("?")[0].endsWith(".svg") || link.nextElementSibling?.matches("[data-png]")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "plain";
      button.dataset.png = address;
      button.textContent = "PNG";
      link.after(button);
    }
  }
  document.addEventListener("click", async (event) => {
    const button = event.target.closest && event.target.closest("[data-png]");
    if (!button) return;
    const image = new Image();
    image.src = button.dataset.png;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    canvas.toBlob((blob) => {
      link.href = URL.createObjectURL(blob);
      link.download = `${button.closest("[data-name]").dataset.name}.png`;  // as the server calls its files
      link.click();
      URL.revokeObjectURL(link.href);
    });
  });
  document.addEventListener("dressed", dress);
  dress();
})();
