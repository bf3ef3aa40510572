// @ts-check
// Wakes the live boxes of a page: where a figure of the class `live-moons` or `live-tie` comes near, its script comes.
// Without modules, workers or this script the figure stays what it is, a picture with a caption.

/** @type {Record<string, string>} */
const KINDS = { "live-moons": "./moons.js", "live-tie": "./tie.js" };
const NEAR = "300px";

/** Fetch the script of a box and let it take the picture's place. */
async function wake(/** @type {HTMLElement} */ figure, /** @type {string} */ script) {
  try {
    const [{ supported }, { build }] = await Promise.all([import("./sampler.js"), import(script)]);
    if (!supported) return;
    const box = document.createElement("div");
    box.className = "live-box";
    figure.prepend(box);
    figure.classList.add("is-live");
    build(figure, box);
  } catch (error) {
    figure.classList.remove("is-live");
    figure.querySelector(".live-box")?.remove();
    console.warn("The live box stays a picture:", error);
  }
}

/** Wait for each box to come near; one that a link is about comes at once. A page that is reloaded stays where it was. */
function watch() {
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      const kind = Object.keys(KINDS).find((name) => target.classList.contains(name));
      if (kind) wake(/** @type {HTMLElement} */ (target), KINDS[kind]);
    }
  }, { rootMargin: NEAR });
  const [arrival] = performance.getEntriesByType("navigation");
  const isLinked = /** @type {any} */ (arrival)?.type === "navigate";
  for (const [kind, word] of [["live-moons", "moons="], ["live-tie", "tie="]]) {
    document.querySelectorAll(`figure.${kind}`).forEach((figure) => {
      observer.observe(figure);
      if (isLinked && location.hash.startsWith(`#${word}`)) figure.scrollIntoView();
    });
  }
}

if (typeof Worker === "function") watch();
