import { ToolwrightError } from '../errors/toolwright-error.js';
import type { LoopEnd } from './loop-state.js';
import type { Reply } from './request-reply.js';

/** A run that its signal ended. */
export function abortedRun(): LoopEnd {
  return { status: 'aborted', error: new ToolwrightError('RunAborted', 'The run was aborted.') };
}

/** A run that got no reply. */
export function withoutReply(reply: Extract<Reply, { ok: false }>): LoopEnd {
  return reply.reason === 'aborted' ? abortedRun() : { status: 'failed', error: reply.error };
}
