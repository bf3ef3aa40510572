// @ts-check
// "Tie them together": six small data sets in one model. The reader draws one, and turns how much they share.

import { MARKS } from "./moons.js";
import { CLASS_NAMES, startPad } from "./pad.js";
import {
  findPlace, fit, getColours, makeGrid, paintBoundary, paintCursor, paintMap, paintPoints, traceBoundary,
} from "./paint.js";
import { EXTENT, readPoints, scatterMoons, snap, writePoints } from "./points.js";
import { SETTINGS, SPOKEN, STRIP, listen, makeReport, sayPlace, writeHelp } from "./report.js";
import { sample } from "./sampler.js";
import { makeRun, paintOnFrames, put, watchTheme } from "./watch.js";

const ANGLES = [-50, -25, 5, 30, 55]; // degrees, of the five that lend
const EACH = 12; // points of a class
const MY_ANGLE = 40;
const N_GROUPS = ANGLES.length + 1;
const SIDE = 30, GRID = makeGrid(SIDE), PLACES = SIDE * SIDE;
const MINE = N_GROUPS - 1; // the reader's is the last
const SILENCE = 400; // ms between two lines of numbers: nobody reads faster, and words are dearer than pictures
const HIDDEN = [5, 5];
/** How the six are tied, as an address counts them; a number is how much a weight of two correlates. */
const TIES = /** @type {const} */ (["pooled", 0.9, 0.7, "learned", 0.4, 0.15, "none"]);
const LEARNED = TIES.indexOf("learned");
const AMOUNTS = TIES.flatMap((tie, k) => (tie === "learned" ? [] : [k])); // what the slider sets
const WIDEST = 3; // group sd, at the end of a bar
const LEARNS = "group sds, learned: how unlike the six are in each layer", SET = "group sds, set by the slider, not learned";
const GREEN = "#009E73"; // the hierarchical method's colour in the book

/** @typedef {import("./points.js").Point} Point */
/** @typedef {{points: Point[], tie: number, seed: number, longer: number}} Drawing */

// Six small data sets: moons that are turned by another angle in each, as the book's are. The last one is the reader's.

/** Turn a point around the centre. @param {Point} point @param {number} degrees */
function turn({ x, y, label }, degrees) {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return snap(c * x - s * y, s * x + c * y, label);
}

/** The points of the five, of which each has other points: list of lists. */
function drawOthers() {
  return ANGLES.map((angle, g) => scatterMoons(EACH, 40 * g).map((point) => turn(point, angle)));
}

/** What the reader finds: two points of each class, which say the angle and nothing of the bend. */
function drawMine() {
  return [[-0.5, 1.3, 0], [-1.1, 0.9, 0], [0.5, -1.3, 1], [1.1, -0.9, 1]].map(
    ([x, y, label]) => turn({ x, y, label: /** @type {0 | 1} */ (label) }, MY_ANGLE));
}

/** Each place of a disc in a grid of n by n, and where it is: x, y. @param {number} n */
function listDisc(n) {
  const at = (/** @type {number} */ k) => -EXTENT + (2 * EXTENT * k) / (n - 1), disc = [];
  for (let i = 0; i < n * n; i++) {
    const x = at(i % n), y = at(Math.floor(i / n));
    if (x * x + y * y <= EXTENT * EXTENT) disc.push({ i, x, y }); // corners would draw the hand to them
  }
  const far = disc.reduce((sum, { x, y }) => sum + Math.sqrt(x * x + y * y), 0);
  return { disc, most: far / Math.PI }; // what a straight, sure boundary gives
}
/** @type {Map<number, ReturnType<typeof listDisc>>} */
const discs = new Map();

/**
 * Which way a map's second class lies from the centre, in radians, and how clearly, 0 to 1: the hand of a dial.
 * @param {ArrayLike<number>} values of a square grid
 */
export function readHand(values) {
  const n = Math.round(Math.sqrt(values.length)), { disc, most } = discs.get(n) ?? listDisc(n);
  if (!discs.has(n)) discs.set(n, { disc, most });
  let right = 0, up = 0;
  for (const { i, x, y } of disc) {
    right += (values[i] - 0.5) * x;
    up += (values[i] - 0.5) * y;
  }
  return { angle: Math.atan2(up, right), length: Math.min(1, Math.sqrt(right * right + up * up) / most) };
}

