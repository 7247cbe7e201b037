// Texts of a page that its own box cuts off, or that lie outside of the page or of their card, as "how: where".
(() => {
  const faults = new Set();
  const all = [...document.body.querySelectorAll("*")];
  const words = (text) => text.trim().replace(/\s+/g, " ").slice(0, 40);
  const named = (one) => {
    const kind = typeof one.className === "string" && one.className ? `.${one.className.split(" ")[0]}` : "";
    return `${one.tagName.toLowerCase()}${kind}`;
  };
  const styles = new Map(all.map((one) => [one, getComputedStyle(one)]));
  // What is not drawn of a picture has no boxes, and is visible by its own style.
  const drawn = (one) => !(one instanceof SVGElement) || one.getClientRects().length;
  const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && drawn(one) && !one.closest(".unseen, .skip, script, title, desc, option");
  // An ellipsis says that there is more, and the title says what; only the name of a person in the head has one.
  const shortened = (one) => styles.get(one).textOverflow === "ellipsis" && one.title && one.closest(".tools");

  for (const one of all) {
    if (!shown(one) || !one.textContent.trim() || one.matches("input, select") || shortened(one)) continue;
    const style = styles.get(one);
    const [across, down] = [/hidden|clip/.test(style.overflowX), /hidden|clip/.test(style.overflowY)];
    if (one instanceof SVGElement) continue;
    if (across && one.scrollWidth > one.clientWidth + 1) faults.add(`cut off: ${named(one)} "${words(one.textContent)}"`);
    if (down && one.scrollHeight > one.clientHeight + 1) faults.add(`cut off below: ${named(one)} "${words(one.textContent)}"`);
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const holder = text.parentElement;
    if (!text.data.trim() || !shown(holder)) continue;
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    for (let at = holder; at; at = at.parentElement) {
      const style = styles.get(at);
      if (style && /auto|scroll/.test(style.overflowX) && at.scrollWidth > at.clientWidth + 1) break; // can be scrolled to
      if (style && shortened(at)) break;
      const edge = at === document.documentElement ? { left: 0, right: at.clientWidth } : at.getBoundingClientRect();
      const judged = at === document.documentElement || at.matches(".panel, .tile, .more, .fluid, svg:not(.fluid svg), .button, button, .badge, td, th, main, header, fieldset");
      if (judged && (box.left < edge.left - 1 || box.right > edge.right + 1)) {
        faults.add(`outside of ${named(at)}: ${named(holder)} "${words(text.data)}"`);
        break;
      }
      if (at.matches(".more")) at = document.body; // a menu lies over the cards, within the page
    }
  }
  return [...faults];
})()
