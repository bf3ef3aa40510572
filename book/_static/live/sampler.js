// @ts-check
/**
 * A run from the page: chains in workers, pictures as they come, the book's verdict at the end.
 *
 *   const job = { model: { kind: "flat", X, y }, settings: { seed: 1, chains: 4, tune: 500, draws: 500 }, points };
 *   const run = sample(job, { onProgress, onDone, onError });
 *   run.pause(); run.resume(); run.stop();
 */

import { combine } from "./run.js";

/** @typedef {import("./run.js").Job} Job */
/** @typedef {import("./run.js").Report} Report */
/** @typedef {import("./run.js").Picture} Picture */
/** @typedef {import("./diagnose.js").Verdict} Verdict */

/**
 * @typedef {Picture & {
 *   chains: { tuning: boolean, done: number, divergences: number }[],
 *   latest: Float32Array[],
 *   describe: Record<string, number>[],
 *   described: Record<string, number>,
 *   gradients: number,
 *   seconds: number,
 * }} Progress
 *   chains: done is the share of all draws, tuning included, from 0 to 1; latest, describe: of each chain's latest
 *   draw, describe: sds; described: their means over the same draws as the picture
 * @typedef {Progress & { verdict: Verdict & { seconds: number, gradients: number } }} Done
 * @typedef {object} Listeners
 * @property {(progress: Progress) => void} [onProgress] ten to twenty times a second
 * @property {(done: Done) => void} [onDone]
 * @property {(message: string, worked: boolean) => void} [onError] worked: false where no worker could be started
 */

const PAUSE = 70; // ms between two updates, at least

/** Whether this browser, and the place the page was opened from, allow module workers. */
export const supported = findSupport();

function findSupport() {
  if (typeof Worker === "undefined" || typeof location === "undefined" || location.protocol === "file:") return false;
  let asked = false;
  const options = {
    get type() {
      asked = true; // a browser that knows module workers looks here
      return /** @type {const} */ ("module");
    },
  };
  try {
    new Worker("data:text/javascript,", options).terminate();
  } catch {
    // a policy may forbid data: and allow ours; what was asked is asked before
  }
  return asked;
}

/** @type {Worker[]} workers that wait: a new run starts at once, with code that is compiled */
const waiting = [];
let lastId = 0;
let worked = false; // whether any worker has ever said a word

/**
 * Workers for one run.
 * @param {number} n
 * @param {(data: any) => void} listen to what they say of this run
 * @param {(message: string, worked: boolean) => void} fail worked: false where no worker could ever be started
 */
function hire(n, listen, fail) {
  const id = ++lastId;
  const workers = Array.from(
    { length: n },
    () => waiting.pop() ?? new Worker(new URL("./worker.js", import.meta.url), { type: "module" }),
  );
  let isHired = true;
  for (const worker of workers) {
    worker.onmessage = ({ data }) => {
      worked = true;
      if (isHired && data.id === id) data.kind === "error" ? fail(data.message, true) : listen(data);
    };
    worker.onerror = (event) => {
      if (!isHired) return;
      isHired = false; // workers that cannot be started are not kept
      fail(event.message || "a worker could not be started", worked);
    };
  }
  /** @param {object} order @param {number} [w] */
  const tell = (order, w) => {
    if (isHired) for (const worker of w === undefined ? workers : [workers[w]]) worker.postMessage({ id, ...order });
  };
  function dismiss() {
    tell({ kind: "stop" });
    if (isHired) waiting.push(...workers);
    isHired = false;
  }
  return { tell, dismiss };
}

/**
 * Sample. Draws depend on the job alone, never on the number of workers, on pauses or on the clock.
 * @param {Job} job
 * @param {Listeners} listeners
 */
