// @ts-check
// The strip below a live box: how far the chains are, what they were found to be, and the button that goes on.

import { findStage, wantsStillness } from "./watch.js";
import { STARTED, sayProgress, sayVerdict } from "./words.js";

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
