import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BudgetAmounts, StoreWithBudgets } from '../../../core/contract/budget-ledger.js';
import type { StoreWithResults } from '../../../core/contract/result-store.js';
import { withFileLock } from '../../../core/kernel/file-lock.js';
import { isRecord, parsedJson } from '../../../core/kernel/json.js';
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

/** Starts anew with every change. */
const LIFE_MS = 365 * 24 * 60 * 60 * 1000;
/** Under the lock, a text is read and written. */
const LOCKED_MS = 10_000;
const RUN_ID = 'mcp-sign-ins';
const ONE: BudgetAmounts = { tokens: 0, cost: 0, calls: 1, steps: 0, timeMs: 0 };
const NONE: BudgetAmounts = { ...ONE, calls: 0 };

/**
 * Stores tokens in a run store, encrypted: `stateSecret` is the secret. They stay for a year after their last renewal.
 * With another secret, the users sign in again.
 *
 * @example
 * ```ts
 * const tokens = storeTokens(new SqliteRunStore({ path: 'agent.sqlite' }), 'a long secret');
 * ```
 */
export function storeTokens(store: StoreWithResults & StoreWithBudgets, stateSecret: string): McpTokenStore {
  const sealed = new SealedState(stateSecret, LIFE_MS);
  const load = async (key: string): Promise<string | undefined> => {
    const text = await store.results.readResult({ runId: RUN_ID, handle: digestOf(key) });
    const opened = text === undefined ? undefined : sealed.open(text, key);
    return typeof opened === 'string' ? opened : undefined;
  };
  return {
    load,
    async save(key, text, expected) {
      const handle = digestOf(key);
      const id = randomUUID();
      const account = { key: `${RUN_ID}:${handle}`, limits: { calls: 1 } };
      // A reservation of the whole account is a lock.
      const lock = await store.budgets.reserve({ id, accounts: [account], amounts: ONE, leaseMs: LOCKED_MS });
      if (lock.status !== 'reserved') return false;
      try {
        if ((await load(key)) !== expected) return false;
        await store.results.keepResult({
          ...{ runId: RUN_ID, handle, lifeMs: LIFE_MS },
          text: sealed.seal(text, key),
        });
        return true;
      } finally {
        await store.budgets.settle(id, NONE);
      }
    },
  };
}

function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}
