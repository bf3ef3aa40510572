// @ts-check
// "Which layer is their own?": six of eighteen patients as two chains know them. Layers are frozen, and turned.

import { makeFlat } from "./network.js";
import { makeGrid, paintBoundary, paintMap, paintPoints, traceBoundary } from "./paint.js";
import { fetchAbout, fetchDraws, unpackWhole } from "./stored.js";
import { paintOnFrames, play, put, watchTheme } from "./watch.js";

const SIDE = 24, GRID = makeGrid(SIDE);
const GLIDE = 10, RATE = 20; // pictures while a layer freezes, and how many a second
const KEYS = { ArrowLeft: -10, ArrowDown: -10, ArrowRight: 10, ArrowUp: 10, PageDown: -45, PageUp: 45 }; // degrees
const PARTS = { hidden: "hidden layers", readout: "read-out" };

/** @typedef {keyof typeof PARTS} Part @typedef {Record<Part, number>} Shares of what is each patient's own, 0 to 1 */
/** @typedef {{ mu: Float64Array, own: Float64Array[], slope: Float64Array[], differs: Part }} Draw own: by patient;
 *   slope: of the read-outs of all eighteen, on the cosine and the sine of their angles */
/** @typedef {ReturnType<typeof unpack>} Patients @typedef {import("./points.js").Point} Point */

/** What the book's program stored of two chains. @param {any} about @param {ArrayBuffer} buffer */
export function unpack(about, buffer) {
  const [a, b] = about.hidden, first = 2 * a, readout = first + a * b, size = readout + b, n = about.angles.length;
  let at = 0;
  const take = (/** @type {number} */ count) => unpackWhole(buffer, (at += count) - count, count, about.step);
  const chains = about.chains.map((/** @type {{ differs: Part }} */ { differs }) =>
    Array.from({ length: about.draws }, () => ({
      mu: take(size), own: Array.from({ length: n }, () => take(size)), slope: [take(b), take(b)], differs,
    })));
  const moments = about.moments.map((/** @type {number[]} */ flat) => {
    const third = (/** @type {number} */ k) => flat.filter((_, i) => i % 3 === k);
    const [x, y, label] = [third(0), third(1), third(2)];
    return x.map((_, i) => ({ x: x[i] / 100, y: y[i] / 100, label: /** @type {0 | 1} */ (label[i]) }));
  });
  const network = makeFlat({ X: new Float64Array(0), y: [], hidden: about.hidden });
  return {
    chains: /** @type {Draw[][]} */ (chains), moments: /** @type {Point[][]} */ (moments), network, first, readout,
    angles: about.angles,
  };
}

/**
 * A patient's weights in a draw: what is shared, a share of what is their own, and that turned.
 * @param {Patients} patients @param {Draw} draw @param {number} g
 * @param {Shares} shares @param {number} turn degrees
 */
export function writeWeights({ first, readout, angles }, { mu, own, slope, differs }, g, shares, turn) {
  const w = own[g].slice(), radians = (/** @type {number} */ degrees) => (degrees * Math.PI) / 180;
  if (turn && differs === "readout") {
    const [from, to] = [radians(angles[g]), radians(angles[g] + turn)];
    slope[0].forEach((cosine, k) => {
      w[readout + k] += cosine * (Math.cos(to) - Math.cos(from)) + slope[1][k] * (Math.sin(to) - Math.sin(from));
    });
  } else if (turn) {
    const [c, s] = [Math.cos(radians(turn)), Math.sin(radians(turn))], units = first / 2;
    for (let j = 0; j < units; j++) {
      const [right, up] = [w[j], w[units + j]];
      w[j] = c * right + s * up;
      w[units + j] = c * up - s * right;
    }
  }
  return w.map((value, i) => {
    const share = i < readout ? shares.hidden : shares.readout;
    return share === 1 ? value : mu[i] + share * (value - mu[i]);
  });
}

