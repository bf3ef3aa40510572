// @ts-check
// What a live box says in words: how far the chains are, and whether their pictures may be trusted.

/** @typedef {import("./diagnose.js").Verdict} Verdict */

/** @param {number} n */
const count = (n) => Math.round(n).toLocaleString("en-GB");
const NOT_YET = "Not yet to be trusted.";

/**
 * How far four chains are.
 * @param {{ tuning: boolean, done: number }[]} chains done: the share of all draws
 * @param {{ tune: number, draws: number }} settings
 */
export function sayProgress(chains, { tune, draws }) {
  const taken = Math.min(...chains.map(({ done }) => done)) * (tune + draws);
  if (chains.some(({ tuning }) => tuning)) {
    return `Four chains find their stride: ${count(Math.min(taken, tune))} of ${count(tune)} steps. ${NOT_YET}`;
  }
  return `Four chains walk: ${count(taken - tune)} of ${count(draws)} draws each. ${NOT_YET}`;
}

/**
 * What else keeps a verdict from passing, by the key of its reason.
 * @type {Record<string, (verdict: Verdict) => string>}
 */
const REASONS = {
  essTail: ({ essTail }) => `the tails are worth ${count(essTail)} draws`,
  divergences: ({ divergences }) => `${count(divergences)} draws went astray`,
  bfmi: () => "the chains hardly change their energy",
  constant: () => "a probability never moved",
  chains: () => "there are too few chains",
};

/** The verdict, by the book's rule: the worst of all asked. @param {Verdict} verdict */
export function sayVerdict(verdict) {
  const rhat = verdict.rhat.toFixed(3), ess = count(verdict.ess);
  if (verdict.converged) return `Four chains agree: R-hat ${rhat}, ESS ${ess}. These pictures can be trusted.`;
  const others = verdict.reasons.filter((key) => key in REASONS).map((key) => `, ${REASONS[key](verdict)}`).join("");
  const found = `R-hat ${rhat}, ESS ${ess} (wanted: above 400)${others}`;
  return `Not yet: ${found}. Do not trust these pictures yet.`;
}

export const STARTED = `Four chains start anew. ${NOT_YET}`;
export const STOPPED = `Stopped early, before the chains could be compared. ${NOT_YET}`;
export const FAILED = "Something went wrong in this browser, and the chains stopped. Reload the page to try again.";

/** What the networks say at a place. @param {{ mean: number, noise: number, ignorance: number } | null} at */
export function sayPlace(at) {
  if (!at) return "nothing computed yet";
  const [noise, ignorance] = [at.noise, at.ignorance].map((bits) => bits.toFixed(1));
  return `probability of an attack ${Math.round(100 * at.mean)} %, noise ${noise} bit, ignorance ${ignorance} bit`;
}

/**
 * ADVI beside NUTS.
 * @param {number} advi mean ignorance over the picture, bits
 * @param {number | null} nuts likewise
 * @param {number} elbo nats
 */
export function sayAdvi(advi, nuts, elbo) {
  const beside = nuts === null ? "" : ` (the four chains: ${nuts.toFixed(2)})`;
  const itself = `Its ELBO is ${elbo.toFixed(1)} nats, its mean ignorance ${advi.toFixed(2)} bit`;
  return `These three maps are ADVI's now. ${itself}${beside}.`;
}
