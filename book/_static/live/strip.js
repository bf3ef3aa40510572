// @ts-check
// What networks say of a point: their probabilities as a strip from 0 to 1, and three numbers.
import { make, makeDrawing } from "./stored.js";

/** @typedef {import("./plane.js").Answer} Answer */

const BINS = 40, HIGH = 20;  // of the strip
const FEW = 20;  // draws or fewer are shown one by one
const STRETCHED = { viewBox: `0 0 100 ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" };

/** A number as a page writes it. */
export const write = (/** @type {number} */ value) => value.toFixed(2).replace("-", "−");

/**
 * Make the row of a method: its name, the strip of its draws, the numbers.
 * @param {string} method
 * @param {number} draws
 * @param {string | undefined} color
 */
export function makeRow(method, draws, color) {
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
 * @param {Answer} answer
 * @returns {string} the answer in words
 */
export function showAnswer({ name, bars, mean, words }, answer) {
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
