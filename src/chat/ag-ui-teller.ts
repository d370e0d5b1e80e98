import type { JsonObject } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import {
  type AgUiEvent,
  type AgUiMessage,
  agUiOutcome,
  agUiUsage,
  messagesOf,
  type ToldItem,
} from './ag-ui-events.js';
import { type CallPlace, type DescribeError, placeOfTurn, shownCallId, userText } from './shown-calls.js';

/** A call of the step that is told, or of the one that was suspended. */
interface ToldCall {
  /** The id that the client knows it by. */
  readonly shown: string;
  /** `input`: its arguments are being written. */
  readonly phase: 'input' | 'running' | 'ended';
}

/** What was said before the turn that is told, and what the client is told of failures. */
interface AgUiTellerOptions {
  /** Begins the ids of what a run says that is no turn of a conversation. */
  readonly runId?: string;
  readonly describeError: DescribeError;
  /** The client's own messages, for snapshots. */
  readonly messages: readonly AgUiMessage[];
  /** The client's own state, for snapshots. */
  readonly state?: unknown;
}

/**
 * Tells a turn as events of AG-UI 1.0, event by event from its `turn-start` on. It leaves out RUN_STARTED, which
 * is each reader's own.
 */
export class AgUiTeller {
  readonly #options: AgUiTellerOptions;
  readonly #calls = new Map<string, ToldCall>();
  readonly #items: ToldItem[] = [];
  readonly #agents: AgUiAgents;
  #place: CallPlace = placeOfTurn(undefined);
  #parts = 0;
  /** The text or reasoning that is being written. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string; text: string } | undefined;
  #step: { readonly iteration: unknown; readonly isOpen: boolean; readonly firstItem: number } | undefined;
  /** The message that calls of the step belong to. */
  #parent: string | undefined;

  constructor(options: AgUiTellerOptions) {
    this.#options = options;
    this.#agents = new AgUiAgents(options.describeError);
  }

  /** What the turn has said so far. */
  get messages(): readonly AgUiMessage[] {
    return messagesOf(this.#items);
  }

  /** The id by which the client knows a call of the step that is told. */
  shownId(callId: string): string {
    return this.#calls.get(callId)?.shown ?? shownCallId(this.#place, callId);
  }

  tell(event: JsonObject): AgUiEvent[] {
    switch (event.type) {
      case 'turn-start':
        return this.#beginTurn(event);
      case 'run-start':
        return this.#step?.isOpen && !this.#hasCalls() ? this.#dropStep() : [];
      case 'step-start':
        return this.#beginStep(event);
      case 'request-retry':
        return this.#dropStep();
      case 'user-message':
        return [...this.#write('text', String(event.text)), ...this.#endPart()];
      case 'text-delta':
        return this.#write('text', String(event.text));
      case 'reasoning-delta':
        return this.#write('reasoning', String(event.text));
      case 'attachment':
        return [{ type: 'CUSTOM', name: 'attachment', value: event.attachment }];
      case 'reply-end':
        return this.#endPart();
      case 'step-end':
        return this.#endStep();
      default:
        return this.#tellCallOrEnd(event);
    }
  }

  #tellCallOrEnd(event: JsonObject): AgUiEvent[] {
    switch (event.type) {
      case 'call-input-start':
        return this.#beginInput(event);
      case 'call-input-delta':
        return this.#writeInput(event);
      case 'call-start':
        return this.#beginCall(event, event.arguments);
      case 'call-progress':
        return this.#tellProgress(event);
      case 'call-suspended':
        return this.#beginCall(event, firstArguments(event));
      case 'call-event':
        return this.#tellAgent(event);
      case 'call-end':
        return this.#endCall(event);
      case 'turn-suspended':
      case 'turn-end':
        return this.#endTurn(event);
      default:
        return [];
    }
  }

  #beginTurn({ turn }: JsonObject): AgUiEvent[] {
    this.#place = placeOfTurn(isRecord(turn) ? turn.number : undefined);
    return [];
  }

