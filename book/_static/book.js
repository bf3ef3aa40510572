// What only the browser knows: which boxes scroll just now, what a fold's button opens, which address it was given, and
// what a reader asks of it: all code, a larger picture.
"use strict";

const SCROLL_BOXES = ".bd-content .cell_output .output, .bd-content .table-scroll, .bd-content mjx-container[display]";

/** Let the keyboard reach a box while it scrolls sideways, by its name, and pass it by while it does not. */
function updateTabStop(box) {
  const scrolls = box.scrollWidth > box.clientWidth;
  const name = box.querySelector("caption")?.textContent ?? (box.matches("mjx-container") ? "Formula" : "Output");
  Object.entries({ tabindex: "0", role: "group", "aria-label": name }).forEach(([key, value]) => {
    if (scrolls) box.setAttribute(key, value);
    else box.removeAttribute(key);
  });
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

/** The switch for folded code, in the bar or on a phone in its menu: opens or closes all, here and on the next page. */
function startFoldsSwitch() {
  const folds = document.querySelectorAll("details.hide"), buttons = document.querySelectorAll(".folds-switch");
  if (!folds.length) return;
  const set = (open) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", open));
    folds.forEach((fold) => { fold.open = open; });
  };
  buttons.forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      set(open);
      localStorage.setItem("folds", open ? "open" : "closed");
    });
  });
  set(localStorage.getItem("folds") === "open");
}

/** Show in the list of pages the one that is open: the theme scrolls the list to where it was on the page before. */
function showCurrentPage() {
  const box = document.querySelector(".bd-sidebar-primary"), link = box?.querySelector(".current.active > a");
  if (!link) return;
  box.scrollTop = 0;
  const { bottom } = link.getBoundingClientRect();
  if (bottom > 0.9 * box.clientHeight) box.scrollTop = bottom - box.clientHeight / 2;
}

/** A click on a picture, or on the button beside it, shows it as large as the window, and larger where that is small. */
function letPicturesGrow() {
  const pictures = document.querySelectorAll(".bd-content :is(figure, .cell_output, .frames) img");
  if (!pictures.length) return;
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Enlarged picture");
  dialog.innerHTML = '<form method="dialog"><button class="btn" aria-label="Close">'
    + '<i class="fa-solid fa-xmark" aria-hidden="true"></i></button></form><div tabindex="0"></div>';
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  pictures.forEach((picture) => {
    const show = () => {
      const { alt, className, src } = picture;
      dialog.querySelector("div").replaceChildren(Object.assign(new Image(), { alt, className, src }));
      dialog.showModal();
    };
    const button = document.createElement("button");
    const name = picture.closest("figure")?.querySelector(".caption-number")?.textContent.trim() ?? "picture";
    button.className = "enlarge";
    button.setAttribute("aria-label", `Enlarge ${name}`);
    button.innerHTML = '<i class="fa-solid fa-expand" aria-hidden="true"></i>';
    button.addEventListener("click", show);
    picture.addEventListener("click", show);
    const frame = document.createElement("span");
    frame.className = "growing";
    (picture.closest("a.image-reference") ?? picture).replaceWith(frame);  // Sphinx's own link to the file
    frame.append(picture, button);
    if (picture.closest("figure.halves")) {  // a phone shows the left half above the right one: book.css
      const right = Object.assign(new Image(), { alt: "", className: "right", src: picture.src });
      right.addEventListener("click", show);
      frame.append(right);
    }
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

/** Load what the search needs, once. */
let search;
function loadSearch() {
  const load = (address) => new Promise((done) => {
    const isStyle = address.split("?")[0].endsWith(".css"), part = document.createElement(isStyle ? "link" : "script");
    part.addEventListener("load", done);
    Object.assign(part, isStyle ? { rel: "stylesheet", href: address } : { src: address });
    document.head.append(part);
  });
  search ??= Promise.all(document.querySelector("pagefind-config").dataset.needs.split(" ").map(load));
  return search;
}

/** Open the search: by its buttons, and by Ctrl+K. */
function startSearch() {
  const open = async (event) => {
    event.preventDefault();
    await loadSearch();
    document.querySelector("pagefind-modal").open();
  };
  document.querySelectorAll(".search-opens").forEach((button) => button.addEventListener("click", open));
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") open(event);
  });
}

/** Browsers do not let a page that was opened as a file load the index of the search, or the live boxes. */
function excuseSearch() {
  if (location.protocol !== "file:") return;
  document.querySelectorAll("pagefind-summary, pagefind-results").forEach((part) => part.remove());
  document.querySelectorAll(".brand .search-opens, article .search-opens, pagefind-input").forEach((part) => {
    part.replaceWith("Opened as a file: no search, no live boxes. In the folder of the site: python3 -m http.server (Windows: py -m http.server), then http://localhost:8000.");
  });
}

/** Paper is white: print in light colours, whatever is on the screen. */
function printInLight() {
  const page = document.documentElement;
  let shown;
  window.addEventListener("beforeprint", () => { shown = page.dataset.theme; page.dataset.theme = "light"; });
  window.addEventListener("afterprint", () => { page.dataset.theme = shown; });
}

/** An exam is printed without its answers, and with them where its address says so (print.css). */
const asked = new URLSearchParams(location.search);
if (asked.has("answers")) document.documentElement.classList.add("with-answers");

/** An address that ends with ?take=1,5,7 makes a paper of these questions of an exam, numbered from 1 (book.css). */
function takeQuestions() {
  const taken = asked.get("take")?.split(",");
  if (!taken) return;
  document.documentElement.classList.add("with-paper");
  document.querySelector(".bd-article h1").firstChild.data = "Exam";
  let count = 0;
  document.querySelectorAll("[id^=exam-]").forEach((place) => {
    const section = place.closest("section");
    section.hidden = !taken.includes(place.id.slice(5));
    const title = section.querySelector("h2").firstChild;
    if (!section.hidden) title.data = title.data.replace(/^\d+/, String(++count));
  });
}

window.addEventListener("hashchange", openFolds);
document.addEventListener("DOMContentLoaded", startFoldsSwitch);
document.addEventListener("DOMContentLoaded", startSearch);
window.addEventListener("load", () => {
  showCurrentPage();
  startFrames();
  letPicturesGrow();
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(watchScrollBoxes);  // formulas are boxes once they are set
  nameFolds();
  openFolds();
  takeQuestions();
  excuseSearch();
  printInLight();
});
