// Texts of strangers, shown as what they are: URLs, User-Agents, names. Nothing of them is markup, none turns the writing of its neighbours round,
// and what cannot be seen is written out.

// Controls, marks that turn the direction, joiners and blanks without a width, line separators, surrogates without their other half.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}|[\u{e0000}-\u{e007f}]/gu;

// The text with what cannot be seen as \u{…}.
export function plain(text) {
  return String(text).replace(UNSEEN, unseen => `\\u{${unseen.codePointAt(0).toString(16)}}`);
}

// An element that holds the text and keeps its direction to itself.
export function isolated(text) {
  const element = document.createElement("bdi");
  element.textContent = plain(text);
  return element;
}