  /** A request that is made again begins its step anew, also where its reply had been told to the end. */
  #beginStep({ iteration }: JsonObject): AgUiEvent[] {
    const step = this.#step;
    const begun: AgUiEvent = { type: 'STEP_STARTED', stepName: `step-${iteration}` };
    if (step !== undefined && step.iteration === iteration && (step.isOpen || !this.#hasCalls())) {
      this.#step = { ...step, isOpen: true };
      return [...(step.isOpen ? [] : [begun]), ...this.#dropStep()];
    }
    const ended = this.#endStep();
    this.#calls.clear();
    this.#parent = undefined;
    this.#place = { ...this.#place, iteration };
    this.#step = { iteration, isOpen: true, firstItem: this.#items.length };
    return [...ended, begun];
  }

  /** What was told of the step is taken back, which only a snapshot of all messages can do. */
  #dropStep(): AgUiEvent[] {
    const step = this.#step;
    if (!step?.isOpen) return [];
    const closed = [...this.#endPart(), ...this.#endInputs()];
    const dropped = this.#items.splice(step.firstItem);
    this.#calls.clear();
    this.#parent = undefined;
    return dropped.length === 0 ? closed : [...closed, this.#snapshot()];
  }

  #endStep(): AgUiEvent[] {
    const step = this.#step;
    if (!step?.isOpen) return this.#endPart();
    const ended = [...this.#endPart(), ...this.#leave(({ phase }) => phase === 'input')];
    this.#step = { ...step, isOpen: false };
    return [...ended, { type: 'STEP_FINISHED', stepName: `step-${step.iteration}` }];
  }

  #write(kind: 'text' | 'reasoning', delta: string): AgUiEvent[] {
    if (delta === '') return [];
    const type = kind === 'text' ? 'TEXT_MESSAGE' : 'REASONING_MESSAGE';
    if (this.#open?.kind === kind) {
      this.#open.text += delta;
      return [{ type: `${type}_CONTENT`, messageId: this.#open.id, delta }];
    }
    const ended = this.#endPart();
    const id = this.#newId();
    this.#open = { kind, id, text: delta };
    this.#parent = kind === 'text' ? id : undefined;
    const begun: AgUiEvent[] = kind === 'text' ? [] : [{ type: 'REASONING_START', messageId: id }];
    const role = kind === 'text' ? 'assistant' : 'reasoning';
    return [
      ...ended,
      ...begun,
      { type: `${type}_START`, messageId: id, role },
      { type: `${type}_CONTENT`, messageId: id, delta },
    ];
  }

  #endPart(): AgUiEvent[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    this.#items.push({ kind: open.kind, id: open.id, text: open.text });
    if (open.kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId: open.id }];
    return [
      { type: 'REASONING_MESSAGE_END', messageId: open.id },
      { type: 'REASONING_END', messageId: open.id },
    ];
  }

  #beginInput({ callId, tool }: JsonObject): AgUiEvent[] {
    const id = String(callId);
    if (this.#calls.has(id)) return [];
    return [...this.#endPart(), this.#startCall(id, { tool, phase: 'input', args: '' })];
  }

  #startCall(callId: string, { tool, phase, args }: StartedCall): AgUiEvent {
    const shown = shownCallId(this.#place, callId);
    this.#parent ??= this.#newId();
    this.#calls.set(callId, { shown, phase });
    this.#items.push({ kind: 'call', id: shown, parent: this.#parent, tool: String(tool), args });
    return {
      type: 'TOOL_CALL_START',
      toolCallId: shown,
      toolCallName: String(tool),
      parentMessageId: this.#parent,
    };
  }

  #writeInput({ callId, text }: JsonObject): AgUiEvent[] {
    const call = this.#calls.get(String(callId));
    if (call?.phase !== 'input' || text === '') return [];
    const item = this.#items.findLast(({ id }) => id === call.shown);
    if (item?.kind === 'call') item.args += String(text);
    return [{ type: 'TOOL_CALL_ARGS', toolCallId: call.shown, delta: String(text) }];
  }

  /** A call that goes on after its answer has been told already, if not by this teller. */
  #beginCall({ callId, tool }: JsonObject, given: unknown): AgUiEvent[] {
    const id = String(callId);
    const known = this.#calls.get(id);
    if (known !== undefined) {
      this.#calls.set(id, { ...known, phase: 'running' });
      return known.phase === 'input' ? [{ type: 'TOOL_CALL_END', toolCallId: known.shown }] : [];
    }
    if (this.#step === undefined) {
      this.#calls.set(id, { shown: shownCallId(this.#place, id), phase: 'running' });
      return [];
    }
    const args = typeof given === 'string' ? given : JSON.stringify(given ?? {});
    const started = [...this.#endPart(), this.#startCall(id, { tool, phase: 'running', args })];
    const toolCallId = this.shownId(id);
    return [
      ...started,
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: args },
      { type: 'TOOL_CALL_END', toolCallId },
    ];
  }

