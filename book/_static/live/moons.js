// @ts-check
// "Draw your own moons": a pad, and what four chains of the flat network say of the points on it.

import { CLASS_NAMES, startPad } from "./pad.js";
import {
  findPlace, makeGrid, paintBoundary, paintCursor, paintMap, paintPoints, paintWord, traceBoundary,
} from "./paint.js";
import { PRESETS, SDS, WIDTHS, readHash, snap, writeHash, writePoints } from "./points.js";
import {
  CLIMBS, FAILED, SETTINGS, SPOKEN, STRIP, listen, makeReport, sayAdvi, sayPlace, writeHelp,
} from "./report.js";
import { advise, sample } from "./sampler.js";
import { makeRun, paintOnFrames, put, wantsStillness, watchTheme } from "./watch.js";

/** @typedef {import("./points.js").Drawing} Drawing */
/** @typedef {{mean: Float32Array, noise: Float32Array, ignorance: Float32Array}} Maps */

const SIDE = 40, GRID = makeGrid(SIDE);
const DOUBTS = /** @type {const} */ (["noise", "ignorance"]);
const TOPS = { noise: 1, ignorance: 0.6 }; // bits, where the ramps end
/** The front page shows the box before Ana and her sensors: its classes are what is seen of them. */
const SMALL = { names: ["blue", "orange"], what: "orange", presets: ["moons", "circles", "xor"] };
const LARGE = { names: CLASS_NAMES, what: "an attack", presets: Object.keys(PRESETS) };
const WALKING = "four networks walk", STANDING = "four networks";
const FAN = 40; // boundaries of single networks, on the map of ignorance
const WORDS = { noise: "colours mix", ignorance: "nobody knows" }; // on the maps, where there is most of it
const CLEAR = 0.2; // bits, from which on there is something to name
const LOOK = 2000; // ms to look at the maps before the box puts a point by itself

export const MARKS = [
  '<svg viewBox="-10 -10 20 20" aria-hidden="true"><circle r="7" fill="#0072B2" stroke="#fff"/></svg>',
  '<svg viewBox="-10 -10 20 20" aria-hidden="true"><path d="M0-8.5 8 6H-8Z" fill="#D55E00" stroke="#fff"/></svg>',
];

/** @param {ArrayLike<number>} values */
const average = (values) => {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
};

/** Whether a map says anything: the prior's is one half everywhere, but for luck. @param {Float32Array} values */
const says = (values) => values.some((p) => Math.abs(p - 0.5) > 0.05);

/**
 * Where a map is highest, in sight of its edges, and how high.
 * @param {Float32Array} values
 */
export function findTop(values) {
  let top = -1;
  const inside = (/** @type {number} */ k) => Math.max(Math.abs(GRID[2 * k]), Math.abs(GRID[2 * k + 1])) < 2.6;
  values.forEach((value, k) => { if (inside(k) && (top < 0 || value > values[top])) top = k; });
  return { x: GRID[2 * top], y: GRID[2 * top + 1], value: values[top] };
}

/** Each preset as an address says it. */
const WRITTEN = Object.entries(PRESETS).map(([key, { draw }]) => [writePoints(draw()), key]);

