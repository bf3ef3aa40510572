// @ts-check
// The strip under the pad: how far the chains are, what they were found to be, and the button that goes on. While the
// maps are ADVI's, the strip is ADVI's too. Before it, what a box says in words.

import { MOST_LONGER } from "./points.js";
import { findStage, put, wantsStillness } from "./watch.js";

/** @typedef {import("./diagnose.js").Verdict} Verdict */
/** @typedef {{ words: string, numbers: string }} Line a sentence, and the numbers behind it */

/** @param {number} n */
const count = (n) => Math.round(n).toLocaleString("en-GB");
/** @param {number} value */
const write = (value, digits = 1) => value.toFixed(digits).replace("-", "−");
const NOT_YET = "Not yet to be trusted.";
const LONG = 15; // seconds that a reader waits without asking how many more

/** How much longer something takes, where that is long. @param {number} seconds */
function sayWait(seconds) {
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

/** The same to readers who have not heard of chains. @param {{ done: number }[]} chains */
const sayShare = (chains) =>
  `Looking for networks that explain the points: ${Math.round(100 * Math.min(...chains.map(({ done }) => done)))} %.`;

/**
 * What else keeps a verdict from passing, by the key of its reason.
 * @type {Record<string, (verdict: Verdict) => string>}
 */
const REASONS = {
  essSpread: ({ essSpread }) => `the spread is worth ${count(essSpread)} draws`,
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

const STARTED = `Four chains start anew. ${NOT_YET}`;
const SMALL = { started: "Looking for networks that explain the points.", agree: "Done. These pictures can be trusted." };
const STOPPED = `Stopped early, before the chains could be compared. ${NOT_YET}`;
export const FAILED = "Something went wrong in this browser, and the chains stopped. Reload the page to try again.";
const DAMAGED = "This link is damaged, so the box begins as it always does.";

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

export const SETTINGS = { chains: 4, tune: 400, draws: 500, targetAccept: 0.9 };

const RUNS = {
  running: "Stop", stopped: "Start again", failed: "Start again", doubt: "Walk longer", agree: "Run again",
};

const STEP = 0.02; // of all draws, between two lines of progress: words on a long page cost more than pictures

/** The strip as HTML, and the region that is spoken. */
export const STRIP = `<div class="live-verdict">
  <progress max="1" value="0" aria-label="How far the computation is"></progress>
  <div><p class="live-status">${STARTED}</p><p class="live-numbers"></p></div>
  <button type="button" data-do="run">Stop</button></div>
<p class="live-shared"></p>`;
export const SPOKEN = '<p class="live-spoken" role="status"></p>';

/** Words of the strip that need saying, by name. @type {Record<string, string>} */
const TERMS = {
  chain: "A walk through networks that could explain the points. Four begin at different places.",
  "R-hat": "How far the chains differ; 1 when they do not.",
  ESS: "How many independent draws the chains are worth; we want 400.",
  "prior sd": "How large weights are before any point is seen.",
  units: "Hidden units, of each of the two layers.",
  constants: "A third input that is always 1 (biases). Without it a network says of opposite places opposite things.",
  noise: "Bits of doubt that all networks share: more points would not help.",
  ignorance: "Bits of doubt since networks disagree: more points would help. Its fine lines are borders that networks drew.",
  ADVI: "A cheaper way, one normal distribution for each weight; its ELBO says how well they fit, the higher the better.",
  "group sd": "How far the weights of a layer differ between categories.",
  dial: "Its hand points to where attacks lie; thin hands are the latest networks of the four chains.",
};

/** The help behind "?": keys, words, and a link to what is drawn. @param {string} id @param {string[]} terms */
export const writeHelp = (id, terms) => `<details class="live-help">
  <summary><span aria-hidden="true">?</span><span class="live-unseen">Keys, words, link</span></summary>
  <div><p id="${id}-keys">Tap to put a point, drag to move it, tap it to remove it. By keyboard: arrows move a
    cursor, Enter puts or removes, M picks up and sets down, C changes the class.</p>
  <dl>${terms.map((name) => `<dt>${name}</dt><dd>${TERMS[name]}</dd>`).join("")}</dl>
  <p>The address of this page holds what you draw. <button type="button" data-do="share">Copy link</button></p></div>
</details>`;

/** @typedef {import("./sampler.js").Progress} Progress @typedef {import("./sampler.js").Done} Done */
/** @typedef {{ state: string, share: number, words: string, numbers: string }} Strip what it shows */

/** Run the strip of a box. @param {HTMLElement} box */
export function makeReport(box) {
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  const isSmall = !!box.closest(".live-small"), started = isSmall ? SMALL.started : STARTED;
  /** @type {Strip} */
  const chains = { state: "running", share: 0, words: started, numbers: "" };
  /** @type {Strip | null} */
  let advi = null;
  let stage = -1, told = 0;

  /** Say something to who listens. @param {string} text */
  const say = (text) => { find(".live-spoken").textContent = text; };

  /** Write the line of whoever's maps are shown. */
  function show() {
    const { state, share, words, numbers } = advi ?? chains;
    if (box.dataset.state !== state) box.dataset.state = state;
    put(find("progress"), { value: share });
    put(find(".live-status"), { textContent: words });
    put(find(".live-numbers"), { textContent: numbers });
    const run = advi ? "Chains again" : RUNS[/** @type {keyof typeof RUNS} */ (chains.state)];
    put(find("[data-do=run]"), { textContent: run });
  }

  /** A new run begins: what was said of the last one no longer holds. */
  function begin() {
    stage = -1;
    told = 0;
    Object.assign(chains, { state: "running", share: 0, words: started, numbers: "" });
    show();
  }

  /** Show how far a run is; true where its pictures are due. @param {Progress} progress @param {any} settings */
  function follow({ chains: all, seconds }, settings) {
    const share = all.reduce((sum, { done }) => sum + done, 0) / all.length;
    const next = wantsStillness() ? findStage(share) : stage + 1;
    if (share - told >= STEP) {
      told = share;
      Object.assign(chains, { share, words: isSmall ? sayShare(all) : sayProgress(all, settings, seconds) });
      show();
    }
    if (next === stage) return false;
    stage = next;
    return true;
  }

  /**
   * A run has ended.
   * @param {"agree" | "doubt" | "stopped" | "failed"} state
   * @param {{ words: string, numbers?: string }} line
   */
  function conclude(state, { words, numbers = "" }) {
    Object.assign(chains, { state, words, numbers });
    show();
    if (!advi) say(isSmall || !numbers ? words : `${words} ${numbers}`);
  }

  /** @param {Done} done */
  function judge({ verdict }) {
    chains.share = 1;
    const { words, numbers } = sayVerdict(verdict);
    conclude(verdict.converged ? "agree" : "doubt", { words: isSmall && verdict.converged ? SMALL.agree : words, numbers });
  }

  /** Give the strip to ADVI, or with null back to the chains. @param {Strip | null} line */
  function showAdvi(line) {
    advi = line;
    show();
  }

  /** A run could not go on; where none ever could, the picture comes back. @param {boolean} worked */
  function fail(worked) {
    if (worked) conclude("failed", { words: FAILED });
    else giveUp(box);
  }

  return { say, begin, follow, conclude, judge, showAdvi, fail, getState: () => chains.state, isAdvis: () => !!advi };
}

/** Let a figure be the picture that it was. @param {Element | null} box */
export function giveUp(box) {
  box?.closest("figure")?.classList.remove("is-live");
  box?.remove();
}

/** @typedef {{ points: any[], seed: number, longer: number }} Drawing what all boxes keep in the address */

/**
 * Let a box be used: its buttons, the one that goes on and the one that copies the link among them, and an address that
 * holds what is drawn, and brings another drawing.
 * @template {Drawing} T
 * @param {HTMLElement} box
 * @param {object} owner
 * @param {T} owner.drawing changed in place
 * @param {ReturnType<typeof makeReport>} owner.report
 * @param {{ stop: () => void }} owner.run
 * @param {() => void} owner.begin starts a run of what is drawn
 * @param {() => void} owner.refresh brings buttons into line with what is drawn
 * @param {(drawing: T) => string} owner.writeHash
 * @param {(hash: string) => T | null} owner.readHash
 * @param {Record<string, (argument: string) => void>} owner.actions of the box's own buttons
 * @returns {() => void} keeps what is drawn in the address
 */
export function listen(box, { drawing, report, run, begin, refresh, writeHash, readHash, actions }) {
  const first = `#${writeHash(drawing)}`, key = first.slice(0, first.indexOf("=") + 1);
  const tell = (/** @type {string} */ words) => {
    /** @type {HTMLElement} */ (box.querySelector(".live-shared")).textContent = words;
    report.say(words);
  };

  function goOn() {
    const state = report.getState();
    if (report.isAdvis()) return actions.chains("");
    if (state === "running") {
      run.stop();
      report.conclude("stopped", { words: STOPPED });
      return;
    }
    if (state === "agree") drawing.seed += 1;
    if (state === "doubt") drawing.longer = Math.min(MOST_LONGER, drawing.longer + 1);
    begin();
  }

  /** The address holds the drawing, so that reload and Back bring it again; a deck of slides has its own use for it. */
  function keep() {
    const hash = `#${writeHash(drawing)}`, isUntouched = hash === first && !location.hash.startsWith(key);
    if (isUntouched || hash === location.hash || box.closest(".reveal")) return;
    try { history.replaceState(history.state, "", hash); } catch { /* a browser may be asked too often */ }
  }

  async function share() {
    history.replaceState(history.state, "", `#${writeHash(drawing)}`);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    tell(copied ? "Link copied." : "The address of this page holds your drawing.");
  }

  function take() {
    const linked = readHash(location.hash);
    if (!linked && location.hash.startsWith(key)) tell(DAMAGED);
    if (!linked || location.hash === `#${writeHash(drawing)}`) return;
    drawing.points.splice(0, Infinity, ...linked.points);
    Object.assign(drawing, { ...linked, points: drawing.points });
    box.scrollIntoView();
    begin();
  }

  /** @type {Record<string, (argument: string) => void>} */
  const all = { ...actions, run: goOn, share };
  box.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-do]");
    if (!button) return;
    const [action, argument] = /** @type {string} */ (button.getAttribute("data-do")).split(" ");
    all[action](argument);
    refresh();
  });
  window.addEventListener("hashchange", take);
  take();
  return keep;
}
