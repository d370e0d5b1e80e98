import { createHash } from 'node:crypto';
import { TOOL_NAME } from '../../discovery/tool-name.js';

const MOST_CHARACTERS = 64;
const DIGEST_CHARACTERS = 8;
/** An underscore that would begin by accident what stands for a character. */
const ACCIDENT = /_(?=dot|x[0-9a-f])/g;

/**
 * The name of a server's tool as a name that every provider takes: `browser.open` → `browser_dot_open`. Each
 * leads back to one server's name only; where it would be too long, a digest keeps it apart.
 */
export function localName(name: string, prefix?: string): string {
  const marked = name.replace(ACCIDENT, '_x5f_').replace(/[^A-Za-z0-9_-]/gu, markOf);
  const whole = prefix === undefined ? withLegalStart(marked) : `${prefix}_${marked}`;
  if (TOOL_NAME.test(whole)) return whole;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  return `${whole.slice(0, MOST_CHARACTERS - DIGEST_CHARACTERS - 1)}_${digest}`;
}

function withLegalStart(name: string): string {
  return /^[a-zA-Z_]/.test(name) ? name : name.replace(/^[\s\S]/u, markOf);
}

/** What stands for a character that a tool's name cannot have. */
function markOf(character: string): string {
  return character === '.' ? '_dot_' : `_x${character.codePointAt(0)?.toString(16)}_`;
}