/** The parts of a box as HTML; `id` keeps the names of two boxes apart. */
function writeBox(/** @type {string} */ id, /** @type {typeof LARGE} */ { names, what, presets }, isSmall = false) {
  const button = (/** @type {string} */ action, /** @type {string} */ words) =>
    `<button type="button" data-do="${action}">${words}</button>`;
  const options = presets.map((key) => `<option value="${key}">${PRESETS[key].name}</option>`).join("");
  const classes = names.map((name, k) => button(`class ${k}`, `${MARKS[k]}${name}`)).join("");
  const writeTop = (/** @type {"noise" | "ignorance"} */ name) =>
    (isSmall ? "much" : `${TOPS[name]} ${TOPS[name] === 1 ? "bit" : "bits"}`);
  const views = DOUBTS.map((name) => `<div class="live-view live-${name}"><p>${name}</p>
    <canvas data-view="${name}" role="img" aria-label="Map of ${name}, nothing yet"></canvas>
    <p class="live-scale" aria-hidden="true">${isSmall ? "none" : "0"} <span class="live-ramp"></span> ${writeTop(name)}</p>
    </div>`).join("");
  const draws = [1, 2, 3, 4].map((k) =>
    `<canvas data-view="draw" role="img" aria-label="Latest network of ${isSmall ? "walk" : "chain"} ${k}"></canvas>`).join("");
  const slider = (/** @type {string} */ name, /** @type {string} */ words, least = 0, most = 0) => `
    <label for="${id}-${name}">${words}</label>
    <input type="range" id="${id}-${name}" data-set="${name}" min="${least}" max="${most}" step="1">
    <output for="${id}-${name}"></output>`;
  const settings = `<div class="live-sliders">${slider("sd", "prior sd", 0, SDS.length - 1)}
    ${slider("width", "units in a layer", WIDTHS.least, WIDTHS.most)}</div>`;
  const more = `<div class="live-row live-more">
    <label><input type="checkbox" data-set="biases"> constants</label>${button("advi", "What would ADVI say?")}</div>`;
  const story = `<p class="live-story"><span>Each small map is one network that could explain the points, and it walks on to
    the next. The large map is the mean of all that the four have met.</span> <span>Now you: put a point where ignorance
    is high, and watch it fade. Put one where noise is high: it stays. Any of the three maps with points takes a click.</span></p>`;
  const terms = ["chain", ...(isSmall ? [] : ["prior sd", "units", "constants"]), "noise", "ignorance"];
  return `
<div class="live-row live-tools">
  <select data-set="preset" aria-label="Begin with"><option value="" hidden>Your points</option>${options}</select>
  <span class="live-segments" role="group" aria-label="Next point">${classes}</span>
  ${button("all", "Move a class")}${button("clear", "Clear")}
  ${writeHelp(id, isSmall ? terms : [...terms, "R-hat", "ESS", "ADVI"])}
</div>
<div class="live-stage">
  <div class="live-main">
    <div class="live-pad"><p>probability of ${what}
      <span class="live-swatch" aria-hidden="true">0 <span class="live-ramp"></span> 1</span></p>
      <canvas data-view="pad" tabindex="0" role="application" aria-roledescription="drawing pad"
        aria-label="Points of two classes on a plane" aria-describedby="${id}-keys"></canvas>
      <p class="live-readout"><output></output></p></div>
    ${STRIP}${isSmall ? story : settings}
  </div>
  <div class="live-views">
    ${views}
    <div class="live-view live-draws"><p>${WALKING}</p><div>${draws}</div></div>
  </div>
  ${isSmall ? "" : more}
</div>
${SPOKEN}`;
}

