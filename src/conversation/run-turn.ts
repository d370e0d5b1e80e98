import type { AsyncCallback } from '../contract/tool.js';
import { abortedRun } from '../loop/aborted-run.js';
import type { RunStart, RunSurroundings } from '../loop/begin-run.js';
import { driveLoop } from '../loop/drive-loop.js';
import type { LoopEvent } from '../loop/loop-event.js';
import type { ToolLoopResult } from '../loop/loop-result.js';
import { beginState, endState } from '../loop/loop-state.js';
import { driveStoredRun } from '../loop/resume-stored-run.js';
import { resumeWith } from '../loop/resume-tool-loop.js';
import { checkOwner } from '../loop/run-owner.js';
import type { ConversationConfig } from './conversation-config.js';
import type { EventHub } from './event-hub.js';
import type { OpenTurn } from './open-turn.js';
import { tellUser } from './tell-user.js';

/** What the run of a turn needs beside the turn. */
export interface TurnSurroundings {
  readonly config: ConversationConfig;
  readonly events: EventHub;
  readonly onAsyncResult: AsyncCallback;
}

/** Runs a turn from where it stands, tells of it, and notes in the turn how far it has come. */
export async function runTurn(
  open: OpenTurn,
  { config, events, onAsyncResult }: TurnSurroundings,
): Promise<ToolLoopResult> {
  const promptLength = promptLengthOf(open, config);
  const running = new Set<string>();
  const sink = (event: LoopEvent): void => {
    if (event.type === 'call-start') running.add(event.callId);
    if (event.type === 'call-end' || event.type === 'call-suspended') running.delete(event.callId);
    // What work reports that outlives its call is told as `task-progress`.
    if (event.type === 'call-progress' && !running.has(event.callId)) return;
    if (event.type === 'run-end') open.end(event.result, promptLength);
    events.tell(event);
    if (event.type === 'call-end')
      tellUser(events, event.result, { tool: event.tool, callId: event.callId, taskId: event.record.taskId });
  };
  const result = await drive(open, {
    config: { ...config, signal: open.signal, onAsyncResult },
    surroundings: {
      scope: open.scope,
      sink,
      hasReader: () => events.hasListeners,
      onStep: (run, end) => open.step(run, { end, promptLength }),
    },
  });
  open.end(result, promptLength);
  return result;
}

/** How many messages the run has before those of the conversation; a suspended run keeps the prompt it had. */
function promptLengthOf({ begin, history }: OpenTurn, { systemPrompt }: ConversationConfig): number {
  if (begin.status !== 'running') return begin.state.messages.length - history.messages.length;
  return systemPrompt === undefined ? 0 : 1;
}

interface Drive {
  readonly config: ConversationConfig;
  readonly surroundings: Omit<RunSurroundings, 'keep'>;
}

/**
 * A run that the store keeps is claimed there, so that of two processes with the same conversation one goes on
 * with it. Of a turn that was aborted it does not matter: it ends here.
 */
async function drive(open: OpenTurn, { config, surroundings }: Drive): Promise<ToolLoopResult> {
  const { begin, signal } = open;
  const { store } = config;
  if (begin.status === 'answered' && begin.isKept && store !== undefined) {
    const { answers, answeredBy, state } = begin;
    const resumption = { answers, answeredBy, scope: open.scope };
    try {
      return await driveStoredRun(config, { store, runId: state.runId }, { resumption, surroundings });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
  const start = startUnlessAborted(open, config);
  if (start !== undefined) return driveLoop(config, start, surroundings);
  const { messages } = begin.status === 'running' ? open.history : begin.state;
  return endState(beginState(messages), abortedRun(signal));
}

/** An abort ends a turn also where its run cannot be gone on with; then there is nothing to begin. */
function startUnlessAborted(open: OpenTurn, config: ConversationConfig): RunStart | undefined {
  try {
    return startOf(open, config);
  } catch (error) {
    if (open.signal.aborted) return undefined;
    throw error;
  }
}

function startOf({ begin, history, scope, isCertain }: OpenTurn, config: ConversationConfig): RunStart {
  if (begin.status !== 'running') {
    const { answers, answeredBy } = begin.status === 'answered' ? begin : { answers: [] };
    return resumeWith(config, begin.state, { answers, answeredBy, scope, isCertain });
  }
  checkOwner({ owner: begin.progress?.owner ?? begin.owner, isCertain }, scope);
  const { systemPrompt: content } = config;
  const messages =
    content === undefined ? history.messages : [{ role: 'system' as const, content }, ...history.messages];
  return begin.progress === undefined ? { messages } : { progress: { ...begin.progress, messages } };
}
