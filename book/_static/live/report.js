// @ts-check
// The strip below a live box: how far the chains are, what they were found to be, and the button that goes on.

import { MOST_LONGER } from "./points.js";
import { findStage, wantsStillness } from "./watch.js";
import { STARTED, STOPPED, sayProgress, sayVerdict } from "./words.js";

export const SETTINGS = { chains: 4, tune: 400, draws: 500, targetAccept: 0.9 };

const RUNS = {
  running: "Stop", stopped: "Start again", failed: "Start again", doubt: "Walk longer", agree: "Another seed",
};

const STEP = 0.02; // of all draws, between two lines of progress: words on a long page cost more than pictures

/** The strip as HTML, and the region that is spoken. */
export const STRIP = `<div class="live-verdict">
  <progress max="1" value="0" aria-label="Draws of four chains"></progress>
  <p class="live-status">${STARTED}</p>
  <button type="button" data-do="run">Stop</button></div>`;
export const SPOKEN = '<p class="live-spoken" role="status"></p>';

/** @typedef {import("./sampler.js").Progress} Progress @typedef {import("./sampler.js").Done} Done */

/** Run the strip of a box. @param {HTMLElement} box */
export function makeReport(box) {
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  let stage = -1, told = 0;

  /** Say something to who listens. @param {string} text */
  const say = (text) => { find(".live-spoken").textContent = text; };

  /** A new run begins: what was said of the last one no longer holds. */
  function begin() {
    stage = -1;
    told = 0;
    if (box.dataset.state === "running" && find("progress").value === 0) return; // a hand drags: all stands already
    box.dataset.state = "running";
    find("progress").value = 0;
    find(".live-status").textContent = STARTED;
    find("[data-do=run]").textContent = RUNS.running;
  }

  /** Show how far a run is; true where its pictures are due. @param {Progress} progress @param {any} settings */
  function follow({ chains }, settings) {
    const share = chains.reduce((sum, { done }) => sum + done, 0) / chains.length;
    const next = wantsStillness() ? findStage(share) : stage + 1;
    if (share - told >= STEP) {
      told = share;
      find("progress").value = share;
      find(".live-status").textContent = sayProgress(chains, settings);
    }
    if (next === stage) return false;
    stage = next;
    return true;
  }

  /**
   * A run has ended.
   * @param {"agree" | "doubt" | "stopped" | "failed"} state
   * @param {string} words
   */
  function conclude(state, words) {
    box.dataset.state = state;
    find(".live-status").textContent = words;
    find("[data-do=run]").textContent = RUNS[state];
    say(words);
  }

  /** @param {Done} done */
  function judge({ verdict }) {
    find("progress").value = 1;
    conclude(verdict.converged ? "agree" : "doubt", sayVerdict(verdict));
  }

  return { say, begin, follow, conclude, judge };
}

/** @typedef {{ points: any[], seed: number, longer: number }} Drawing what all boxes keep in the address */

/**
 * Let a box be used: its buttons, the one that goes on and the one that copies the link among them, and an address that
 * brings another drawing.
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
 */
export function listen(box, { drawing, report, run, begin, refresh, writeHash, readHash, actions }) {
  function goOn() {
    if (box.dataset.state === "running") {
      run.stop();
      report.conclude("stopped", STOPPED);
      return;
    }
    if (box.dataset.state === "agree") drawing.seed += 1;
    if (box.dataset.state === "doubt") drawing.longer = Math.min(MOST_LONGER, drawing.longer + 1);
    begin();
  }

  async function share() {
    history.replaceState(null, "", `#${writeHash(drawing)}`);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    const words = copied ? "Link copied." : "The address of this page now holds your drawing.";
    /** @type {HTMLElement} */ (box.querySelector(".live-shared")).textContent = words;
    report.say(words);
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
  window.addEventListener("hashchange", () => {
    const linked = readHash(location.hash);
    if (!linked) return;
    drawing.points.splice(0, Infinity, ...linked.points);
    Object.assign(drawing, { ...linked, points: drawing.points });
    box.scrollIntoView();
    begin();
  });
}
