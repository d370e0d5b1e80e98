import type { Surroundings } from './surroundings.js';
import { UserFault } from './user-fault.js';

const MAX_BYTES = 1_000_000;
const HINT_AFTER_MS = 3_000;

/** Reads standard input as text. Throws a {@link UserFault} if it is too long or not UTF-8. */
export async function readStandardInput({
  stdin,
  stderr,
}: Pick<Surroundings, 'stdin' | 'stderr'>): Promise<string> {
  const hint = setTimeout(
    () => stderr.write('assistant: waiting for standard input to end\n'),
    HINT_AFTER_MS,
  );
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) throw new UserFault('standard input is too long', { exitCode: 2 });
    }
    return decode(Buffer.concat(chunks));
  } finally {
    clearTimeout(hint);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UserFault('standard input is not text (UTF-8)', { exitCode: 2, cause });
  }
}
