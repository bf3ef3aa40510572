// @ts-check
/**
 * A run from the page: chains in workers, pictures as they come, the book's verdict at the end.
 *
 *   const run = sample({ model: { kind: "flat", X, y }, settings: { seed: 1, chains: 4, tune: 500, draws: 500 }, points },
 *                      { onProgress, onDone, onError });
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
 *   chains: done is the share of all draws, tuning included, from 0 to 1; latest, describe: of each chain's latest draw,
 *   describe: sds; described: their means over the same draws as the picture
 * @typedef {Progress & { verdict: Verdict & { seconds: number, gradients: number } }} Done
 * @typedef {object} Listeners
 * @property {(progress: Progress) => void} [onProgress] ten to twenty times a second
 * @property {(done: Done) => void} [onDone]
 * @property {(message: string) => void} [onError]
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

const startWorker = () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" });

/**
 * Sample. Draws depend on the job alone, never on the number of workers, on pauses or on the clock.
 * @param {Job} job
 * @param {Listeners} listeners
 */
export function sample(job, { onProgress, onDone, onError }) {
  const nChains = job.settings.chains ?? 4;
  const nAll = (job.settings.tune ?? 500) + (job.settings.draws ?? 500);
  const nWorkers = Math.min(nChains, 4, navigator.hardwareConcurrency || 2);
  const workers = Array.from({ length: nWorkers }, startWorker);
  /** @type {Report[]} */
  const reports = [];
  /** @type {ReturnType<ReturnType<typeof import("./run.js").makeTally>["hand"]>[]} */
  const drawn = [];
  let started = performance.now();
  let seconds = 0;
  let isPaused = false;
  let last = -Infinity;

  const readClock = () => seconds + (isPaused ? 0 : (performance.now() - started) / 1000);
  const countGradients = () => reports.reduce((sum, { gradients }) => sum + gradients, 0);

  /** @returns {Progress} */
  function summarise() {
    const known = reports.filter(Boolean);
    return {
      ...combine(known),
      chains: Array.from({ length: nChains }, (_, chain) => {
        const { tuning = true, taken = 0, divergences = 0 } = reports[chain] ?? {};
        return { tuning, done: taken / nAll, divergences };
      }),
      latest: known.map(({ latest }) => latest),
      describe: known.map(({ describe }) => describe),
      gradients: countGradients(),
      seconds: readClock(),
    };
  }

  function judge() {
    drawn.sort((a, b) => a.chain - b.chain);
    /** @type {Record<string, Float64Array[]>} */
    const quantities = {};
    for (const name of Object.keys(drawn[0].quantities)) {
      quantities[name] = drawn.map((chain) => chain.quantities[name]);
    }
    const { divergent, energy } = { divergent: drawn.map((c) => c.divergent), energy: drawn.map((c) => c.energy) };
    seconds = readClock();
    workers[0].postMessage({ kind: "judge", run: { quantities, divergent, energy } });
  }

  function stop() {
    for (const worker of workers) worker.terminate();
  }

  /** @param {string} message */
  function fail(message) {
    stop();
    onError?.(message);
  }

  /** @param {MessageEvent} event */
  function listen({ data }) {
    if (data.kind === "error") fail(data.message);
    if (data.kind === "progress") {
      for (const report of data.chains) reports[report.chain] = report;
      if (performance.now() - last < PAUSE) return;
      last = performance.now();
      onProgress?.(summarise());
    }
    if (data.kind === "drawn") {
      drawn.push(...data.chains);
      if (drawn.length === nChains) judge();
    }
    if (data.kind === "verdict") {
      stop();
      onDone?.({ ...summarise(), verdict: { ...data.verdict, seconds, gradients: countGradients() } });
    }
  }

  workers.forEach((worker, w) => {
    worker.onmessage = listen;
    worker.onerror = (event) => fail(event.message ?? "a worker could not be started");
    const chains = Array.from({ length: nChains }, (_, c) => c).filter((c) => c % nWorkers === w);
    worker.postMessage({ kind: "sample", job, chains });
  });

  /** @param {boolean} pause */
  function setPaused(pause) {
    if (pause === isPaused) return;
    seconds = readClock();
    isPaused = pause;
    started = performance.now();
    for (const worker of workers) worker.postMessage({ kind: pause ? "pause" : "resume" });
  }

  return { pause: () => setPaused(true), resume: () => setPaused(false), stop };
}

/**
 * What ADVI would say: the best of several fits, and the picture of draws from it.
 * @param {Job} job settings: seed, steps (default 30,000), starts (3) and draws (1,000)
 * @param {{ onProgress?: (progress: { done: number }) => void,
 *   onDone?: (done: Picture & { described: Record<string, number>, losses: number[], best: number,
 *     mean: Picture["mean"], fit: Omit<import("./advi.js").Approximation, "draw">, seconds: number }) => void,
 *   onError?: (message: string) => void }} listeners
 */
export function approximate(job, { onProgress, onDone, onError }) {
  const worker = startWorker();
  const started = performance.now();
  const { steps = 30000, starts = 3 } = job.settings;
  worker.onerror = (event) => onError?.(event.message ?? "a worker could not be started");
  worker.onmessage = ({ data }) => {
    if (data.kind === "advi progress") onProgress?.({ done: (data.start + data.step / steps) / starts });
    if (data.kind === "error") onError?.(data.message);
    if (data.kind !== "advi") return;
    worker.terminate();
    const { losses, best } = data.fit;
    onDone?.({ ...combine([data.chain]), losses, best, fit: data.fit, seconds: (performance.now() - started) / 1000 });
  };
  worker.postMessage({ kind: "advi", job });
  return { stop: () => worker.terminate() };
}