/** How far each map is from the mean of all, in probability, over the grid: list. @param {ArrayLike<number>[]} maps */
export function measureDeviations(maps) {
  const n = maps[0].length, far = maps.map(() => 0);
  for (let i = 0; i < n; i++) {
    let mean = 0;
    for (const map of maps) mean += map[i] / maps.length;
    for (let g = 0; g < maps.length; g++) far[g] += Math.abs(maps[g][i] - mean) / n;
  }
  return far;
}

/** @param {typeof TIES[number]} ties */
function nameTies(ties) {
  if (ties === "pooled") return "one network for all";
  if (ties === "none") return "each alone";
  return ties === "learned" ? "learned from the data" : `weights of two correlate by ${ties}`;
}

/** @param {Drawing} drawing */
const writeHash = ({ points, tie, seed, longer }) => `tie=${seed}.${tie}.${longer}.${writePoints(points)}`;

/** @param {string} hash @returns {Drawing | null} */
function readHash(hash) {
  const found = /^#?tie=(\d{1,9})\.([0-6])\.([0-4])\.([\w-]*)$/.exec(hash);
  const points = found && readPoints(found[4]);
  return points && { points, tie: Number(found[2]), seed: Number(found[1]), longer: Number(found[3]) };
}

/** The parts of the box as HTML. @param {string} id */
function writeBox(id) {
  const button = (/** @type {string} */ action, /** @type {string} */ words) =>
    `<button type="button" data-do="${action}">${words}</button>`;
  const under = `<div class="tie-under"><canvas class="tie-dial" role="img" aria-label="Dial"></canvas>
    <span class="tie-own"><span class="tie-word">own way </span><b></b></span></div>`;
  const others = Array.from({ length: MINE }, (_, g) => `<div class="tie-one">
    <canvas data-group="${g}" role="img" aria-label="Category ${g + 1}"></canvas>${under}</div>`).join("");
  const bars = [1, 2, 3].map((k) => `<p><span>layer ${k}</span>
    <meter min="0" max="${WIDEST}" value="0" aria-label="group sd of layer ${k}"></meter>
    <output>0</output></p>`).join("");
  return `
<div class="live-row live-tools">
  <span class="live-segments" role="group" aria-label="Next point">
    ${CLASS_NAMES.map((name, k) => button(`class ${k}`, `${MARKS[k]}${name}`)).join("")}</span>
  ${button("few", "Reset")}${button("clear", "Clear")}
  ${writeHelp(id, ["dial", "group sd", "chain", "R-hat", "ESS"])}
</div>
<div class="live-stage tie-stage">
  <div class="live-main">
    <div class="live-pad"><p>yours: probability of an attack
      <span class="live-swatch" aria-hidden="true">0 <span class="live-ramp"></span> 1</span></p>
      <canvas data-group="${MINE}" tabindex="0" role="application" aria-roledescription="drawing pad"
        aria-label="Your points of two classes on a plane" aria-describedby="${id}-keys"></canvas>
      ${under}<p class="live-readout"><output></output></p></div>
    <div class="tie-slider"><label for="${id}-tie">how tied</label><output for="${id}-tie"></output>
      <input type="range" id="${id}-tie" min="0" max="${AMOUNTS.length - 1}" step="1">
      <span aria-hidden="true">one for all</span><span aria-hidden="true">each alone</span></div>
    ${button("learn", "Learn it from the data")}
    ${STRIP}
  </div>
  <div class="tie-views"><p class="tie-title">five others</p>
    <div class="tie-others">${others}<div class="tie-sds"><p></p>${bars}</div></div>
    <p class="tie-note"><em>Own way</em>: how far a map is from the mean of all six. A hand points to where attacks
      lie.</p>
  </div>
</div>
${SPOKEN}`;
}

/**
 * Paint a dial: the ring, a thin hand for each chain's latest network, a thick one for the mean.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array | null} mean
 * @param {Float32Array[]} latest
 */
