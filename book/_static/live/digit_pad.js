// @ts-check
// The pad of the chapter `digits`: draw with the mouse, a finger or the keyboard, and its two hundred networks answer.
// It stands before the four drawings that a page without this script, a printed one and a notebook show.
import { fillClasses, fillDoubts } from "./chart.js";
import { ask, describe, unpackNetworks } from "./digits.js";
import { Drawing } from "./drawing.js";
import { showDrawing, showImage } from "./paper.js";
import { drawStrokes } from "./ink.js";
import { fetchAbout, fetchDraws, make, whenNear } from "./stored.js";

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
