// @ts-check
// The pad of the chapter `digits`: draw with the mouse, a finger or the keyboard, and its two hundred networks answer.
// It stands before the four drawings that a page without this script, a printed one and a notebook show.
import { ask, describe, percent, unpackNetworks } from "./digits.js";
import { Drawing, PEN, drawStrokes } from "./ink.js";
import { fetchAbout, fetchDraws, make, makeDrawing, whenNear } from "./stored.js";

/** @typedef {import("./digits.js").Answer} Answer */

const PLACE = "fig-digits-drawn";  // the figure that the pad stands before
/** @type {Record<string, number[]>} */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HOW = "Arrow keys move the pen, Space puts it down and lifts it, Backspace takes back a line, Delete clears.";
const FRAME = `
<div class="pad-draw">
<canvas class="pad-paper" tabindex="0" role="application" aria-roledescription="drawing pad" aria-label="Pad. ${HOW}">
</canvas>
<p class="pad-buttons"><button type="button" class="btn pad-undo">Undo</button>
<button type="button" class="btn pad-clear">Clear</button>
<span class="pad-seen"><canvas aria-hidden="true"></canvas> <span>what the networks see</span></span></p></div>
<div class="pad-examples" role="group" aria-label="Examples"></div>
<div class="pad-said"><p class="pad-answer"></p><p class="pad-why"></p>
<ol class="pad-classes" start="0" aria-label="Probability of each digit"></ol>
<p class="pad-note">Each dot is what one of the <span class="pad-count"></span> networks says; the bar ends at their
mean.</p>
<ul class="pad-doubts pad-decides" aria-label="Ignorance in bits"></ul>
<details class="pad-fold"><summary>Noise, and both together</summary>
<ul class="pad-doubts" aria-label="Doubt in bits"></ul>
<p class="pad-note">Of the digits that the limit comes from, one in twenty lies above each mark. Ignorance decides.</p>
</details></div>
<p class="pad-note">Draw with the mouse or a finger. By keyboard, arrow keys move the pen, Space puts it down and lifts
it. <strong>What you draw stays in this browser; nothing is sent.</strong></p>
<p class="visually-hidden" role="status"></p>`;

// What the networks say, as a chart: a row for each digit with a dot for each network, a scale for each doubt.

const MOST = Math.log2(10);  // bits of ten answers that are all as likely
const GOLDEN = 0.618034;  // multiples of it fill a row evenly
/** What a doubt is called, and its mark. @typedef {"total" | "noise" | "ignorance"} Doubt */
/** @type {Record<Doubt, string[]>} */
const DOUBTS = { total: ["both together", "mark"], noise: ["noise", "mark"], ignorance: ["ignorance", "limit"] };
const STRETCHED = { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };

/**
 * Fill a list with a row for each digit.
 * @param {Element} list
 * @returns {((answer: Answer | null) => void)[]} how each row is shown
 */
function fillClasses(list) {
  return Array.from({ length: 10 }, (_, k) => {
    const dots = makeDrawing("path", { class: "dots" }), mean = makeDrawing("path", { class: "mean" });
    const percents = make("span", { class: "percents" });
    const row = make("li", {}, make("span", { class: "digit" }, String(k)),
      makeDrawing("svg", STRETCHED, mean, dots), percents);
    list.append(row);
    return (answer) => {
      dots.setAttribute("d", answer ? placeDots(answer.p, k) : "");
      mean.setAttribute("d", answer ? `M0 0H${across(answer.mean[k])}v10H0z` : "");
      percents.textContent = answer ? percent(answer.mean[k]) : "";
      row.classList.toggle("best", answer?.best === k);
    };
  });
}

/** Where a probability is in a row 100 wide, with room for half a dot at both ends. */
const across = (/** @type {number} */ p) => (1.5 + 97 * p).toFixed(1);

/** What each network says of class k, each at a height of its own. @param {Float64Array} p @param {number} k */
function placeDots(p, k) {
  const height = (/** @type {number} */ draw) => (1 + 8 * ((draw * GOLDEN) % 1)).toFixed(1);
  return Array.from({ length: p.length / 10 }, (_, draw) => `M${across(p[10 * draw + k])} ${height(draw)}h0`).join("");
}

/**
 * Fill a list with a scale for each of some doubts.
 * @param {Element} list
 * @param {any} marks  bits, by doubt
 * @param {Doubt[]} keys
 * @returns {((answer: Answer | null) => void)[]} how each scale is shown
 */
