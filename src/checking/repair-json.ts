import { createRequire } from 'node:module';
import { isCutOff } from './is-cut-off.js';

/** What broken JSON text was taken to mean, or why it is not taken to mean anything. */
export type RepairedJson =
  | { readonly ok: true; readonly value: unknown; readonly repair: string }
  | { readonly ok: false; readonly problem: string };

/** Longer texts and deeper nesting are not repaired: repair is for slips, not for hostile input. */
const MAX_LENGTH = 200_000;
const MAX_DEPTH = 100;

const CUT_OFF: RepairedJson = {
  ok: false,
  problem: 'the arguments are cut off in the middle of a value; send them again, complete',
};

const require = createRequire(import.meta.url);

/**
 * Repairs what models get wrong about JSON and what leaves no doubt: fences, text around the object,
 * comments, trailing commas, quotes, missing closing brackets. A value that was
 * cut in its middle is never completed.
 */
export function repairJson(text: string): RepairedJson {
  if (text.length > MAX_LENGTH)
    return { ok: false, problem: 'the arguments are no valid JSON, and too long to repair' };
  if (!/[{[]/.test(text))
    return { ok: false, problem: 'the arguments must be a JSON object, not plain text' };
  const span = objectSpan(text);
  if (span.depth > MAX_DEPTH)
    return { ok: false, problem: 'the arguments are no valid JSON, and nested too deeply to repair' };
  const inner = span.end === undefined ? undefined : parse(text.slice(span.start, span.end));
  if (inner !== undefined)
    return { ok: true, value: inner.value, repair: 'took the JSON object out of the text around it' };
  if (span.end === undefined && isCutOff(text)) {
    return CUT_OFF;
  }
  return repairByLibrary(text);
}

function repairByLibrary(text: string): RepairedJson {
  const { jsonrepair } = require('jsonrepair') as typeof import('jsonrepair');
  try {
    const repaired = jsonrepair(text);
    // A key whose value is missing is given `null`, which nobody sent.
    if (nulls(repaired) > nulls(text)) return CUT_OFF;
    return { ok: true, value: JSON.parse(repaired), repair: 'repaired the JSON' };
  } catch {
    return { ok: false, problem: 'the arguments are no valid JSON' };
  }
}

/** Words that mean `null` in JSON, JavaScript and Python. */
function nulls(text: string): number {
  return text.match(/\b(?:null|undefined|None)\b/g)?.length ?? 0;
}

interface ObjectSpan {
  readonly start: number;
  /** Behind the bracket that closes the first object; absent where none does. */
  readonly end?: number;
  readonly depth: number;
}

/** The first object in a text, by its brackets outside of strings. */
function objectSpan(text: string): ObjectSpan {
  const start = text.indexOf('{');
  let open = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = Math.max(start, 0); at < text.length; at += 1) {
    const character = text[at];
    if (isInString && character === '\\') at += 1;
    else if (character === '"') isInString = !isInString;
    else if (isInString) continue;
    else if (character === '{' || character === '[') deepest = Math.max(deepest, ++open);
    else if (character === '}' || character === ']') open -= 1;
    if (open === 0 && character === '}' && !isInString) return { start, end: at + 1, depth: deepest };
  }
  return { start, depth: deepest };
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
