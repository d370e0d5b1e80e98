import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { withFileLock } from '../../../core/kernel/file-lock.js';
import { isRecord, parsedJson } from '../../../core/kernel/json.js';
import type { McpTokenStore } from './connect-options.js';

/** Tokens of this process. */
export function memoryTokens(): McpTokenStore {
  const texts = new Map<string, string>();
  return {
    load: (key) => texts.get(key),
    save(key, text, expected) {
      if (texts.get(key) !== expected) return false;
      texts.set(key, text);
      return true;
    },
  };
}

/**
 * Stores tokens in a file that only its user can read (mode 0600; on Windows, the permissions of the folder apply).
 * Several processes can use it at the same time.
 *
 * @example
 * ```ts
 * const tokens = fileTokens('.my-agent/tokens.json');
 * ```
 */
export function fileTokens(path: string): McpTokenStore {
  return {
    load: (key) => readTexts(path)[key],
    save(key, text, expected) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      return withFileLock(path, (isHeld) => {
        const texts = readTexts(path);
        if (texts[key] !== expected) return false;
        const draft = `${path}.${process.pid}.new`;
        writeFileSync(draft, JSON.stringify({ ...texts, [key]: text }), { mode: 0o600 });
        // A draft of a crashed process may have had another mode.
        chmodSync(draft, 0o600);
        if (!isHeld()) return false;
        renameSync(draft, path);
        return true;
      });
    },
  };
}

function readTexts(path: string): Readonly<Record<string, string>> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const texts = parsedJson(text);
  if (!isRecord(texts))
    throw new Error(`${path} is not a file of tokens: it does not contain a JSON object.`);
  return texts as Record<string, string>;
}
