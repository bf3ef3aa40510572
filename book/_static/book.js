// What only the browser knows: which boxes scroll just now, what a fold's button opens, and which address it was given.
"use strict";

const SCROLL_BOXES = ".bd-content .cell_output .output, .bd-content .cell_output pre, .bd-content .cell_input pre, "
  + ".bd-content div.math, .bd-content .table-scroll";

/** Let the keyboard reach a box while it scrolls sideways, and pass it by while it does not. */
function updateTabStop(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

/** Watch the boxes: their width changes with the window, and when a solution unfolds. */
function watchScrollBoxes() {
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => updateTabStop(entry.target)));
  document.querySelectorAll(SCROLL_BOXES).forEach((box) => observer.observe(box));
}

/** Name each fold's button after the box it opens: "Toggle hidden content" is the same for all. */
function nameFolds() {
  document.querySelectorAll(".admonition-title > button.toggle-button").forEach((button) => {
    button.setAttribute("aria-label", button.parentElement.textContent.trim());
  });
}

/** Sliders over pictures. Their control is hidden in the page itself, where without this script it would do nothing. */
function startFrames() {
  document.querySelectorAll(".frames").forEach((box) => {
    const frames = JSON.parse(box.dataset.frames);
    const [picture, input, output] = ["img", "input", "output"].map((tag) => box.querySelector(tag));
    const preload = () => frames.forEach((frame) => { new Image().src = frame.file; });
    input.addEventListener("focus", preload, { once: true });
    input.addEventListener("pointerenter", preload, { once: true });
    input.addEventListener("input", () => {
      const frame = frames[input.value];
      Object.assign(picture, { src: frame.file, alt: frame.alt });
      output.value = frame.value;
      input.setAttribute("aria-valuetext", frame.value);
    });
    box.querySelector(".frames-control").hidden = false;
  });
}

/** An old address: a section that moved to another page kept its label. A page that lost some knows where (`moved`). */
function followMoved() {
  const id = location.hash.slice(1), moved = window.moved ?? {};
  if (Object.hasOwn(moved, id) && !document.getElementById(id)) location.replace(new URL(moved[id], location.href));
}

/** An address may lead into a fold, such as that of the claims: open it, and those around it. */
function openFolds() {
  const folds = ".toggle-hidden, details:not([open])", target = document.getElementById(location.hash.slice(1));
  let fold = target?.parentElement.closest(folds);
  if (!fold) return;
  for (; fold; fold = fold.parentElement.closest(folds)) {
    if (fold.matches("details")) fold.open = true;
    else fold.querySelector("button.toggle-button").click();
  }
  target.scrollIntoView();
}

window.addEventListener("hashchange", () => { followMoved(); openFolds(); });
document.addEventListener("DOMContentLoaded", followMoved);
window.addEventListener("load", () => {
  startFrames();
  watchScrollBoxes();
  nameFolds();
  openFolds();
});
