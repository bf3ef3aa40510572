// @ts-check
/**
 * A worker: some chains of a run, draw by draw in turn, with pauses in which it can be told to stop; or ADVI; or the
 * verdict over the draws of all workers. It is told what to do by sampler.js.
 */

import { DRAWS, makeSearch } from "./advi.js";
import { verdict } from "./diagnose.js";
import { makeChain } from "./nuts.js";
import { makeRandom } from "./random.js";
import { makeModel, makeTally } from "./run.js";

/** @typedef {import("./run.js").Job} Job */

const SLICE = 30; // ms between two looks at what was said, and between two reports

let current = 0; // the run that is wanted; another one is given up at its next look
let isPaused = false;
/** @type {(() => void) | undefined} */
let wake;

/** Let messages in. A timer would wait for 4 ms or more. */
function takeTurn() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(0);
  });
}

/** Whether to go on with a run, once it is not paused. @param {number} id */
async function isWanted(id) {
  await takeTurn();
  while (isPaused && current === id) await new Promise((resolve) => (wake = () => resolve(undefined)));
  return current === id;
}

/**
 * @param {number} id of the run
 * @param {Job} job
 * @param {number[]} numbers of the chains
 */
async function sampleChains(id, job, numbers) {
  const model = makeModel(job.model);
  const runs = numbers.map((number) => ({
    tally: makeTally(job, model, number),
    chain: makeChain({ model, ...job.settings, chain: number }),
  }));
  while (runs.some(({ chain }) => !chain.done)) {
    const end = performance.now() + SLICE;
    while (performance.now() < end && runs.some(({ chain }) => !chain.done)) {
      for (const { chain, tally } of runs) if (!chain.done) tally.add(chain.step());
    }
    postMessage({ id, kind: "progress", chains: runs.map(({ tally, chain }) => tally.report(chain)) });
    if (!(await isWanted(id))) return;
  }
  postMessage({ id, kind: "drawn", chains: runs.map(({ tally }) => tally.hand()) });
}

/** @param {number} id @param {Job} job */
async function approximate(id, job) {
  const model = makeModel(job.model);
  const { seed, steps, starts, draws = 1000 } = job.settings;
  const search = makeSearch({ model, seed, steps, starts });
  while (!search.done) {
    const end = performance.now() + SLICE;
    while (performance.now() < end && !search.done) search.step();
    postMessage({ id, kind: "fitting", share: search.share });
    if (!(await isWanted(id))) return;
  }
  const { draw, ...fit } = search.finish();
  const tally = makeTally(job, model, 0);
  const random = makeRandom(seed, DRAWS);
  const theta = new Float64Array(model.size);
  for (let i = 0; i < draws; i++) {
    draw(random, theta);
    tally.add({ theta, tuning: false, divergent: false, energy: 0 });
  }
  postMessage({ id, kind: "fitted", fit, chain: tally.report({ taken: draws, gradients: 0 }) });
}

/** @param {MessageEvent} event */
self.onmessage = async ({ data }) => {
  const { id, kind, job, chains, run } = data;
  if (kind === "pause" || kind === "resume") isPaused = kind === "pause" && current === id;
  else current = kind === "stop" ? 0 : id;
  if (kind !== "pause") wake?.();
  try {
    if (kind === "sample" || kind === "advise") isPaused = false;
    if (kind === "sample") await sampleChains(id, job, chains);
    if (kind === "advise") await approximate(id, job);
    if (kind === "judge") postMessage({ id, kind: "verdict", verdict: verdict(run) });
  } catch (error) {
    postMessage({ id, kind: "error", message: String(error) });
  }
};
