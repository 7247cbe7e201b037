// Faults of a page for people who do not see it, or see it badly, as "rule: where".
// After the rules of WCAG 2.2, levels A and AA, that a program can decide.
(() => {
  const faults = [];
  const told = (rule, where) => faults.push(`${rule}: ${where}`);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const where = (one) => {
    const name = one.tagName.toLowerCase();
    const id = one.id ? `#${one.id}` : "";
    const kind = typeof one.className === "string" && one.className ? `.${one.className.split(" ")[0]}` : "";
    return `${name}${id}${kind} "${(one.textContent || "").trim().slice(0, 40)}"`;
  };
  const shown = (one) => {
    if (!one.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true })) return false;
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };
  const hidden = (one) => Boolean(one.closest("[aria-hidden=true], [hidden]"));
  const heard = (one) => shown(one) && !hidden(one);
  const textOf = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent || "").join(" ").trim();
  const nameOf = (one) =>
    (one.getAttribute("aria-labelledby") && textOf(one.getAttribute("aria-labelledby"))) ||
    (one.getAttribute("aria-label") || "").trim() ||
    [...(one.labels || [])].map((label) => label.textContent.trim()).join(" ").trim() ||
    (one.matches("input, select, textarea") ? "" : one.textContent.trim()) ||
    (one.querySelector("img[alt]")?.alt || "").trim() ||
    (one.getAttribute("title") || "").trim();

  // The page as a whole.
  if (!document.documentElement.lang) told("language", "html has no lang");
  if (!document.title.trim()) told("title", "the page has none");
  if (all("main").length !== 1) told("landmark", `${all("main").length} main`);
  if (all("h1").filter(heard).length !== 1) told("heading", `${all("h1").filter(heard).length} h1`);
  const zoom = document.querySelector("meta[name=viewport]")?.content || "";
  if (/user-scalable\s*=\s*no|maximum-scale\s*=\s*[01](\.|\b)/.test(zoom)) told("zoom", zoom);
  const navs = all("nav").filter(shown);
  if (navs.length > 1 && new Set(navs.map(nameOf)).size < navs.length) told("landmark", "navs of the same name");
  const loose = [...document.body.children].filter((one) => heard(one) && !one.matches("header, main, footer, nav, aside, script, a.skip, [role=status], [role=alert]") && one.textContent.trim());
  for (const one of loose) told("landmark", `outside of all: ${where(one)}`);

  // Order and references.
  let level = 0;
  for (const one of all("h1, h2, h3, h4, h5, h6").filter(heard)) {
    const next = Number(one.tagName[1]);
    if (next > level + 1) told("heading", `h${level} then ${where(one)}`);
    if (!nameOf(one)) told("heading", `empty ${where(one)}`);
    level = next;
  }
  const ids = new Set();
  for (const one of all("[id]")) {
    if (ids.has(one.id)) told("id", `twice: ${one.id}`);
    ids.add(one.id);
  }
  for (const key of ["aria-labelledby", "aria-describedby", "aria-controls", "for", "headers"]) {
    for (const one of all(`[${key}]`)) {
      for (const id of one.getAttribute(key).split(/\s+/)) {
        if (!document.getElementById(id)) told("reference", `${key}=${id} of ${where(one)}`);
      }
    }
  }
  for (const one of all("a[href^='#']")) {
    if (!document.getElementById(decodeURIComponent(one.hash.slice(1)))) told("reference", `${one.hash} of ${where(one)}`);
  }

  // Names of what can be used or seen.
  for (const one of all("a[href], button, summary, input:not([type=hidden]), select, textarea, [role=button], [role=group], output, dialog").filter(heard)) {
    if (one.matches("output")) continue;
    if (!nameOf(one)) told("name", where(one));
  }
  for (const one of all("img")) if (!one.hasAttribute("alt")) told("alternative", where(one));
  for (const one of all("svg").filter(shown)) {
    if (hidden(one) || one.parentElement.closest("svg")) continue;
    const title = one.getAttribute("aria-label") || textOf(one.getAttribute("aria-labelledby") || "");
    const role = one.querySelector("a[href]") ? "group" : "img"; // an image holds no links
    if (one.getAttribute("role") !== role || !title) told("alternative", where(one));
  }
  for (const one of all("iframe")) if (!one.title) told("name", where(one));
  for (const one of all("fieldset")) if (!one.querySelector(":scope > legend")?.textContent.trim()) told("name", where(one));

  // Roles and attributes.
  const ROLES = new Set("alert button group img list listitem status region presentation none note tooltip row rowgroup cell columnheader rowheader table figure search navigation".split(" "));
  for (const one of all("[role]")) if (!ROLES.has(one.getAttribute("role"))) told("role", `${one.getAttribute("role")} of ${where(one)}`);
  const ARIA = new Set("label labelledby describedby hidden live current controls expanded pressed atomic busy roledescription keyshortcuts valuetext valuenow valuemin valuemax".split(" "));
  for (const one of all("*")) {
    for (const { name } of one.attributes) {
      if (name.startsWith("aria-") && !ARIA.has(name.slice(5))) told("role", `${name} of ${where(one)}`);
      if (name.startsWith("on")) told("script", `${name} of ${where(one)}`);
    }
    if (one.tabIndex > 0) told("order", `tabindex ${one.tabIndex} of ${where(one)}`);
  }
  for (const one of all("[aria-hidden=true]")) {
    if (all("a[href], button, input, select, textarea, [tabindex='0']", one).some(shown)) told("role", `hidden, but takes the focus: ${where(one)}`);
  }

  // Tables and lists.
  for (const one of all("table").filter(heard)) {
    if (!one.caption?.textContent.trim() && !nameOf(one.closest("[aria-labelledby], [aria-label]") || document.createElement("i"))) told("table", `no caption: ${where(one)}`);
    if (!one.querySelector("th")) told("table", `no headers: ${where(one)}`);
  }
  for (const one of all("th")) if (!one.scope) told("table", `no scope: ${where(one)}`);
  for (const one of all("ul > *, ol > *")) if (!one.matches("li, script, template")) told("list", where(one));
  for (const one of all("li")) if (!one.parentElement.matches("ul, ol, menu")) told("list", where(one));
  for (const one of all("dl > *")) if (!one.matches("dt, dd, div, script")) told("list", where(one));

  // What scrolls can be scrolled by keys; nothing else needs to.
  for (const one of all("*").filter(heard)) {
    const style = getComputedStyle(one);
    const across = one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(style.overflowX);
    const down = one.scrollHeight > one.clientHeight + 1 && /auto|scroll/.test(style.overflowY);
    if ((across || down) && one !== document.documentElement && one !== document.body && one.tabIndex < 0 && !one.querySelector("a[href], button, [tabindex='0']")) told("scroll", where(one));
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = all("body *").filter((one) => shown(one) && one.getBoundingClientRect().right > innerWidth + 1 && !one.parentElement.closest("svg, .picture, .scroll, pre"));
    told("reflow", `${document.documentElement.scrollWidth} > ${innerWidth}: ${wide.slice(0, 3).map(where).join("; ")}`);
  }

  // Targets of at least 24 by 24, of 44 by 44 on a phone, but those within a sentence.
  const least = innerWidth <= 480 ? 44 : 24;
  for (const one of all("button, summary, select, input:not([type=hidden], [type=range]), a.button, nav a, .more a, .picture svg a:not(.stretches *)").filter(heard)) {
    const box = (one.matches("[type=checkbox], [type=radio]") && one.labels[0] ? one.labels[0] : one).getBoundingClientRect();
    const inside = getComputedStyle(one).display === "inline";
    if (!inside && (box.width < least - 0.1 || box.height < least - 0.1)) told("target", `${Math.round(box.width)} x ${Math.round(box.height)} ${where(one)}`);
  }

  // Contrast of every text against what is painted behind it.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const cache = new Map();
  const parse = (text) => {
    if (!cache.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = "#000";
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      cache.set(text, [r, g, b, a / 255]);
    }
    return cache.get(text);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const paper = () => {
    const own = parse(getComputedStyle(document.documentElement).backgroundColor);
    const page = dark && /dark/.test(getComputedStyle(document.documentElement).colorScheme) ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return over(own, page);
  };
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      const colour = parse(style.backgroundColor);
      if (colour[3] > 0 && !(at instanceof SVGElement && at.tagName !== "svg")) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), paper());
  };
  // The filled shapes of a drawing that lie under a text and were painted before it.
  const drawings = new Map();
  const painted = (drawing) => {
    if (!drawings.has(drawing)) {
      const filled = all("rect, path, circle, polygon", drawing).map((one) => {
        const paint = getComputedStyle(one);
        if (paint.fill === "none" || paint.fill.startsWith("url") || one.closest("defs, clipPath, pattern") || !shown(one)) return null;
        const [r, g, b, a] = parse(paint.fill);
        return { one, area: one.getBoundingClientRect(), fill: [r, g, b, a * Number(paint.fillOpacity) * Number(paint.opacity)] };
      });
      drawings.set(drawing, filled.filter(Boolean));
    }
    return drawings.get(drawing);
  };
  const fills = (text) => {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    return painted(text.ownerSVGElement).filter(({ one, area }) =>
      area.left <= x && x <= area.right && area.top <= y && y <= area.bottom &&
      one.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING).map(({ fill }) => fill);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (one, two) => {
    const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const opacity = (one) => {
    let left = 1;
    for (let at = one; at; at = at.parentElement) left *= Number(getComputedStyle(at).opacity);
    return left;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const one = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(one) || one.closest("script, style, title, desc, option, noscript, .unseen")) continue;
    seen.add(one);
    if (!shown(one) || one.closest("[aria-hidden=true]:not(svg *)") || one.matches(":disabled") ) continue;
    const box = one.getBoundingClientRect();
    if (box.right < 0 || box.bottom < 0) continue;
    const style = getComputedStyle(one);
    const inside = one instanceof SVGElement;
    let below = behind(one);
    if (inside) for (const fill of fills(one)) below = over(fill, below);
    const ink = [...parse(inside ? style.fill : style.color)];
    ink[3] *= opacity(one);
    const found = ratio(over(ink, below), below);
    const size = parseFloat(style.fontSize);
    if (!inside && size < 11) told("letters", `${size.toFixed(1)} pixels of ${where(one)}`); // of charts see test_charts.py
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (found < (large ? 3 : 4.5) - 0.005) told("contrast", `${found.toFixed(2)} of ${where(one)}`);
  }
  return faults;
})()
