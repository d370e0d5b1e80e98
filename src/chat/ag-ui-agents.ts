import type { JsonObject } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import type { AgUiEvent } from './ag-ui-messages.js';
import type { DescribeError } from './shown-calls.js';

/** The call that an agent runs in, by the id that the client knows it by. */
interface AgentCall {
  readonly shown: string;
  readonly tool: unknown;
  readonly event: unknown;
}

/** Tells what the agents within calls do, as subagents of AG-UI. */
export class AgUiAgents {
  readonly #describeError: DescribeError;
  /** Ids of the runs that are told, by the calls that they are in: a subagent of AG-UI ends once. */
  readonly #open = new Map<string, string>();
  #runs = 0;

  constructor(describeError: DescribeError) {
    this.#describeError = describeError;
  }

  tell({ shown, tool, event }: AgentCall): readonly AgUiEvent[] {
    if (!isRecord(event)) return [];
    if (event.type === 'run-start') return this.#begin(shown, tool);
    const id = this.#open.get(shown);
    if (id === undefined) return [];
    if (event.type === 'run-end') return this.#end(shown, event as JsonObject);
    return callEvent(id, event);
  }

  /** Ends those that a turn leaves behind. */
  leave(status: 'suspended' | 'aborted'): readonly AgUiEvent[] {
    return [...this.#open.keys()].flatMap((shown) => this.#end(shown, { status }));
  }

  #begin(shown: string, tool: unknown): readonly AgUiEvent[] {
    const left = this.#end(shown, { status: 'aborted' });
    this.#runs += 1;
    const subagentRunId = `${shown}.agent-${this.#runs}`;
    this.#open.set(shown, subagentRunId);
    return [
      ...left,
      { type: 'SUBAGENT_STARTED', subagentRunId, name: String(tool), parentToolCallId: shown },
    ];
  }

  #end(shown: string, { status, error }: JsonObject): readonly AgUiEvent[] {
    const subagentRunId = this.#open.get(shown);
    if (subagentRunId === undefined) return [];
    this.#open.delete(shown);
    if (status === 'completed') return [{ type: 'SUBAGENT_FINISHED', subagentRunId }];
    if (status === 'suspended')
      return [{ type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended' } }];
    const message = isRecord(error) ? this.#describeError(error as JsonObject) : ENDED;
    return [{ type: 'SUBAGENT_ERROR', subagentRunId, message, code: String(status) }];
  }
}

const ENDED = 'The agent ended before it was done.';

/** A call of the agent's own: what it does is shown, what it gives is for the agent. */
function callEvent(subagentRunId: string, { type, callId, tool, status }: JsonObject): readonly AgUiEvent[] {
  if (type !== 'call-start' && type !== 'call-end') return [];
  const content = { tool, status: type === 'call-start' ? 'running' : status };
  const messageId = `${subagentRunId}.${callId}`;
  return [{ type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'agent-call', content, subagentRunId }];
}
