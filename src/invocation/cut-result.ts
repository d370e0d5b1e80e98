import type { Content } from '../contract/content-part.js';
import { ToolResult } from '../contract/tool-result.js';

/** What is kept of a result that was cut, for the application. */
export interface CutDetails {
  /** The whole text. */
  readonly full: string;
  /** The tool's own details, where it gave any. */
  readonly details?: unknown;
}

const BRAND = Symbol.for('toolwright.CutDetails');

/** Whether a result's details are what is kept of one that was cut, also by another copy of this package. */
export function isCutDetails(details: unknown): details is CutDetails {
  return typeof details === 'object' && details !== null && BRAND in details;
}

/** A result of at most so many characters for the model, with a mark that says how much is missing. */
export function cutResult(result: ToolResult, limit: number): ToolResult {
  const { forLLM, content, details } = result;
  if (forLLM.length <= limit) return result;
  const kept = whole(forLLM.slice(0, limit));
  const text = `${kept}\n[${forLLM.length - kept.length} more characters were cut off]`;
  const full: CutDetails = { full: forLLM, ...(details === undefined ? {} : { details }) };
  return new ToolResult({
    ...result,
    forLLM: text,
    content: content && cutContent(content, text),
    // A mark that is not enumerable: it is in no JSON and no copy.
    details: Object.defineProperty(full, BRAND, { value: true }),
  });
}

/** Providers send the parts, where there are any: their text is cut as well, and pictures stay. */
function cutContent(content: Content, text: string): Content {
  return [{ type: 'text', content: text }, ...content.filter(({ type }) => type !== 'text')];
}

/** Without half a character at the end: lone surrogates are no valid text for an API. */
function whole(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}
