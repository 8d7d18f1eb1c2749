// The line that tells what became of an order, and that larder does not answer: the only words here that a screen reader is told unasked.

const line = () => document.getElementById("said");

export function say(sentence, isBad = false) {
  const element = line();
  element.className = isBad ? "said bad" : "said";
  if (element.textContent !== sentence) element.textContent = sentence;
}

// Takes back one sentence, if it still stands there.
export function unsay(begin) {
  if (line().textContent.startsWith(begin)) say("");
}
