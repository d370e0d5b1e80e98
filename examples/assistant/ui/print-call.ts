import type { CallRecord } from 'toolwright';
import type { Output } from './output.js';

const MAX_ARGUMENTS = 200;

/** Prints a call that has ended: its arguments, its duration and whether it succeeded. */
export function printCall({ name, rawArguments, durationMs, result }: CallRecord, output: Output): void {
  const { isError, forLLM } = result;
  output.murmur(
    `${isError ? '✗' : '✓'} ${name} ${shorten(toText(rawArguments))} (${formatDuration(durationMs)})`,
  );
  if (isError) output.murmur(`  ${forLLM}`);
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
