import { setTimeout as pause } from 'node:timers/promises';
import type { CallScope } from '../contract/call.js';
import { InvalidOptionsError, ToolDeclarationError } from '../errors/author-fault.js';
import { withinLimits } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import type { ConversationsConfig, NextTurn, TurnOwner } from './conversations-options.js';

/** What an application gives for a turn, or why the turn cannot be run here. */
export type TurnParts =
  | { readonly status: 'given'; readonly given: ConversationsConfig; readonly scope: CallScope }
  /** Somebody asked for the end of the turn. */
  | { readonly status: 'aborted' }
  /** This process closes; another one asks again. */
  | { readonly status: 'left' }
  | { readonly status: 'failed'; readonly error: Error };

/** Functions of an application, and for how long they are asked again. */
export interface PartSources {
  readonly configOf: (turn: NextTurn) => ConversationsConfig | Promise<ConversationsConfig>;
  readonly scopeOf: (turn: TurnOwner) => CallScope | Promise<CallScope>;
  readonly leaseMs: number;
  /** Aborted when no turn is to begin any more. */
  readonly closing: AbortSignal;
  readonly warn: (message: string, fields: Record<string, unknown>) => void;
}

/** What ends the asking: an abort of the turn, or the loss of its conversation. */
interface AskingEnds {
  readonly signal: AbortSignal;
  readonly lost: AbortSignal;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** How long an aborted turn waits for its config: its end is told with more where the tools are known. */
const ABORTED_WITHIN_MS = 5_000;

/**
 * Asks for the config and the scope of a turn: again and again where that fails, because a database may be away for a
 * moment, but no longer than a lease, because others wait behind the turn. An abort does not wait for them.
 *
 * @throws InvalidOptionsError, ToolDeclarationError: asked again, they would say the same; the reason of `lost`.
 */
export async function askForParts(
  next: NextTurn,
  sources: PartSources,
  { signal, lost }: AskingEnds,
): Promise<TurnParts> {
  const { configOf, scopeOf, leaseMs, closing, warn } = sources;
  const limits = signal.aborted
    ? { signal: lost, timeoutMs: ABORTED_WITHIN_MS }
    : { signal: AbortSignal.any([signal, lost]), timeoutMs: undefined };
  const since = performance.now();
  for (let tries = 1, wait = FIRST_PAUSE_MS; ; tries += 1, wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
    let asked = 'config';
    try {
      const given = await withinLimits(configOf(next), limits);
      asked = 'scope';
      return { status: 'given', given, scope: await withinLimits(scopeOf(next), limits) };
    } catch (error) {
      lost.throwIfAborted();
      if (signal.aborted) return { status: 'aborted' };
      if (error instanceof InvalidOptionsError || error instanceof ToolDeclarationError) throw error;
      if (performance.now() - since + wait >= leaseMs)
        return { status: 'failed', error: givenUp({ asked, tries, leaseMs }, error) };
      const { conversationId } = next;
      warn(`\`${asked}\` of Conversations failed for a turn of '${conversationId}'; it is asked again`, {
        error,
        tries,
      });
    }
    await pause(wait, undefined, { signal: AbortSignal.any([signal, lost, closing]) }).catch(() => {});
    lost.throwIfAborted();
    if (signal.aborted) return { status: 'aborted' };
    if (closing.aborted) return { status: 'left' };
  }
}

interface Asking {
  readonly asked: string;
  readonly tries: number;
  readonly leaseMs: number;
}

function givenUp({ asked, tries, leaseMs }: Asking, cause: unknown): Error {
  const often = `${tries} ${tries === 1 ? 'time' : 'times'} within ${leaseMs} ms`;
  const message = `The turn was not run: \`${asked}\` of Conversations failed ${often}, at last with: ${errorMessage(cause)}`;
  return new Error(message, { cause });
}