function paintDial(canvas, mean, latest) {
  const { ctx, side, scale } = fit(canvas), middle = side / 2, r = Math.max(0, middle - 2 * scale);
  ctx.clearRect(0, 0, side, side);
  ctx.beginPath();
  ctx.arc(middle, middle, r, 0, 2 * Math.PI);
  ctx.fillStyle = getColours().paper;
  ctx.fill();
  ctx.lineWidth = 1.5 * scale;
  ctx.strokeStyle = GREEN;
  ctx.stroke();
  const thin = latest.map((map) => ({ ...readHand(map), wide: 1, colour: GREEN }));
  const thick = mean ? [{ ...readHand(mean), wide: 2.5, colour: getColours().ink }] : [];
  for (const { angle, length, wide, colour } of [...thin, ...thick]) {
    ctx.beginPath();
    ctx.moveTo(middle, middle);
    ctx.lineTo(middle + 0.9 * r * length * Math.cos(angle), middle - 0.9 * r * length * Math.sin(angle));
    ctx.lineWidth = wide * scale;
    ctx.strokeStyle = colour;
    ctx.stroke();
  }
}

/** Build a box into a figure. @param {HTMLElement} figure @param {HTMLElement} box */
export function build(figure, box) {
  const id = `live-${figure.id}`;
  box.innerHTML = writeBox(id);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Tie them together");
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  const list = (/** @type {string} */ selector) => /** @type {any[]} */ ([...box.querySelectorAll(selector)]);
  const canvases = Array.from({ length: N_GROUPS }, (_, g) => find(`[data-group="${g}"]`));
  const under = canvases.map((canvas) => canvas.parentElement.querySelector(".tie-under"));
  const report = makeReport(box), { say } = report;

  /** @type {Drawing} */
  const drawing = { points: drawMine(), tie: LEARNED, seed: 1, longer: 0, ...readHash(location.hash) };
  const groups = [...drawOthers(), drawing.points];
  /** @type {{maps: any, latest: Float32Array[], sds: Record<string, number>}} */
  const seen = { maps: null, latest: [], sds: {} };
  let chosen = /** @type {0 | 1} */ (1), told = -Infinity;
  const cut = (/** @type {Float32Array} */ values, /** @type {number} */ g) =>
    values.subarray(g * PLACES, (g + 1) * PLACES);

  const paintGroup = (/** @type {number} */ g) => {
    const canvas = canvases[g], map = seen.maps && cut(seen.maps.mean, g);
    paintMap(canvas, map, "probability");
    if (map) paintBoundary(canvas, traceBoundary(map));
    paintPoints(canvas, groups[g], g === MINE ? 5.5 : 2.4, pad.held);
    if (g === MINE && pad.cursor) paintCursor(canvas, pad.cursor);
  };
  const cutMaps = () => seen.maps && canvases.map((_, g) => cut(seen.maps.mean, g));
  const paintOne = (/** @type {number} */ g) => {
    const maps = cutMaps();
    paintGroup(g);
    paintDial(under[g].querySelector("canvas"), maps && maps[g], seen.latest.map((values) => cut(values, g)));
  };
  const look = paintOnFrames([() => paintGroup(MINE)]); // a hand moves more often than pictures come
  const paint = paintOnFrames([
    () => paintOne(MINE),
    () => canvases.forEach((_, g) => { if (g < MINE && g % 2) paintOne(g); }),
    () => canvases.forEach((_, g) => { if (g < MINE && !(g % 2)) paintOne(g); }),
    () => {
      const maps = cutMaps(), isLate = box.dataset.state !== "running" || performance.now() > told + SILENCE;
      if (maps && isLate) tell(measureDeviations(maps));
    },
  ]);

  /** Put the numbers beside the pictures. @param {number[]} deviations */
  function tell(deviations) {
    told = performance.now();
    deviations.forEach((far, g) => {
      put(under[g].querySelector(".tie-own b"), { textContent: `${Math.round(100 * far)}\u00a0%` });
    });
    list(".tie-sds meter").forEach((meter, k) => {
      const sd = seen.sds[`sd${k + 1}`] ?? 0;
      meter.value = sd;
      put(list(".tie-sds output")[k], { value: sd.toFixed(2) });
    });
    const isLearned = TIES[drawing.tie] === "learned";
    find(".tie-sds").classList.toggle("is-set", !isLearned);
    put(find(".tie-sds p"), { textContent: isLearned ? LEARNS : SET });
  }

  const readPlace = (/** @type {{ x: number, y: number }} */ place) => {
    const k = MINE * PLACES + findPlace(SIDE, place), { maps } = seen;
    return maps && { mean: maps.mean[k], noise: maps.noise[k], ignorance: maps.ignorance[k] };
  };
  const pad = startPad(canvases[MINE], {
    names: CLASS_NAMES, points: drawing.points, say, onLook: look, onChange: restart,
    onHover: (place) => { find(".live-readout output").value = place && seen.maps ? sayPlace(readPlace(place)) : ""; },
    chosen: () => chosen,
    choose: (label) => { chosen = label; refresh(); },
    describe: (place) => sayPlace(readPlace(place)),
  });

  const run = makeRun(box, (isCurrent) => {
    const settings = { ...SETTINGS, draws: SETTINGS.draws * 2 ** drawing.longer, seed: drawing.seed };
    report.begin();
    keep();
    return sample(describeJob(settings), {
      onProgress: (progress) => { if (isCurrent() && report.follow(progress, settings)) take(progress); },
      onDone: (done) => {
        if (!isCurrent()) return;
        take(done);
        report.judge(done);
        label();
      },
      onError: (_, worked) => { if (isCurrent()) report.fail(worked); },
    });
  });

  /** All points, all places of all six, and how they are tied. @param {import("./run.js").Job["settings"]} settings */
  function describeJob(settings) {
    const all = groups.flat(), places = new Float64Array(N_GROUPS * GRID.length);
    groups.forEach((_, g) => places.set(GRID, g * GRID.length));
    const model = {
      kind: /** @type {const} */ ("hierarchical"), X: Float64Array.from(all.flatMap(({ x, y }) => [x, y])),
      y: Uint8Array.from(all, ({ label }) => label),
      group: Int32Array.from(groups.flatMap((points, g) => points.map(() => g))),
      nGroups: N_GROUPS, hidden: HIDDEN, ties: TIES[drawing.tie],
    };
    const owners = Int32Array.from({ length: N_GROUPS * PLACES }, (_, i) => Math.floor(i / PLACES));
    return { model, settings, points: places, groups: owners };
  }

  /** Keep what came, and paint it. @param {import("./sampler.js").Progress} progress */
  function take({ mean, noise, ignorance, latest, described }) {
    Object.assign(seen, { maps: { mean, noise, ignorance }, latest, sds: described });
    paint();
  }

  /** Say of each map which way it lies. */
  function label() {
    canvases.forEach((canvas, g) => {
      const { angle, length } = readHand(cut(seen.maps.mean, g)), degrees = Math.round((angle * 180) / Math.PI);
      const words = length < 0.2 ? "no clear direction" : `attacks lie at ${(degrees + 360) % 360} degrees`;
      canvas.setAttribute("aria-label", `${g === MINE ? "Your points" : `Category ${g + 1}`}: ${words}`);
      under[g].querySelector("canvas").setAttribute("aria-label", `Dial: ${words}`);
    });
  }

  function restart() {
    drawing.longer = 0;
    begin();
  }

  function begin() {
    report.begin();
    refresh();
    look();
    run.restart();
  }

  /** Bring buttons and slider into line with what is drawn. */
  function refresh() {
    box.dataset.drawing = writeHash(drawing);
    list("[data-do^=class]").forEach((button, k) => put(button, { "aria-pressed": String(k === chosen) }));
    const words = nameTies(TIES[drawing.tie]);
    const isLearned = drawing.tie === LEARNED, input = find("input");
    put(find("[data-do=learn]"), { "aria-pressed": String(isLearned) });
    find(".tie-slider").classList.toggle("is-off", isLearned);
    put(input, isLearned ? { "aria-valuetext": words } : { value: String(AMOUNTS.indexOf(drawing.tie)), "aria-valuetext": words });
    put(find(".tie-slider output"), { value: words });
  }

  /** @type {Record<string, (argument: string) => void>} */
  const actions = {
    class: (k) => { chosen = k === "0" ? 0 : 1; },
    learn: () => {
      drawing.tie = drawing.tie === LEARNED ? AMOUNTS[Number(find("input").value)] : LEARNED;
      restart();
    },
    few: () => {
      drawing.points.splice(0, Infinity, ...drawMine());
      restart();
    },
    clear: () => {
      drawing.points.splice(0);
      restart();
    },
  };
  const keep = listen(box, { drawing, report, run, begin, refresh, writeHash, readHash, actions });
  find("input").addEventListener("input", (/** @type {any} */ event) => {
    drawing.tie = AMOUNTS[Number(event.target.value)];
    restart();
  });
  watchTheme(paint);
  new ResizeObserver(paint).observe(canvases[MINE]);
  begin();
}
