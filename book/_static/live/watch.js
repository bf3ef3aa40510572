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
 * Keep one job at a time. The first one waits until the pad is seen; a job is started anew by `restart`, rests while the
 * box is out of sight or the tab in the background, and is dropped by `stop`.
 * @param {Element} box
 * @param {(isCurrent: () => boolean) => Handle} begin
 */
export function makeRun(box, begin) {
  /** @type {Handle | null} */ let handle = null;
  /** @type {number | undefined} */ let timer;
  let inSight = false, wasSeen = false, isWanted = false, turn = 0;

  function follow() {
    const isSeen = inSight && !document.hidden;
    box.toggleAttribute("data-resting", !isSeen);
    if (isSeen && isWanted && wasSeen) start();
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
  const waiting = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    wasSeen = true;
    waiting.disconnect();
    follow();
  }, { threshold: 0.6 });
  waiting.observe(box.querySelector("[role=application], .live-stage") ?? box);
  document.addEventListener("visibilitychange", follow);
  return { restart, stop };
}

/**
 * Show one step after another as time goes by, and all of them at once to a reader who asked for less motion.
 * @param {number} steps
 * @param {number} rate steps a second
 * @param {(taken: number) => void} show
 * @param {boolean} [atOnce]
 * @returns {Handle}
 */
export function play(steps, rate, show, atOnce = wantsStillness()) {
  let taken = atOnce ? steps : 0, last = 0, frame = 0;
  const turn = (/** @type {number} */ now) => {
    taken = Math.min(steps, taken + (last ? Math.min(0.1, (now - last) / 1000) * rate : 0));
    last = now;
    show(Math.floor(taken));
    if (taken < steps) frame = requestAnimationFrame(turn);
  };
  const pause = () => cancelAnimationFrame(frame);
  const resume = () => {
    pause();
    last = 0;
    if (taken < steps) frame = requestAnimationFrame(turn);
  };
  if (taken < steps) resume();
  else show(steps);
  return { pause, resume, stop: pause };
}

/**
 * Let painters run after they were asked, however often: one a frame, in turn, so that no frame takes long and a slow
 * machine follows the reader's hand.
 * @param {(() => void)[]} painters
 */
export function paintOnFrames(painters) {
  let next = 0, left = 0;
  const turn = () => {
    painters[next]();
    next = (next + 1) % painters.length;
    left -= 1;
    if (left) requestAnimationFrame(turn);
  };
  return () => {
    if (!left) requestAnimationFrame(turn);
    left = painters.length;
  };
}

/**
 * Write what differs: on a long page a word written again costs as much as a new one.
 * @param {any} element
 * @param {Record<string, any>} properties such as textContent and value; with a dash in its name, an attribute
 */
export function put(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) {
      if (element.getAttribute(name) !== value) element.setAttribute(name, value);
    } else if (element[name] !== value) element[name] = value;
  }
}

/** Paint again when the page turns dark or light. @param {() => void} paint */
export function watchTheme(paint) {
  new MutationObserver(paint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Whether a reader asked for less motion. */
export const wantsStillness = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Which of the few pictures of a still progress is due, 0 to 3. @param {number} share of all draws */
export const findStage = (share) => Math.min(3, Math.floor(4 * share));
