import { ToolwrightError } from '../errors/toolwright-error.js';
import type { LoopEnd } from './loop-state.js';
import type { Reply } from './request-reply.js';

/** A run that its signal ended; `content` is what was streamed of the reply that this cut off. */
export function abortedRun(signal: AbortSignal | undefined, content = ''): LoopEnd {
  const error = new ToolwrightError('RunAborted', 'The run was aborted.', { cause: signal?.reason });
  return { status: 'aborted', content, error };
}

/** A run that got no reply. */
export function withoutReply(reply: Extract<Reply, { ok: false }>, signal: AbortSignal | undefined): LoopEnd {
  if (reply.reason === 'aborted') return abortedRun(signal, reply.streamed);
  return { status: 'failed', error: reply.error };
}
