// What the filters of the register and of the tables share.
"use strict";

/** A list to choose from, below its label. */
function makeSelect(name, label, options, chosen) {
  const select = Object.assign(document.createElement("select"), { name });
  options.forEach(([value, text]) => select.add(new Option(text, value, false, value === chosen)));
  const box = document.createElement("label");
  box.append(label, select);
  return box;
}