  #tellProgress({ callId, tool, update }: JsonObject): AgUiEvent[] {
    const toolCallId = this.shownId(String(callId));
    const content = { toolCallId, tool, update: update ?? null };
    const messageId = `${toolCallId}.progress`;
    return [{ type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'tool-progress', content }];
  }

  #tellAgent({ callId, tool, event }: JsonObject): AgUiEvent[] {
    return [...this.#agents.tell({ shown: this.shownId(String(callId)), tool, event })];
  }

  #endCall(event: JsonObject): AgUiEvent[] {
    const begun = this.#beginCall(event, undefined);
    const id = String(event.callId);
    const shown = this.shownId(id);
    this.#calls.set(id, { shown, phase: 'ended' });
    const edited = event.edited === undefined ? {} : { editedArgs: event.arguments };
    return [...begun, this.#result(shown, userText(event.result), { status: event.status, ...edited })];
  }

  #result(toolCallId: string, content: string, metadata: JsonObject): AgUiEvent {
    const messageId = `${toolCallId}.result`;
    this.#items.push({ kind: 'result', id: messageId, callId: toolCallId, text: content, metadata });
    return { type: 'TOOL_CALL_RESULT', messageId, toolCallId, role: 'tool', content, metadata };
  }

  /** Calls whose arguments were cut off. */
  #endInputs(): AgUiEvent[] {
    return [...this.#calls.values()]
      .filter(({ phase }) => phase === 'input')
      .map(({ shown }) => ({ type: 'TOOL_CALL_END', toolCallId: shown }));
  }

  /** Calls that nothing will come of any more. */
  #leave(isLeft: (call: ToldCall) => boolean): AgUiEvent[] {
    const left = [...this.#calls].filter(([, call]) => isLeft(call));
    for (const [id, call] of left) this.#calls.set(id, { ...call, phase: 'ended' });
    return left.flatMap(([, { shown, phase }]) =>
      phase === 'input'
        ? [{ type: 'TOOL_CALL_END', toolCallId: shown }, this.#result(shown, NOT_MADE, { status: 'not_run' })]
        : [this.#result(shown, NOT_ENDED, { status: 'aborted' })],
    );
  }

  #endTurn(event: JsonObject): AgUiEvent[] {
    const isOver = event.type === 'turn-end';
    const agents = this.#agents.leave(isOver ? 'aborted' : 'suspended');
    const ended = [
      ...this.#endPart(),
      ...agents,
      ...(isOver ? this.#leave(({ phase }) => phase !== 'ended') : []),
    ];
    ended.push(...this.#endStep());
    const { describeError, state } = this.#options;
    const outcome = agUiOutcome(event, { describeError, shownId: (id) => this.shownId(id) });
    const toolwright = { status: event.status, pending: isOver ? [] : (event.pending ?? []) };
    const kept = isRecord(state) ? state : {};
    return [
      ...ended,
      { type: 'STATE_SNAPSHOT', snapshot: { ...kept, toolwright } },
      ...(isOver ? [] : [this.#snapshot()]),
      { ...outcome, ...agUiUsage(event.usage) },
    ];
  }

  #snapshot(): AgUiEvent {
    const own = this.messages;
    const ids = new Set(own.map(({ id }) => id));
    const before = this.#options.messages.filter(({ id }) => !ids.has(id));
    // What the client made of its own tools, it knows under ids of its own.
    const given = new Set(before.map(({ toolCallId }) => toolCallId).filter((id) => id !== undefined));
    const added = own.filter(({ toolCallId }) => toolCallId === undefined || !given.has(toolCallId));
    return { type: 'MESSAGES_SNAPSHOT', messages: [...before, ...added] };
  }

  #hasCalls(): boolean {
    return [...this.#calls.values()].some(({ phase }) => phase !== 'input');
  }

  #newId(): string {
    this.#parts += 1;
    return `${this.#place.turn ?? this.#options.runId}.${this.#parts}`;
  }
}

interface StartedCall {
  readonly tool: unknown;
  readonly phase: ToldCall['phase'];
  readonly args: string;
}

const NOT_MADE = 'This call was not made.';
const NOT_ENDED = 'The turn ended before this call did.';

function firstArguments({ pending }: JsonObject): unknown {
  const [first] = Array.isArray(pending) ? pending : [];
  return isRecord(first) ? first.arguments : undefined;
}

/** The call that an agent runs in, by the id that the client knows it by. */
interface AgentCall {
  readonly shown: string;
  readonly tool: unknown;
  readonly event: unknown;
}

/** Tells what the agents within calls do, as subagents of AG-UI. */
class AgUiAgents {
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