/** The mean of what the draws say of places. @param {Patients} patients @param {Draw[]} draws @param {number} g
 * @param {Shares} shares @param {number} turn @param {Float64Array} places */
export function predict(patients, draws, g, shares, turn, places) {
  const sum = new Float64Array(places.length / 2), p = new Float64Array(sum.length);
  for (const draw of draws) {
    patients.network.predict(writeWeights(patients, draw, g, shares, turn), places, p);
    p.forEach((value, i) => { sum[i] += value / draws.length; });
  }
  return sum;
}

/** Moments that are called right, of a hundred, by patient. @param {Patients} patients @param {Draw[]} draws
 * @param {Shares} shares @param {number[]} turns */
export const score = (patients, draws, shares, turns) => turns.map((turn, g) => {
  const moments = patients.moments[g], places = Float64Array.from(moments.flatMap(({ x, y }) => [x, y]));
  const p = predict(patients, draws, g, shares, turn, places);
  return (100 * moments.filter(({ label }, i) => (p[i] > 0.5) === (label === 1)).length) / moments.length;
});

/** @param {number[]} values */
const average = (values) => Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);

/** The parts of the box as HTML. @param {number} n patients */
function writeBox(n) {
  const layer = (/** @type {Part} */ key) => `<button type="button" data-freeze="${key}">${PARTS[key]}</button>`;
  const maps = Array.from({ length: n }, (_, g) => `<div class="live-view"><p>patient ${g + 1} <output></output></p>
    <canvas tabindex="0" role="slider" aria-valuemin="-180" aria-valuemax="180" aria-valuenow="0"
      aria-label="Patient ${g + 1}, turned by"></canvas></div>`).join("");
  return `
<p class="live-ask"><b>Which layer is their own?</b> Freeze one, so that all six share it, and ask the other chain, too. Or drag a map sideways.</p>
<div class="live-row live-tools">
  <span class="live-row">freeze ${layer("hidden")} → ${layer("readout")}</span>
  <span class="live-row">same data, two chains: <span class="live-segments" role="group" aria-label="Chain">
    <button type="button" data-chain="0">chain 1</button><button type="button" data-chain="1">chain 2</button>
  </span></span>
</div>
<div class="live-stage layers-stage">${maps}</div>
<p class="layers-said" role="status"></p>`;
}

