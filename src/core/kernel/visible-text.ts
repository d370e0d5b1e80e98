/**
 * Invisible characters that change the look of a text or control a terminal: control characters (including ESC, DEL
 * and C1) and direction marks. Joiners of emoji are allowed.
 */
const UNSEEN = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Matches nearly all texts, with a faster check. */
const PLAIN = /^[\n\t -~]*$/;

/** Shows invisible characters as their codes. Line breaks and tabs stay. */
export function visibleText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSEEN, codeOf);
}

/** The same on one line, so that a text cannot imitate further lines. */
export function visibleLine(text: string): string {
  return visibleText(text).replace(/[\n\t]/g, codeOf);
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** In JSON notation, so that a JSON text keeps its meaning. */
function codeOf(character: string): string {
  const units = character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return SHORT[character] ?? units.join('');
}
