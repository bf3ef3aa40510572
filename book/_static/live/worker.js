// @ts-check
/**
 * A worker: some chains of a run, draw by draw in turn, with pauses in which it can be told to stop; or ADVI; or the
 * verdict over the draws of all workers. It is told what to do by sampler.js.
 */

import { fitAdvi } from "./advi.js";
import { verdict } from "./diagnose.js";
import { makeModel, makeTally, chooseJudged } from "./run.js";
import { makeChain } from "./nuts.js";
import { makeRandom } from "./random.js";

/** @typedef {import("./run.js").Job} Job */

const SLICE = 40; // ms between two looks at what was said, and between two reports

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

async function waitWhilePaused() {
  await takeTurn();
  while (isPaused) await new Promise((resolve) => (wake = () => resolve(undefined)));
}

/** @param {Job} job @param {number[]} numbers of the chains */
async function sampleChains(job, numbers) {
  const model = makeModel(job.model);
  const judged = chooseJudged(job);
  const runs = numbers.map((number) => ({
    tally: makeTally(job, model, judged, number),
    chain: makeChain({ model, ...job.settings, chain: number }),
  }));
  while (runs.some(({ chain }) => !chain.done)) {
    const end = performance.now() + SLICE;
    while (performance.now() < end && runs.some(({ chain }) => !chain.done)) {
      for (const { chain, tally } of runs) if (!chain.done) tally.add(chain.step());
    }
    postMessage({ kind: "progress", chains: runs.map(({ tally, chain }) => tally.report(chain)) });
    await waitWhilePaused();
  }
  postMessage({ kind: "drawn", chains: runs.map(({ tally }) => tally.hand()) });
}

/** @param {Job} job */
function approximate(job) {
  const model = makeModel(job.model);
  const { seed, steps, starts } = job.settings;
  const onStep = (/** @type {number} */ start, /** @type {number} */ step) =>
    postMessage({ kind: "advi progress", start, step });
  const fit = fitAdvi({ model, seed, steps, starts, onStep });
  const tally = makeTally(job, model, chooseJudged(job), 0);
  const random = makeRandom(seed, 2000);
  const theta = new Float64Array(model.size);
  for (let i = 0; i < (job.settings.draws ?? 1000); i++) {
    fit.draw(random, theta);
    tally.add({ theta, tuning: false, divergent: false, energy: 0 });
  }
  const { draw, ...found } = fit;
  postMessage({ kind: "advi", fit: found, chain: tally.report({ taken: 0, gradients: 0, done: true }) });
}

/** @param {MessageEvent} event */
self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "sample") await sampleChains(data.job, data.chains);
    if (data.kind === "advi") approximate(data.job);
    if (data.kind === "judge") postMessage({ kind: "verdict", verdict: verdict(data.run) });
    if (data.kind === "pause") isPaused = true;
    if (data.kind === "resume") {
      isPaused = false;
      wake?.();
    }
  } catch (error) {
    postMessage({ kind: "error", message: String(error) });
  }
};