/** Build a box into a figure. @param {HTMLElement} _ @param {HTMLElement} box */
export async function build(_, box) {
  const [about, buffer] = await Promise.all([fetchAbout("camps"), fetchDraws("camps")]);
  const patients = unpack(about, buffer), { moments, chains } = patients;
  box.innerHTML = writeBox(moments.length);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Which layer is their own?");
  const list = (/** @type {string} */ selector) => /** @type {any[]} */ ([...box.querySelectorAll(selector)]);
  const canvases = /** @type {HTMLCanvasElement[]} */ (list("canvas")), said = list(".layers-said")[0];
  const turns = moments.map(() => 0), frozen = /** @type {Record<Part, boolean>} */ ({ hidden: false, readout: false });
  /** @type {Shares} */
  let shares = { hidden: 1, readout: 1 };
  let draws = chains[0];
  /** @type {import("./watch.js").Handle | null} */ let glide = null;

  const painters = canvases.map((canvas, g) => () => {
    const map = Float32Array.from(predict(patients, draws, g, shares, turns[g], GRID));
    paintMap(canvas, map, "probability");
    paintBoundary(canvas, traceBoundary(map));
    paintPoints(canvas, moments[g], 2.2);
  });
  const paint = paintOnFrames(painters), paintEach = painters.map((painter) => paintOnFrames([painter]));

  /** Bring words and buttons into line with what is shown. @param {string} [words] what was done */
  function tell(words) {
    const right = score(patients, draws, shares, turns), now = average(right);
    const whole = average(score(patients, draws, { hidden: 1, readout: 1 }, turns.map(() => 0)));
    list("output").forEach((output, g) => put(output, { value: `${Math.round(right[g])} % right` }));
    list("[aria-label=Chain] button, [data-freeze]").forEach((button) => {
      const { freeze, chain } = button.dataset, part = /** @type {Part} */ (freeze);
      put(button, { "aria-pressed": String(freeze ? frozen[part] : chains[chain] === draws) });
    });
    canvases.forEach((canvas, g) => {
      const words = `${turns[g]} degrees, ${Math.round(right[g])} % right`;
      put(canvas, { "aria-valuenow": String(turns[g]), "aria-valuetext": words });
    });
    const own = words ? ` (${whole} % where nothing is shared)` : "";
    put(said, { textContent: `${words ?? "Blue is calm, orange an attack; points are new moments."} The six are right in ${now} %${own}.` });
  }

  /** What all six share, in words. */
  const nameShared = () => /** @type {Part[]} */ (Object.keys(PARTS)).filter((part) => frozen[part])
    .map((part) => PARTS[part]).join(" and ");

  /** Let shares glide to what is frozen now. @param {string} words */
  function follow(words) {
    const from = shares, to = { hidden: frozen.hidden ? 0 : 1, readout: frozen.readout ? 0 : 1 };
    glide?.stop();
    glide = play(GLIDE, RATE, (taken) => {
      const part = taken / GLIDE, mix = (/** @type {Part} */ key) => (1 - part) * from[key] + part * to[key];
      shares = part === 1 ? to : { hidden: mix("hidden"), readout: mix("readout") };
      paint();
      if (part === 1) tell(words || undefined);
    });
  }

  /** Turn what is a patient's own. @param {number} g @param {number} degrees */
  function turn(g, degrees) {
    const { differs } = draws[0];
    turns[g] = Math.round(Math.min(180, Math.max(-180, degrees)));
    paintEach[g]();
    tell(frozen[differs] ? `Nothing is left of patient ${g + 1} to turn: what was their own is frozen.`
      : `Patient ${g + 1}: ${PARTS[differs]} turned by ${turns[g]}°.`.replace(" -", " −"));
  }

  canvases.forEach((canvas, g) => {
    let start = 0, began = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      [start, began] = [event.clientX, turns[g]];
    });
    canvas.addEventListener("pointermove", (event) => {
      const moved = (360 * (event.clientX - start)) / canvas.clientWidth;
      if (canvas.hasPointerCapture(event.pointerId)) turn(g, began + moved);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = KEYS[/** @type {keyof typeof KEYS} */ (event.key)];
      if (!step && event.key !== "Home") return;
      event.preventDefault();
      turn(g, step ? turns[g] + step : 0);
    });
  });
  box.addEventListener("click", ({ target }) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("button"));
    const part = /** @type {Part | undefined} */ (button?.dataset.freeze);
    if (part) {
      frozen[part] = !frozen[part];
      const { differs } = draws[0], only = frozen.hidden !== frozen.readout && frozen[differs];
      const found = part === differs ? "six patients, one map" : "little changes, as they nearly agreed in them";
      const ask = only ? ` Does chain ${draws === chains[0] ? 2 : 1} say so, too?` : "";
      const left = nameShared();
      follow(frozen[part] ? `All share the ${PARTS[part]} now: ${found}.${ask}` : left && `Still shared: the ${left}.`);
    } else if (button) {
      const k = Number(button.dataset.chain), was = average(score(patients, draws, shares, turns));
      const shared = chains[k] === draws ? "" : nameShared();
      const other = shared && ` with the ${shared} shared, where chain ${2 - k} had ${was} %`;
      draws = chains[k];
      turns.fill(0);
      paint();
      tell(`Chain ${k + 1}, the same data${other}.`);
    }
  });
  watchTheme(paint);
  new ResizeObserver(paint).observe(canvases[0]);
  tell();
  box.dataset.state = "done";
}
