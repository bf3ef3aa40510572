// @ts-check
// Wakes the live boxes of a page: where a figure of a class such as `live-moons` comes near, its script comes.
// Without modules, workers or this script the figure stays what it is, a picture with a caption.

/** @type {Record<string, string>} */
const KINDS = {
  "live-moons": "./moons.js", "live-tie": "./tie.js", "live-funnel": "./funnel.js", "live-names": "./names.js",
  "live-layers": "./layers.js",
};
const NEAR = "100px"; // a phone's first screen is to be light

/** Fetch the script of a box and let it take the picture's place. */
async function wake(/** @type {HTMLElement} */ figure, /** @type {string} */ script) {
  try {
    const [{ supported }, { build }] = await Promise.all([import("./sampler.js"), import(script)]);
    if (!supported) return;
    const box = document.createElement("div");
    box.className = "live-box";
    figure.prepend(box);
    figure.classList.add("is-live");
    await build(figure, box);
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
  for (const kind of Object.keys(KINDS)) {
    document.querySelectorAll(`figure.${kind}`).forEach((figure) => {
      observer.observe(figure);
      if (isLinked && location.hash.startsWith(`#${kind.slice(5)}=`)) figure.scrollIntoView();
    });
  }
}

/** Words of the prose set what a box is set to: links that name an input of it, and its value. */
function listenToWords() {
  document.addEventListener("click", (event) => {
    const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest("a[data-drives]"));
    if (!link) return;
    const { drives = "", value = "" } = link.dataset, figure = document.querySelector(link.hash);
    const input = /** @type {HTMLInputElement | null} */ (figure?.querySelector(`.live-box [data-set=${drives}]`));
    if (!figure || !input) return; // the link leads to a picture
    event.preventDefault();
    figure.scrollIntoView({ block: "nearest" });
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

if (typeof Worker === "function") {
  watch();
  listenToWords();
}
