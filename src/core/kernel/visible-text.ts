/**
 * Characters that change how a text looks, or what a terminal does, without being seen: controls (ESC, DEL and
 * C1 too) and marks of direction. What joins the parts of an emoji may stay.
 */
const UNSEEN = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Nearly all texts are nothing else, which is seen faster. */
const PLAIN = /^[\n\t -~]*$/;

/** A text in which nothing is hidden: what cannot be seen stands there as its code. Lines and tabs stay. */
export function visibleText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSEEN, codeOf);
}

/** The same on one line, so that a text cannot pass for further lines. */
export function visibleLine(text: string): string {
  return visibleText(text).replace(/[\n\t]/g, codeOf);
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** As JSON writes it, so that a JSON text with codes in it says the same as before. */
function codeOf(character: string): string {
  const units = character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return SHORT[character] ?? units.join('');
}