function fillDoubts(list, marks, keys) {
  return keys.map((key) => {
    const [name, end] = DOUBTS[key];
    const track = make("span", { class: "track", "aria-hidden": "true" }), number = make("b");
    const words = make("span", { class: "bits" }, number, ` bits, ${end} ${marks[key].toFixed(2)}`);
    track.style.setProperty("--mark", `${(100 * marks[key]) / MOST}%`);
    list.append(make("li", { class: key }, make("span", {}, name), track, words));
    return (answer) => {
      const bits = answer ? answer[key] : 0;
      track.style.setProperty("--bits", `${(100 * bits) / MOST}%`);
      track.classList.toggle("above", bits > marks[key]);
      number.textContent = bits.toFixed(2);
    };
  });
}

// Paper on the screen: the strokes of a pen with the keyboard's cursor, and small images.

const INK = "#111", CURSOR = "#c2410c", HAIR = 1e-3;  // neighbouring pixels overlap by a hair, or lines would show

/**
 * Show a drawing, and where the keyboard's pen is while that is what draws.
 * @param {HTMLCanvasElement} canvas
 * @param {Drawing} drawing
 * @param {number} side  pixels of an example a side
 */
function showDrawing(canvas, drawing, side) {
  const context = prepare(canvas);
  if (drawing.image) showPixels(context, drawing.image, side);
  Object.assign(context, { strokeStyle: INK, lineWidth: PEN, lineCap: "round", lineJoin: "round" });
  for (const stroke of drawing.strokes) {
    const [x, y] = stroke[stroke.length - 1];
    context.beginPath();
    stroke.forEach((point) => context.lineTo(...point));
    context.lineTo(x + HAIR, y);  // a dot is a short line
    context.stroke();
  }
  if (canvas.matches(":focus-visible")) showCursor(context, drawing);
}

/** Paper with the pixels of the screen, and a context that measures in its width. @param {HTMLCanvasElement} canvas */
function prepare(canvas) {
  const size = Math.max(Math.round(canvas.clientWidth * devicePixelRatio), 1);
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(size, 0, 0, size, 0, 0);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, 1, 1);
  return context;
}

