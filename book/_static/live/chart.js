// @ts-check
// What the networks say, as a chart: a row for each digit with a dot for each network, a scale for each doubt.
import { percent } from "./digits.js";
import { make, makeDrawing } from "./stored.js";

/** @typedef {import("./digits.js").Answer} Answer */

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
export function fillClasses(list) {
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
export function fillDoubts(list, marks, keys) {
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
