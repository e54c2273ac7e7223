// Create elements; text is never parsed as markup.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children);
  return element;
}

export const percent = (p) => `${(p * 100).toFixed(1)} %`;

export function signed(number, digits) {
  const text = Math.abs(number).toFixed(digits);
  if (Number(text) === 0) return text;
  return (number > 0 ? "+" : "\u2212") + text;
}

const COMPONENTS = 7;
// A variable of the style sheet, which has a value for light and one for dark.
export const componentColour = (component) => (component === null ? "--edge" : `--component-${component % COMPONENTS}`);

export const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
