import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { keepsResults, type StoreWithResults } from '../../../core/contract/result-store.js';
import { checkArguments } from '../../../core/errors/author-fault.js';
import { withFileLock } from '../../../core/kernel/file-lock.js';
import { isRecord, parsedJson } from '../../../core/kernel/json.js';
import { FILLED_TEXT, type OptionRule, SECRET_KEY } from '../../../core/kernel/options.js';
import { SealedState } from '../sealed-state.js';
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
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const tokens = fileTokens('.my-agent/tokens.json');
 * ```
 */
export function fileTokens(path: string): McpTokenStore {
  checkArguments({ of: 'fileTokens', given: { path }, rules: { path: FILLED_TEXT } });
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

/** Starts anew with every change. */
const LIFE_MS = 365 * 24 * 60 * 60 * 1000;
const RUN_ID = 'mcp-sign-ins';

/**
 * Stores tokens in a run store, encrypted: `stateSecret` is the secret. They stay for a year after their last renewal.
 * With another secret, the users sign in again.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const tokens = storeTokens(new SqliteRunStore({ path: 'agent.sqlite' }), 'a random secret of 32 characters');
 * ```
 */
export function storeTokens(store: StoreWithResults, stateSecret: string): McpTokenStore {
  const rules = { store: STORE, stateSecret: SECRET_KEY };
  checkArguments({ of: 'storeTokens', given: { store, stateSecret }, rules });
  const sealed = new SealedState(stateSecret, LIFE_MS);
  const read = async (key: string): Promise<{ readonly stored?: string; readonly text?: string }> => {
    const stored = await store.results.readResult({ runId: RUN_ID, handle: digestOf(key) });
    if (stored === undefined) return {};
    const text = sealed.open(stored, key);
    return typeof text === 'string' ? { stored, text } : { stored };
  };
  return {
    load: async (key) => (await read(key)).text,
    async save(key, text, expected) {
      const current = await read(key);
      if (current.text !== expected) return false;
      const place = { runId: RUN_ID, handle: digestOf(key), lifeMs: LIFE_MS };
      const replaces = current.stored ?? null;
      return store.results.keepResult({ ...place, text: sealed.seal(text, key), replaces });
    },
  };
}

const STORE: OptionRule = {
  accepts: keepsResults,
  fix: "a store of results: new SqliteRunStore({ path: 'agent.sqlite' })",
};

function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}