/** Build a box into a figure. @param {HTMLElement} figure @param {HTMLElement} box */
export function build(figure, box) {
  const id = `live-${figure.id || "moons"}`, isSmall = figure.classList.contains("live-small");
  const kind = isSmall ? SMALL : LARGE, { names, what } = kind;
  box.innerHTML = writeBox(id, kind, isSmall);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Draw your own moons");
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  /** @type {Record<"pad" | "noise" | "ignorance", HTMLCanvasElement>} */
  const canvases = {
    pad: find("[data-view=pad]"), noise: find("[data-view=noise]"), ignorance: find("[data-view=ignorance]"),
  };
  const drawCanvases = /** @type {HTMLCanvasElement[]} */ ([...box.querySelectorAll("[data-view=draw]")]);
  const report = makeReport(box), { say } = report;

  /** @type {Drawing} */
  const drawing = { ...startDrawing(), ...readHash(location.hash) };
  /** @type {{maps: Maps | null, advi: Maps | null, latest: Float32Array[], fan: Float32Array[]}} */
  const seen = { maps: null, advi: null, latest: [], fan: [] };
  let chosen = /** @type {0 | 1} */ (1), movesAll = false, showsAdvi = false;
  /** Whether the box may still put a point by itself, and the one that it has put. */
  let isAlone = !readHash(location.hash) && !wantsStillness() && !box.closest(".reveal");
  /** @type {{ point: import("./points.js").Point, before: number } | null} */
  let shown = null;
  /** @type {import("./watch.js").Handle | null} */
  let adviRun = null;
  const current = () => (showsAdvi && seen.advi) || seen.maps;

  const paintPad = () => {
    const maps = current();
    paintMap(canvases.pad, maps && maps.mean, "probability");
    if (maps && says(maps.mean)) paintBoundary(canvases.pad, traceBoundary(maps.mean));
    paintPoints(canvases.pad, drawing.points, 5.5, pad.held ?? shown?.point);
    if (pad.cursor) paintCursor(canvases.pad, pad.cursor);
  };
  const paintDoubt = (/** @type {"noise" | "ignorance"} */ name) => {
    const maps = current();
    paintMap(canvases[name], maps && maps[name], "doubt", TOPS[name]);
    paintPoints(canvases[name], drawing.points, 1.6, shown?.point);
    const top = maps && findTop(maps[name]);
    const isSaid = name === "ignorance" || drawing.points.length; // without points no colours mix
    if (isSaid && top && top.value > CLEAR) paintWord(canvases[name], top, WORDS[name]);
  };
  const paintFan = () => {
    paintDoubt("ignorance");
    if (!showsAdvi) for (const ends of seen.fan) paintBoundary(canvases.ignorance, ends, 0.3, 0.7);
  };
  const paintDraws = () => drawCanvases.forEach((canvas, k) => {
    paintMap(canvas, seen.latest[k] ?? null, "probability");
    if (seen.latest[k]) paintBoundary(canvas, traceBoundary(seen.latest[k]));
  });
  const look = paintOnFrames([paintPad]); // a hand moves more often than pictures come
  const paint = paintOnFrames([paintPad, paintFan, paintDraws, () => paintDoubt("noise")]);

  /** What the maps on show say at a place, or null. */
  const readPlace = (/** @type {{ x: number, y: number }} */ place) => {
    const maps = current(), k = findPlace(SIDE, place);
    return maps && { mean: maps.mean[k], noise: maps.noise[k], ignorance: maps.ignorance[k] };
  };
  const pad = startPad(canvases.pad, {
    names, points: drawing.points, say, onLook: look, onChange: restart,
    chosen: () => chosen,
    movesAll: () => movesAll,
    choose: (label) => { chosen = label; refresh(); },
    describe: (place) => sayPlace(readPlace(place), what),
    onHover: (place) => {
      find(".live-readout output").value = place && seen.maps ? sayPlace(readPlace(place), what) : "";
    },
  }, [canvases.noise, canvases.ignorance]);

  const describeModel = () => ({
    kind: /** @type {const} */ ("flat"), X: Float64Array.from(drawing.points.flatMap(({ x, y }) => [x, y])),
    y: Uint8Array.from(drawing.points, ({ label }) => label),
    hidden: [drawing.width, drawing.width], sd: drawing.sd, biases: drawing.biases,
  });
  const run = makeRun(box, (isCurrent) => {
    const settings = { ...SETTINGS, draws: SETTINGS.draws * 2 ** drawing.longer, seed: drawing.seed };
    seen.fan = [];
    report.begin();
    if (!shown) keep();
    return sample({ model: describeModel(), settings, points: GRID }, {
      onProgress: (progress) => { if (isCurrent() && report.follow(progress, settings)) take(progress); },
      onDone: (done) => { if (isCurrent()) finish(done); },
      onError: (_, worked) => { if (isCurrent()) report.fail(worked); },
    });
  });

  /** Keep what came, and paint it. @param {import("./sampler.js").Progress} progress */
  function take({ mean, noise, ignorance, latest }) {
    const walked = latest.filter((values, k) => values[0] !== seen.latest[k]?.[0]); // a chain that is done stands still
    seen.fan.push(...walked.map((values) => traceBoundary(values)));
    seen.fan.splice(0, seen.fan.length - FAN);
    seen.latest = latest;
    seen.maps = { mean, noise, ignorance };
    paint();
  }

  /** @param {import("./sampler.js").Done} done */
  function finish(done) {
    take(done);
    report.judge(done);
    box.toggleAttribute("data-told", true);
    put(find(".live-draws p"), { textContent: STANDING });
    label(current() ?? done);
    if (shown) tellMove(shown, done);
    else if (isAlone) window.setTimeout(moveFirst, LOOK);
  }

  /** Put the first point, where nobody knows, unless a reader has begun. */
  function moveFirst() {
    if (!isAlone || !seen.maps) return;
    const { x, y, value } = findTop(seen.maps.ignorance);
    isAlone = false;
    shown = { point: snap(x, y, 1), before: value };
    drawing.points.push(shown.point);
    begin();
  }

  /** Say what the first point did. @param {NonNullable<typeof shown>} move @param {Maps} maps */
  function tellMove({ point, before }, maps) {
    const fell = Math.round(100 * (1 - maps.ignorance[findPlace(SIDE, point)] / before));
    const fall = `The box has put one ${names[1]} point (ring) where nobody knew. Ignorance there fell by ${fell} %.`;
    put(find(".live-shared"), { textContent: isSmall ? fall : `${fall} Now you: tap or click the large map.` });
  }

  /**
   * From here on the box is the reader's, and what it said of its own point goes with the ring; not yet while a finger
   * may only be scrolling.
   * @param {Event} [event]
   */
  function handOver(event) {
    isAlone = false;
    if (!shown || event?.type === "pointerdown") return;
    shown = null;
    put(find(".live-shared"), { textContent: "" });
    paint();
  }
  for (const kind of ["pointerdown", "click", "keydown", "input"]) box.addEventListener(kind, handOver, { capture: true });

  /** Say of each map what it shows. @param {Maps} maps */
  function label({ mean, noise, ignorance }) {
    canvases.noise.setAttribute("aria-label", `Map of noise, ${average(noise).toFixed(2)} bit on average`);
    canvases.ignorance.setAttribute("aria-label", `Map of ignorance, ${average(ignorance).toFixed(2)} bit on average`);
    const share = Math.round((100 * mean.filter((/** @type {number} */ p) => p > 0.5).length) / mean.length);
    canvases.pad.setAttribute("aria-label", `Points of two classes on a plane, of which ${share} % is called ${names[1]}`);
  }

  function restart() {
    handOver();
    drawing.longer = 0;
    begin();
  }

  function begin() {
    adviRun?.stop();
    seen.advi = null;
    report.begin();
    put(find(".live-draws p"), { textContent: WALKING });
    if (showsAdvi) askAdvi();
    refresh();
    look();
    run.restart();
  }

  /** Show ADVI's line, as it climbs and when it has arrived. @param {Partial<import("./report.js").Strip>} line */
  const tell = (line) => report.showAdvi({ state: "climbs", share: 0, words: CLIMBS, numbers: "", ...line });

  function askAdvi() {
    tell({});
    adviRun = advise({ model: describeModel(), settings: { seed: drawing.seed }, points: GRID }, {
      onProgress: ({ done }) => tell({ share: done }),
      onDone: (found) => {
        const { fit } = found, nuts = report.getState() === "agree" && seen.maps ? average(seen.maps.ignorance) : null;
        seen.advi = found;
        const line = sayAdvi(fit, drawing.points.length, average(found.ignorance), nuts);
        tell({ state: fit.stopped && fit.alike ? "arrived" : "astray", share: 1, ...line });
        say(`${line.words} ${line.numbers}`);
        label(found);
        paint();
      },
      onError: () => tell({ state: "failed", words: FAILED }),
    });
  }

  /** Bring buttons and sliders into line with what is drawn. */
  function refresh() {
    box.dataset.drawing = writeHash(drawing);
    box.querySelectorAll("[data-do^=class]").forEach((button, k) => {
      put(button, { "aria-pressed": String(k === chosen) });
    });
    put(find("[data-do=all]"), { "aria-pressed": String(movesAll) });
    const written = writePoints(drawing.points);
    put(find("[data-set=preset]"), { value: WRITTEN.find(([points]) => points === written)?.[1] ?? "" });
    if (isSmall) return;
    put(find("[data-set=biases]"), { checked: drawing.biases });
    for (const [name, place] of /** @type {const} */ ([["sd", SDS.indexOf(drawing.sd)], ["width", drawing.width]])) {
      const input = find(`[data-set=${name}]`), text = String(drawing[name]);
      put(input, { value: String(place), "aria-valuetext": text });
      put(find(`output[for="${input.id}"]`), { value: text });
    }
  }

  /** @type {Record<string, (argument: string) => void>} */
  const actions = {
    class: (k) => { chosen = k === "0" ? 0 : 1; },
    all: () => { movesAll = !movesAll; },
    clear: () => {
      drawing.points.splice(0);
      if (isSmall) drawing.biases = false; // there is no switch to take them out
      restart();
    },
    advi: () => {
      if (showsAdvi) return; // it has been asked, and is asked again with every change
      showsAdvi = true;
      askAdvi();
      paint();
    },
    chains: () => {
      showsAdvi = false;
      adviRun?.stop();
      seen.advi = null;
      report.showAdvi(null);
      if (seen.maps) label(seen.maps);
      paint();
    },
  };
  const keep = listen(box, { drawing, report, run, begin, refresh, writeHash, readHash, actions });
  /** @type {Record<string, (input: HTMLInputElement) => void>} */
  const settings = {
    sd: ({ value }) => { drawing.sd = SDS[Number(value)]; },
    width: ({ value }) => { drawing.width = Number(value); },
    biases: ({ checked }) => { drawing.biases = checked; },
    preset: ({ value }) => {
      drawing.points.splice(0, Infinity, ...PRESETS[value].draw());
      drawing.biases = PRESETS[value].biases;
    },
  };
  box.addEventListener("input", (event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    settings[/** @type {string} */ (input.dataset.set)](input);
    restart();
  });
  watchTheme(paint);
  new ResizeObserver(paint).observe(canvases.pad);
  begin();
}

/** What a reader finds. @returns {Drawing} */
function startDrawing() {
  return { points: PRESETS.moons.draw(), sd: 1, width: 5, biases: PRESETS.moons.biases, seed: 1, longer: 0 };
}
