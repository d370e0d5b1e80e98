/**
 * Whether broken JSON text ends in the middle of a value: in a string that was never closed, or in a number
 * or word that may have gone on. Such a value is never completed: a path or an
 * amount that lost its end is a different path or amount. In doubt it is cut off.
 */
export function isCutOff(text: string): boolean {
  const body = withoutFence(text);
  const quote = body.includes('"') ? '"' : "'";
  const last = lastQuote(body, quote);
  if (last >= 0 && opensString(body, last)) return true;
  // A bare word or number at the very end, or a key without its value; white space would show that it was complete.
  return /[\w.+:-]$/.test(body.slice(last + 1));
}

function withoutFence(text: string): string {
  return text.trimStart().replace(/\s*```\s*$/, '');
}

function lastQuote(text: string, quote: string): number {
  for (let at = text.lastIndexOf(quote); at >= 0; at = text.lastIndexOf(quote, at - 1)) {
    if (!isEscaped(text, at)) return at;
    if (at === 0) return -1;
  }
  return -1;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

/** A quote after `:`, `,`, `[`, `{` or at the start opens a string; unless it is an empty string's end. */
function opensString(text: string, at: number): boolean {
  const before = text.slice(0, at).trimEnd().at(-1);
  return before === undefined || ':,[{'.includes(before);
}
