// @ts-check
// Handouts: the address at which this copy of the pages is served, in print and as a code for phones.

import { generate } from "./lean-qr.js";

const root = new URL("..", import.meta.url).href.slice(0, -1);
const isAlone = /^file:|\/\/(localhost|127\.)/.test(root); // no phone gets there
const canonical = /** @type {HTMLLinkElement | null} */ (document.querySelector("link[rel=canonical]"));
const built = canonical?.href.replace(/\/book\/teach\/handouts.*/, "") ?? root;

for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("article a"))) {
  if (!link.href.startsWith(built)) continue;
  const path = link.href.slice(built.length), isPrinted = link.textContent?.startsWith("http");
  link.href = root + path;
  if (isPrinted) link.textContent = (isAlone ? "…" : root) + path;
}
for (const place of document.querySelectorAll(".qr")) {
  const link = /** @type {HTMLAnchorElement} */ (place.querySelector("a"));
  if (isAlone) place.append(" at the address on the board: ______________________");
  else {
    const canvas = place.insertBefore(document.createElement("canvas"), link);
    generate(link.href).toCanvas(canvas);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `A code with the address ${link.href}`);
  }
}
