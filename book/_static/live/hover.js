// @ts-check
// Maps of the chapter `flat_advi` that answer: what the networks behind a map say at the point under the mouse, under a
// finger, or under a cross that the arrow keys move. A page without this script shows the pictures as they are.
import { askNetworks, unpackMethods } from "./plane.js";
import { fetchAbout, fetchDraws, make, makeDrawing, whenNear } from "./stored.js";

/** @typedef {{ box: number[], x: number[], y: number[], title: string, method: string }} Panel */

/** @type {Record<string, number[]>} */
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const STEP = 0.1, LEAP = 5;  // of the cross, in standard deviations; with Shift so many steps
const HINT = "Move over a map or touch it. By keyboard: arrow keys, and A, B, C for the crosses.";

/** A number that is not outside of two others. */
const keep = (/** @type {number} */ value, /** @type {number[]} */ [low, high]) => Math.min(Math.max(value, low), high);

// What networks say of a point: their probabilities as a strip from 0 to 1, and three numbers.

const BINS = 40, HIGH = 20;  // of the strip
const FEW = 20;  // draws or fewer are shown one by one
const STRETCHED = { viewBox: `0 0 100 ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" };

/** A number as a page writes it. */
const write = (/** @type {number} */ value) => value.toFixed(2).replace("-", "−");

/**
 * Make the row of a method: its name, the strip of its draws, the numbers.
 * @param {string} method
 * @param {number} draws
 * @param {string | undefined} color
 */
function makeRow(method, draws, color) {
  const bars = makeDrawing("path", { class: "bars" }), mean = makeDrawing("path", { class: "mean" });
  const strip = makeDrawing("svg", STRETCHED, bars, mean), words = make("span", { class: "hover-words" });
  const name = draws > FEW ? method : `the ${draws} maps`;
  const element = make("div", { class: "hover-row" }, make("span", { class: "hover-method" }, name),
    make("span", { class: "hover-strip" }, make("span", {}, "0"), strip, make("span", {}, "1")), words);
  if (color) element.style.setProperty("--method", color);
  return { method, name, element, bars, mean, words };
}

/**
 * Show an answer in its row.
 * @param {ReturnType<typeof makeRow>} row
 * @param {import("./plane.js").Answer} answer
 * @returns {string} the answer in words
 */
function showAnswer({ name, bars, mean, words }, answer) {
  bars.setAttribute("d", answer.p.length > FEW ? drawBars(answer.p) : drawEach(answer.p));
  mean.setAttribute("d", `M${100 * answer.mean} 0v${HIGH}`);
  const numbers = [["P(attack)", write(answer.mean)], ["noise", write(answer.noise)],
    ["ignorance", `${write(answer.ignorance)} bits`]];
  words.replaceChildren(...numbers.map(([key, value]) => make("span", {}, `${key} `, make("b", {}, value), " ")));
  return `${name}: ${numbers.map((pair) => pair.join(" ")).join(", ")}.`;
}

/** How many draws say what, the most of them as high as the strip, and a few high enough to be seen. */
function drawBars(/** @type {Float64Array} */ p) {
  const counts = new Array(BINS).fill(0), wide = 100 / BINS;
  p.forEach((value) => { counts[Math.min(Math.floor(value * BINS), BINS - 1)] += 1; });
  const most = Math.max(...counts), rise = (/** @type {number} */ n) => HIGH * (0.1 + (0.9 * n) / most);
  return counts.map((n, k) => (n ? `M${k * wide} ${HIGH}v${-rise(n)}h${wide}v${rise(n)}z` : "")).join("");
}

/** Each of a few draws as a bar of its own. */
function drawEach(/** @type {Float64Array} */ p) {
  return Array.from(p, (value) => `M${(99 * value).toFixed(2)} ${HIGH}v${-0.7 * HIGH}h1v${0.7 * HIGH}z`).join("");
}

/** One figure: its panels, the cross in each of them, and what is said below. */
class Figure {
  /** @param {any} about @param {Panel[]} panels @param {HTMLImageElement} picture */
  constructor(about, panels, picture) {
    this.about = about;
    this.panels = panels;
    this.picture = picture;
    /** @type {Record<string, import("./plane.js").Networks> | null} */ this.methods = null;
    /** @type {[number, number]} */ this.point = about.crosses.A;
    this.frame = /** @type {HTMLElement} */ (picture.closest(".growing"));
    this.layer = make("div", { class: "hover-layer" });
    this.panes = panels.map((panel) => this.openPane(panel));
    this.hearKeys(this.panes[0]);
    this.where = make("p", { class: "hover-where" }, HINT);
    this.status = make("p", { class: "visually-hidden", role: "status" });
    this.rows = [...new Set(panels.map((panel) => panel.method))].map((method) =>
      makeRow(method, about.methods[method].draws, about.colors[method]));
    this.count = about.methods[panels[0].method].draws.toLocaleString("en-GB");
    this.frame.append(this.layer);
    const rows = this.rows.map((row) => row.element);
    this.said = make("div", { class: "hover-said waits" }, this.where, ...rows, this.status);
    this.frame.after(this.said);
    this.follow();
  }

  /** A pane over one map, which takes the mouse and the finger. @param {Panel} panel */
  openPane({ box, x, y }) {
    const pane = make("div", { class: "hover-pane" });
    const [left, top, width, height] = box.map((share) => `${100 * share}%`);
    Object.assign(pane.style, { left, top, width, height });
    const look = (/** @type {PointerEvent} */ event) => {
      const seen = pane.getBoundingClientRect();
      const across = (event.clientX - seen.left) / seen.width, up = (seen.bottom - event.clientY) / seen.height;
      this.point = [keep(x[0] + across * (x[1] - x[0]), x), keep(y[0] + up * (y[1] - y[0]), y)];
      this.show(event.type === "pointerdown");
    };
    pane.addEventListener("pointermove", look);
    pane.addEventListener("pointerdown", look);
    pane.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") this.leave(); });
    this.layer.append(pane);
    return pane;
  }

  /** One pane of a figure is enough for the keyboard: its cross is in all of them. @param {HTMLElement} pane */
  hearKeys(pane) {
    const named = { tabindex: "0", role: "application", "aria-roledescription": "map", "aria-label": `Map. ${HINT}` };
    Object.entries(named).forEach(([key, value]) => pane.setAttribute(key, value));
    pane.addEventListener("focus", () => { if (pane.matches(":focus-visible")) this.show(true); });
    pane.addEventListener("blur", () => this.leave());
    pane.addEventListener("keydown", (event) => {
      const cross = this.about.crosses[event.key.toUpperCase()], move = KEYS[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || !(cross || move)) return;
      event.preventDefault();
      const { x, y } = this.panels[0], step = STEP * (event.shiftKey ? LEAP : 1);
      this.point = cross ?? [keep(this.point[0] + step * move[0], x), keep(this.point[1] + step * move[1], y)];
      this.show(true);
    });
  }

  /** Take the cross away, unless the keyboard still holds it. */
  leave() {
    if (document.activeElement !== this.panes[0]) this.layer.classList.remove("on");
  }

  /** From now on the maps answer. @param {Record<string, import("./plane.js").Networks>} methods */
  learn(methods) {
    this.methods = methods;
    if (this.layer.classList.contains("on")) this.show(true);
  }

  /** Show the cross in every panel, and what the networks say there. @param {boolean} aloud */
  show(aloud) {
    const [x, y] = this.point, { methods } = this;
    this.layer.classList.add("on");
    this.panels.forEach((panel, k) => {
      const across = (x - panel.x[0]) / (panel.x[1] - panel.x[0]), down = (panel.y[1] - y) / (panel.y[1] - panel.y[0]);
      this.panes[k].style.setProperty("--x", `${100 * across}%`);
      this.panes[k].style.setProperty("--y", `${100 * down}%`);
    });
    if (!methods) return;
    this.said.classList.remove("waits");
    const said = this.rows.map((row) => showAnswer(row, askNetworks(methods[row.method], x, y)));
    const place = `(${write(x)}, ${write(y)})${this.nameCross()}`;
    this.where.textContent = `At ${place}, ${this.count} networks say, from calm (0) to attack (1):`;
    if (aloud) this.status.textContent = `At ${place}, ${said.join(" ")}`;
  }

  /** The name of a cross that the point is on. */
  nameCross() {
    const near = (/** @type {number[]} */ [x, y]) => Math.hypot(x - this.point[0], y - this.point[1]) < STEP / 2;
    const found = Object.entries(this.about.crosses).find(([, cross]) => near(cross));
    return found ? `, the cross ${found[0]}` : "";
  }

  /** Keep the layer on the picture: its size changes with the page, its margin with the theme. */
  follow() {
    const place = () => {
      const [outer, box] = [this.frame, this.picture].map((part) => part.getBoundingClientRect());
      const { paddingLeft, paddingTop } = getComputedStyle(this.picture);
      const left = parseFloat(paddingLeft), top = parseFloat(paddingTop);
      Object.assign(this.layer.style, {
        left: `${box.left - outer.left + this.frame.scrollLeft + left}px`, top: `${box.top - outer.top + top}px`,
        width: `${box.width - 2 * left}px`, height: `${box.height - 2 * top}px`,
      });
    };
    const observer = new ResizeObserver(place);
    observer.observe(this.picture);
    observer.observe(this.frame);
    new MutationObserver(place).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }
}

async function start() {
  const about = await fetchAbout("flat_advi");
  /** @type {Promise<Record<string, import("./plane.js").Networks>> | undefined} */ let asked;
  for (const { figure, panels } of about.figures) {
    const picture = /** @type {HTMLImageElement | null} */ (document.querySelector(`#${figure} img`));
    if (!picture) continue;
    const answering = new Figure(about, panels, picture);
    whenNear(picture, async () => {
      asked ??= fetchDraws("flat_advi").then((buffer) => unpackMethods(about, buffer));
      answering.learn(await asked);
    });
  }
}

// book.js puts a frame around each picture when the page is loaded
if (document.readyState === "complete") start();
else addEventListener("load", start);
