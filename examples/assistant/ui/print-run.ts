import type { CallRecord, ProgressUpdate, ToolLoopResult } from 'toolwright';
import { output } from './output.js';

const MAX_ARGUMENTS = 200;

/** Shows what a tool says while it runs. */
export function printUpdate(update: ProgressUpdate, { tool }: { readonly tool: string }): void {
  output.murmur(`  ${tool}: ${typeof update === 'string' ? update : JSON.stringify(update)}`);
}

/** Shows the calls of a run, what they say to the user, and the answer. */
export function printRun({ toolCalls, content }: ToolLoopResult): void {
  for (const call of toolCalls) printCall(call);
  if (content !== '') output.say(content);
}

function printCall({ name, rawArguments, durationMs, result }: CallRecord): void {
  const { isError, forUser, forLLM, silent } = result;
  output.murmur(
    `${isError ? '✗' : '→'} ${name} ${shorten(toText(rawArguments))} (${formatDuration(durationMs)})`,
  );
  if (isError) output.murmur(`  ${forLLM}`);
  if (forUser && !silent) output.say(`  ${forUser}`);
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function shorten(text: string): string {
  return text.length > MAX_ARGUMENTS ? `${text.slice(0, MAX_ARGUMENTS)}…` : text;
}

function formatDuration(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