export function sample(job, { onProgress, onDone, onError }) {
  const nChains = job.settings.chains ?? 4;
  const nAll = (job.settings.tune ?? 500) + (job.settings.draws ?? 500);
  const nWorkers = Math.min(nChains, 4, navigator.hardwareConcurrency || 2);
  const { tell, dismiss } = hire(nWorkers, listen, fail);
  /** @type {(Report | undefined)[]} */
  const reports = Array.from({ length: nChains });
  /** @type {ReturnType<ReturnType<typeof import("./run.js").makeTally>["hand"]>[]} */
  const drawn = [];
  let started = performance.now();
  let seconds = 0; // before the last pause
  let isRunning = true;
  let last = -Infinity;

  const readClock = () => seconds + (isRunning ? (performance.now() - started) / 1000 : 0);

  /** @param {boolean} run */
  function setRunning(run) {
    if (run === isRunning) return;
    seconds = readClock();
    isRunning = run;
    started = performance.now();
  }

  /** @returns {Progress} */
  function summarise() {
    const known = reports.filter((report) => report !== undefined);
    return {
      ...combine(known),
      chains: reports.map((report) => ({
        tuning: report?.tuning ?? true,
        done: (report?.taken ?? 0) / nAll,
        divergences: report?.divergences ?? 0,
      })),
      latest: known.map(({ latest }) => latest),
      describe: known.map(({ describe }) => describe),
      gradients: known.reduce((sum, { gradients }) => sum + gradients, 0),
      seconds: readClock(),
    };
  }

  function judge() {
    drawn.sort((a, b) => a.chain - b.chain);
    const names = Object.keys(drawn[0].quantities);
    const run = {
      quantities: Object.fromEntries(names.map((name) => [name, drawn.map(({ quantities }) => quantities[name])])),
      divergent: drawn.map(({ divergent }) => divergent),
      energy: drawn.map(({ energy }) => energy),
    };
    setRunning(false);
    tell({ kind: "judge", run }, 0);
  }

  /** @param {string} message @param {boolean} hasWorked */
  function fail(message, hasWorked) {
    dismiss();
    onError?.(message, hasWorked);
  }

  /** @param {any} data */
  function listen({ kind, chains, verdict }) {
    if (kind === "progress") {
      for (const report of chains) reports[report.chain] = report;
      if (performance.now() - last < PAUSE) return;
      last = performance.now();
      onProgress?.(summarise());
    }
    if (kind === "drawn") {
      drawn.push(...chains);
      if (drawn.length === nChains) judge();
    }
    if (kind === "verdict") {
      dismiss();
      const progress = summarise();
      onDone?.({ ...progress, verdict: { ...verdict, seconds, gradients: progress.gradients } });
    }
  }

  for (let w = 0; w < nWorkers; w++) {
    const chains = reports.map((_, chain) => chain).filter((chain) => chain % nWorkers === w);
    tell({ kind: "sample", job, chains }, w);
  }

  return {
    pause() {
      setRunning(false);
      tell({ kind: "pause" });
    },
    resume() {
      setRunning(drawn.length < nChains);
      tell({ kind: "resume" });
    },
    stop: dismiss,
  };
}

/**
 * @typedef {Picture & { described: Record<string, number>, fit: Omit<import("./advi.js").Approximation, "draw">,
 *   seconds: number }} Advice
 */

/**
 * What ADVI says: the best of several fits, and the picture of draws from it.
 * @param {Job} job settings: seed, steps (default 1,500), starts (3) and draws (1,000)
 * @param {{ onProgress?: (progress: { done: number }) => void, onDone?: (advice: Advice) => void,
 *   onError?: (message: string, worked: boolean) => void }} listeners done: the share of all steps
 */
export function advise(job, { onProgress, onDone, onError }) {
  const started = performance.now();
  const settings = { draws: 1000, ...job.settings };
  const { tell, dismiss } = hire(1, listen, fail);

  /** @param {string} message @param {boolean} hasWorked */
  function fail(message, hasWorked) {
    dismiss();
    onError?.(message, hasWorked);
  }

  /** @param {any} data */
  function listen({ kind, share, fit, chain }) {
    if (kind === "fitting") onProgress?.({ done: share });
    if (kind !== "fitted") return;
    dismiss();
    onDone?.({ ...combine([chain]), fit, seconds: (performance.now() - started) / 1000 });
  }

  tell({ kind: "advise", job: { ...job, settings } });
  return { pause: () => tell({ kind: "pause" }), resume: () => tell({ kind: "resume" }), stop: dismiss };
}
