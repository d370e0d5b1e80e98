import type { CallJournal, Suspension, Wait } from '../contract/call.js';
import { argumentsBefore, type CheckedCall } from './check-arguments.js';
import { type Call, contextOf } from './context.js';
import type { Block, BodyOutcome, CallEnvironment, CallOutcome, HeldOutcome } from './invocation.js';
import { writeEnd } from './result.js';
import { failedResult } from './result-text.js';
import { awaitWork } from './run-body.js';
import { withoutApproval } from './waits.js';

/** What the outcome of a call contains that does not run; of a missing tool, its name. */
type BlockedCall = Parameters<typeof writeEnd>[0] & CheckedCall & { readonly environment: CallEnvironment };

/** The outcome of a call that does not run, or not now; a call that a hook holds waits for nothing itself. */
export function blockedResult(call: BlockedCall, block: Block | BodyOutcome | HeldOutcome): CallOutcome {
  const { tool, environment } = call;
  if (block.type === 'held') return suspended(tool.name, { waits: [], journal: journalOf(call) });
  if (block.type !== 'waits') return writeEnd(call, block);
  const { wait, because } = block;
  if (environment.canSuspend) {
    const journal = journalOf(call);
    return suspended(tool.name, {
      waits: [wait],
      journal: wait.kind === 'approval' ? withoutApproval(journal) : journal,
    });
  }
  const why = because === undefined ? '' : ` Why it asks: ${because}`;
  const message =
    wait.kind === 'client'
      ? `The tool '${tool.name}' is executed by the client; it cannot run here.`
      : `The tool '${tool.name}' needs an approval, and nobody can give it here; it was not run.${why}`;
  return { status: 'refused', result: failedResult('NotExecutableHere', message) };
}

/** What is known of a call, for when it is made again. */
function journalOf(call: CheckedCall): CallJournal {
  const { answers = [], once = [], ...known } = call.request.journal ?? {};
  return { ...known, arguments: argumentsBefore(call), answers, once };
}

/** The outcome of a call that waits, with the error that stands for it if nobody can be asked. */
export function suspended(tool: string, suspension: Suspension): CallOutcome {
  const message = `The call of '${tool}' waits for an answer, and nobody can give it here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}

/**
 * The outcome of a call whose body asked a question that has no answer yet, or began a run that waits: the call waits,
 * whatever the body returned. Work of `once` that is under way then has the same limits as a body.
 */
export function outcomeOf(call: Call, body: BodyOutcome): CallOutcome | Promise<CallOutcome> {
  const { tool, task, scope, environment } = call;
  const replay = call.context?.replay;
  const waiting = environment.innerWaits?.() ?? NO_WAITS;
  if ((replay === undefined && waiting.length === 0) || scope.signal?.aborted) return writeEnd(call, body);
  if (replay?.refused !== undefined)
    return { status: 'refused', result: failedResult('NotExecutableHere', replay.refused.message) };
  // Nobody waits for what a body began that was cut off, or that answers later.
  const hasEnded = (body.type === 'returned' || body.type === 'error') && task?.id === undefined;
  const inner = hasEnded ? waiting : NO_WAITS;
  if (!replay?.isSuspended && inner.length === 0) return writeEnd(call, body);
  if (replay === undefined) return suspended(tool.name, { waits: inner, journal: journalOf(call) });
  return awaitWork<CallOutcome>(call, replay.suspension(argumentsBefore(call)), {
    onEnd: (waited) => {
      if (waited.type !== 'returned') return writeEnd(call, waited);
      const { waits, journal } = waited.value as Suspension;
      return suspended(tool.name, { waits: [...waits, ...inner], journal });
    },
    stop: (reason) => contextOf(call).stop(reason),
  });
}

const NO_WAITS: readonly Wait[] = [];