/** A ring, filled while the pen is down. @param {CanvasRenderingContext2D} context @param {Drawing} drawing */
function showCursor(context, { cursor: [x, y], down }) {
  Object.assign(context, { strokeStyle: CURSOR, fillStyle: CURSOR, lineWidth: PEN / 6 });
  context.beginPath();
  context.arc(x, y, PEN / 2, 0, 2 * Math.PI);
  if (down) context.fill();
  else context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {ArrayLike<number>} image @param {number} side */
function showPixels(context, image, side) {
  for (let k = 0; k < image.length; k++) {
    const [left, top, size] = [(k % side) / side, Math.floor(k / side) / side, 1 / side + HAIR];
    const grey = Math.round(255 * (1 - image[k]));
    context.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
    context.fillRect(left, top, size, size);
  }
}

/**
 * Show an image, each pixel of it as one of the canvas: the style sheet makes it large.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} image  ink from 0 to 1; what is missing is paper
 * @param {number} side
 */
function showImage(canvas, image, side) {
  canvas.width = canvas.height = side;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = context.createImageData(side, side);
  for (let k = 0; k < side * side; k++) {
    const grey = 255 * (1 - (image[k] ?? 0));
    pixels.data.set([grey, grey, grey, 255], 4 * k);
  }
  context.putImageData(pixels, 0, 0);
}

/** The pad on its page: what is drawn, what is asked, what is said. */
class Pad {
  /** @param {any} about @param {Element} box */
  constructor(about, box) {
    this.about = about;
    this.drawing = new Drawing();
    /** @type {import("./digits.js").Networks | null} */ this.networks = null;
    this.waits = false;
    this.find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
    this.paper = this.find(".pad-paper");
    this.find(".pad-count").textContent = about.draws;
    this.charts = [
      ...fillClasses(this.find(".pad-classes")),
      ...fillDoubts(this.find(".pad-decides"), about.marks, ["ignorance"]),
      ...fillDoubts(this.find(".pad-fold ul"), about.marks, ["noise", "total"]),
    ];
    this.hearPointer();
    this.hearKeys();
    this.offerExamples();
    new ResizeObserver(() => this.update()).observe(this.paper);
  }

  hearPointer() {
    const { drawing, paper } = this;
    const place = (/** @type {PointerEvent} */ event) => {
      const { left, top, width, height } = paper.getBoundingClientRect();
      return /** @type {[number, number]} */ ([(event.clientX - left) / width, (event.clientY - top) / height]);
    };
    paper.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button || !event.isPrimary) return;
      paper.setPointerCapture(event.pointerId);
      drawing.press(place(event));
      this.update();
    });
    paper.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!event.isPrimary || !paper.hasPointerCapture(event.pointerId)) return;
      const passed = event.getCoalescedEvents?.() ?? [];  // a fast pen is seen less often than it was measured
      (passed.length ? passed : [event]).forEach((one) => drawing.move(place(one)));
      this.update();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      paper.addEventListener(end, () => { if (drawing.down) this.lift(); });
    }
    this.find(".pad-undo").addEventListener("click", () => this.undo());
    this.find(".pad-clear").addEventListener("click", () => this.clear());
  }

  hearKeys() {
    /** @type {Record<string, () => void>} */
    const keys = { " ": () => this.toggle(), Backspace: () => this.undo(), Delete: () => this.clear() };
    this.paper.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const act = event.key in MOVES ? () => this.step(MOVES[event.key]) : keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    for (const turn of ["focus", "blur"]) this.paper.addEventListener(turn, () => this.update());
  }

  /** @param {number[]} by */
  step(by) {
    const { drawing } = this;
    drawing.step(by);
    this.say(`Row ${drawing.row + 1}, column ${drawing.column + 1}${drawing.down ? ", pen down" : ""}`);
    this.update();
  }

  /** Put the keyboard's pen down, or lift it. */
  toggle() {
    if (this.drawing.down) return this.lift();
    this.drawing.press(this.drawing.cursor);
    this.say("Pen down");
    this.update();
  }

  lift() {
    this.drawing.down = false;
    this.answerAloud();
  }

  undo() {
    this.drawing.undo();
    this.answerAloud();
  }

  clear() {
    this.drawing.clear();
    this.answerAloud();
  }

  offerExamples() {
    const { examples, side } = this.about;
    for (const example of examples) {
      const picture = /** @type {HTMLCanvasElement} */ (make("canvas", { "aria-hidden": "true" }));
      showImage(picture, example.image ?? drawStrokes(example.strokes, side), side);
      const button = make("button", { type: "button", class: "btn" }, picture, make("span", {}, example.name));
      button.addEventListener("click", () => {
        this.drawing.show(example);
        this.answerAloud();
      });
      this.find(".pad-examples").append(button);
    }
  }

  /** From now on the pad answers. @param {import("./digits.js").Networks} networks */
  learn(networks) {
    this.networks = networks;
    this.update();
  }

  /** @param {string} words */
  say(words) {
    this.find("[role=status]").textContent = words;
  }

  answerAloud() {
    const said = this.show();
    this.say(said ? `${said.short}, ${said.why}` : "The pad is empty.");
  }

  /** Show what is drawn and what is said of it, once before the next frame however fast a pen moves. */
  update() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.show();
    });
  }

  /** Show all as it is now; returns the answer in words, or null. */
  show() {
    const { side, limit } = this.about, seen = this.drawing.see(side);
    const answer = this.networks && seen ? ask(this.networks, seen, limit) : null;
    const said = answer && describe(answer, limit, this.drawing.isStranger);
    showDrawing(this.paper, this.drawing, side);
    showImage(this.find(".pad-seen canvas"), seen ?? [], side);
    this.find(".pad-answer").textContent = said?.short ?? "?";
    this.find(".pad-why").textContent = said?.why ?? this.explainSilence();
    this.find(".pad-said").classList.toggle("refuses", answer?.knows === false);
    this.charts.forEach((showPart) => showPart(answer));
    return said;
  }

  explainSilence() {
    return this.networks ? "Try a seven with a bar, a letter, nothing but a dot." : "The networks are on their way.";
  }
}

async function start() {
  const place = document.getElementById(PLACE)?.closest(".cell");
  if (!place) return;
  const about = await fetchAbout("digits");
  const box = make("div", { class: "pad", role: "group", "aria-label": "A pad to draw on" });
  box.innerHTML = FRAME;
  place.before(box);
  const pad = new Pad(about, box);
  whenNear(box, async () => pad.learn(unpackNetworks(about, await fetchDraws("digits"))));
}

start();
