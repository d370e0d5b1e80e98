import { CallScanner } from './call-scanner.js';
import type { DraftCall } from './draft-call.js';
import { type KnownToolSource, knownTools, type UnknownTools } from './known-tools.js';

/** What stands in a text. */
export interface ScannedText {
  readonly calls: readonly DraftCall[];
  /** The text before the first call, untrimmed; the whole text if there is none. */
  readonly textBefore: string;
}

/** Finds the calls of known tools in a text; without tools, of any name. */
export function scanText(
  text: string,
  tools: KnownToolSource | undefined,
  unknown: UnknownTools = {},
): ScannedText {
  const scanner = new CallScanner(knownTools(tools, unknown));
  const calls: DraftCall[] = [];
  let textBefore = '';
  for (const piece of [...scanner.push(text), ...scanner.end()]) {
    if (piece.kind === 'calls') calls.push(...piece.calls);
    else if (calls.length === 0) textBefore += piece.text;
  }
  return { calls, textBefore };
}
