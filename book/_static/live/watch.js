// @ts-check
// When chains run and when pictures are painted: soon after the last change, and only while somebody can see them.

const PATIENCE = 150; // milliseconds after the last change

/**
 * @typedef {object} Handle  what `sample` and `advise` return
 * @property {() => void} pause
 * @property {() => void} resume
 * @property {() => void} stop
 */

/**
 * Keep one job at a time. It is started anew by `restart`, rests while the box is out of sight or the tab in the
 * background, and is dropped by `stop`.
 * @param {Element} box
 * @param {(isCurrent: () => boolean) => Handle} begin
 */
export function makeRun(box, begin) {
  /** @type {Handle | null} */ let handle = null;
  /** @type {number | undefined} */ let timer;
  let inSight = false, isWanted = false, turn = 0;

  function follow() {
    const isSeen = inSight && !document.hidden;
    box.toggleAttribute("data-resting", !isSeen);
    if (isSeen && isWanted) start();
    else if (isSeen) handle?.resume();
    else handle?.pause();
  }

  function start() {
    const mine = ++turn;
    isWanted = false;
    handle = begin(() => mine === turn);
  }

  function stop() {
    window.clearTimeout(timer);
    turn += 1;
    handle?.stop();
    handle = null;
    isWanted = false;
  }

  function restart() {
    stop();
    timer = window.setTimeout(() => {
      isWanted = true;
      follow();
    }, PATIENCE);
  }

  new IntersectionObserver((entries) => {
    inSight = entries[entries.length - 1].isIntersecting;
    follow();
  }, { threshold: 0.1 }).observe(box);
  document.addEventListener("visibilitychange", follow);
  return { restart, stop };
}

/**
 * Let a painter run once before the next frame, however often it is asked. After a frame that took long it rests for
 * `rests` times as long, so that a slow machine keeps most of its time for the reader's hand.
 * @param {() => void} paint
 */
export function paintOnFrames(paint, rests = 0) {
  let isAsked = false, free = 0;
  const turn = (/** @type {number} */ now) => {
    if (now < free) {
      requestAnimationFrame(turn);
      return;
    }
    isAsked = false;
    paint();
    if (rests) requestAnimationFrame((then) => { free = then + rests * (then - now); });
  };
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(turn);
  };
}

/** Whether a reader asked for less motion. */
export const wantsStillness = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Which of the few pictures of a still progress is due, 0 to 3. @param {number} share of all draws */
export const findStage = (share) => Math.min(3, Math.floor(4 * share));
