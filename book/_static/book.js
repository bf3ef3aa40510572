// Two things that only the browser knows: which boxes scroll just now, and what a fold's button opens.
"use strict";

const SCROLL_BOXES = ".bd-content .cell_output .output, .bd-content .cell_output pre, .bd-content .cell_input pre, "
  + ".bd-content div.math";

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

window.addEventListener("load", () => {
  watchScrollBoxes();
  nameFolds();
});
