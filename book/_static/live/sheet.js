// @ts-check
// The entry test as a form: it keeps nothing and sends nothing; what it gives is a line of CSV to copy.
// Without scripts, and on paper, the page is a list of questions with their answers.

const LETTERS = "abcd";
export const NO_ANSWER = "x";
const CODE = /^[\p{L}\p{N}_-]{2,12}$/u;

/**
 * The line of a CSV for one sheet, or what is still missing.
 * @param {string} student the code that a student chose
 * @param {string} when "before", "after", or "" where nothing was chosen
 * @param {string[]} answers a letter for each question; "" is no answer
 * @returns {{ line?: string, missing?: string }}
 */
export function writeLine(student, when, answers) {
  const code = student.trim();
  if (!CODE.test(code)) return { missing: "Write your code: two to twelve letters and digits, such as AB12." };
  if (when !== "before" && when !== "after") return { missing: "Choose before or after." };
  return { line: [code, when, ...answers.map((answer) => answer || NO_ANSWER)].join(",") };
}

/**
 * An element with what is in it.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} content
 */
function make(tag, attributes, ...content) {
  const element = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...content);
  return element;
}

/**
 * One choice.
 * @param {string} name
 * @param {string} value
 * @param {(Node | string)[]} content
 */
const choice = (name, value, ...content) =>
  make("label", {}, make("input", { type: "radio", name, value }), ...content);

/**
 * Turn a question of the list into a group of choices. Its own text stays where it is, as the group's name.
 * @param {Element} item
 * @param {number} number
 */
function askQuestion(item, number) {
  const options = item.querySelector("ol");
  if (!options) return;
  const name = `q${number}`, text = options.previousElementSibling ?? item;
  text.id ||= `${name}-text`;
  options.setAttribute("role", "radiogroup");
  options.setAttribute("aria-labelledby", text.id);
  [...options.children].forEach((option, i) => {
    option.setAttribute("role", "presentation");
    const inner = option.querySelector("p") ?? option;
    inner.replaceChildren(choice(name, LETTERS[i], ...inner.childNodes));
  });
  options.append(make("li", { class: "no-answer", role: "presentation" }, choice(name, NO_ANSWER, "I do not know.")));
}

/** Make the list a form, and put the line that it gives below it. */
function start() {
  const list = document.querySelector("ol.test-sheet"), paper = document.querySelector(".test-code");
  if (!list || !paper) return;
  const form = /** @type {HTMLFormElement} */ (make("form", { autocomplete: "off", class: "test-form" }));
  list.before(form);
  const student = /** @type {HTMLInputElement} */ (
    make("input", { type: "text", name: "student", maxlength: "12", size: "8" }));
  paper.classList.add("on-paper");
  form.append(
    make("p", { class: "test-who" }, make("label", {}, "Your code ", student), choice("when", "before", "before"),
      choice("when", "after", "after")),
    list,
  );
  [...list.children].forEach((item, i) => askQuestion(item, i + 1));
  const n = list.children.length;
  const line = /** @type {HTMLInputElement} */ (make("input", { type: "text", readonly: "", id: "test-line" }));
  const said = make("output", { for: "test-line" });
  const copy = make("button", { type: "button", class: "btn" }, "Copy the line");
  form.append(make("div", { class: "test-result" },
    make("label", { for: "test-line" }, "The line for your lecturer"), line, copy, said));

  const read = (/** @type {string} */ name) => String(new FormData(form).get(name) ?? "");
  const update = () => {
    const answers = Array.from({ length: n }, (_, i) => read(`q${i + 1}`));
    const { line: written, missing } = writeLine(student.value, read("when"), answers);
    line.value = written ?? "";
    copy.toggleAttribute("disabled", !written);
    said.textContent = missing ?? `${answers.filter(Boolean).length} of ${n} questions have an answer.`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  copy.addEventListener("click", async () => {
    line.select();
    try {
      await navigator.clipboard.writeText(line.value);
      said.textContent = "Copied. This page keeps nothing: paste the line where your lecturer asks for it.";
    } catch {
      said.textContent = "The line is selected: copy it with Ctrl+C.";
    }
  });
  update();
}

if (typeof document !== "undefined") start();
