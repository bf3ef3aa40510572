// @ts-check
// What a live box says in words: how far the chains are, and whether their pictures may be trusted; likewise of ADVI.

/** @typedef {import("./diagnose.js").Verdict} Verdict */
/** @typedef {{ words: string, numbers: string }} Line a sentence, and the numbers behind it */

/** @param {number} n */
const count = (n) => Math.round(n).toLocaleString("en-GB");
/** @param {number} value */
const write = (value, digits = 1) => value.toFixed(digits).replace("-", "−");
const NOT_YET = "Not yet to be trusted.";
const LONG = 15; // seconds that a reader waits without asking how many more

/** How much longer something takes, where that is long. @param {number} seconds */
export function sayWait(seconds) {
  if (!(seconds > LONG)) return "";
  if (seconds < 55) return ` About ${5 * Math.ceil(seconds / 5)} seconds to go.`;
  const minutes = Math.ceil(seconds / 60);
  return ` About ${minutes === 1 ? "a minute" : `${minutes} minutes`} to go.`;
}

/**
 * How far four chains are.
 * @param {{ tuning: boolean, done: number }[]} chains done: the share of all draws
 * @param {{ tune: number, draws: number }} settings
 * @param {number} seconds since they started
 */
export function sayProgress(chains, { tune, draws }, seconds) {
  const share = Math.min(...chains.map(({ done }) => done)), taken = share * (tune + draws);
  const wait = sayWait(share > 0.02 ? (seconds * (1 - share)) / share : 0);
  if (chains.some(({ tuning }) => tuning)) {
    return `Four chains warm up: ${count(Math.min(taken, tune))} of ${count(tune)} steps. ${NOT_YET}${wait}`;
  }
  return `Four chains walk: ${count(taken - tune)} of ${count(draws)} draws each. ${NOT_YET}${wait}`;
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

/** The verdict, by the book's rule: the worst of all asked. @param {Verdict} verdict @returns {Line} */
export function sayVerdict(verdict) {
  const found = `R-hat ${verdict.rhat.toFixed(3)}, ESS ${count(verdict.ess)}`;
  if (verdict.converged) return { words: "Four chains agree. These pictures can be trusted.", numbers: found };
  const others = verdict.reasons.filter((key) => key in REASONS).map((key) => `, ${REASONS[key](verdict)}`).join("");
  return { words: "Not yet. Do not trust these pictures.", numbers: `${found} (wanted: above 400)${others}` };
}

export const STARTED = `Four chains start anew. ${NOT_YET}`;
export const STOPPED = `Stopped early, before the chains could be compared. ${NOT_YET}`;
export const FAILED = "Something went wrong in this browser, and the chains stopped. Reload the page to try again.";
export const DAMAGED = "This link is damaged, so the box begins as it always does.";

/**
 * What the networks say at a place.
 * @param {{ mean: number, noise: number, ignorance: number } | null} at
 * @param {string} what the probability is of
 */
export function sayPlace(at, what = "an attack") {
  if (!at) return "nothing computed yet";
  const [noise, ignorance] = [at.noise, at.ignorance].map((bits) => bits.toFixed(1));
  return `probability of ${what} ${Math.round(100 * at.mean)} %, noise ${noise} bits, ignorance ${ignorance} bits`;
}

export const CLIMBS = "ADVI climbs. Until it arrives, the maps are the chains’.";

/**
 * ADVI's own verdict: has it stopped climbing, and do its starts agree?
 * @param {import("./advi.js").Approximation | Omit<import("./advi.js").Approximation, "draw">} fit
 * @param {number} points a coin for each of them has an ELBO, too
 * @param {number} advi mean ignorance over the picture, bits
 * @param {number | null} nuts likewise
 * @returns {Line}
 */
export function sayAdvi(fit, points, advi, nuts) {
  const beside = nuts === null ? "" : ` (chains ${nuts.toFixed(2)})`;
  const coin = `a coin ${write(-points * Math.LN2)}`;
  const numbers = `ELBO ${write(fit.elbo)} ± ${write(fit.error)} nats (${coin}), mean ignorance ${advi.toFixed(2)} bits`;
  return { words: `ADVI’s maps. ${judgeAdvi(fit)}`, numbers: numbers + beside };
}

/** @param {{ stopped: boolean, alike: boolean, gain: number }} fit */
function judgeAdvi({ stopped, alike, gain }) {
  if (!stopped) return `It still climbs: as many steps again gained ${write(gain)} nats.`;
  if (!alike) return "It has stopped climbing, but its starts end at different heights.";
  return "It has stopped climbing, and its starts agree.";
}
