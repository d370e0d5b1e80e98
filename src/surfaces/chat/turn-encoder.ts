import type { PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';

/** Turn and step of a call; no turn for a run outside of a conversation. */
interface CallPlace {
  readonly turn?: string;
  readonly iteration?: unknown;
}

/** The place of output before the turn's first step. */
function placeOfTurn(number: unknown): CallPlace {
  return typeof number === 'number' ? { turn: `turn-${number}` } : {};
}

/**
 * The id of a call for clients. Models reuse ids in other steps and turns, but clients treat calls with the same id as
 * one. The place is a prefix, so that ids of a model cannot imitate others.
 */
export function shownCallId({ turn, iteration }: CallPlace, callId: string): string {
  return turn === undefined ? callId : `${turn}.${iteration}.${callId}`;
}

/** Pending calls, with their turn and step. */
export type Asking = Pick<ConversationView, 'pending' | 'turn' | 'iteration'>;

/** The client's id of a pending call. */
export function shownPendingId(
  { turn, iteration }: Omit<Asking, 'pending'>,
  { callId, path }: PendingCall,
): string {
  // Clients see only the call that contains the agent, not the agent's own calls.
  return shownCallId({ ...placeOfTurn(turn?.number), iteration }, path?.[0]?.callId ?? callId);
}

/** What the approver of a call sees in addition to the call. */
export function approvalDescriptor(wait: PendingCall | JsonObject): JsonObject | undefined {
  const { message, title, description, risk, decisions, mayRemember, approver, expiresAt } =
    wait as PendingCall;
  const fields = { message, title, description, risk, decisions, mayRemember, approver, expiresAt };
  const given = withoutUndefined(fields);
  return Object.keys(given).length === 0 ? undefined : (given as unknown as JsonObject);
}

/** Describes the error of a failed turn for its reader. */
export type DescribeTurnError = (error: JsonObject) => string;

/** The result of calls that a step or turn left without a result. */
export const NOT_MADE = 'This call was not made.';
export const NOT_ENDED = 'The turn ended before this call did.';

export function userText(result: unknown): string {
  const { silent, forUser, forLLM } = isRecord(result) ? result : {};
  return silent ? '' : String(forUser || (forLLM ?? ''));
}

export interface ShownCall {
  /** The call's id for clients. */
  readonly toolCallId: string;
  /** `input`: its arguments are being streamed; `waiting`: for an answer. */
  readonly phase: 'input' | 'running' | 'waiting' | 'ended';
}

/**
 * Encodes the events of a turn for a front end, from its `turn-start` on. The same events give the same chunks in every
 * process.
 */
export abstract class TurnEncoder<Chunk, Call extends ShownCall> {
  protected readonly describeError: DescribeTurnError;
  /** By the ids that the model gave them. */
  protected readonly calls = new Map<string, Call>();
  protected place: CallPlace = {};
  protected step: { readonly iteration: unknown; isOpen: boolean } | undefined;

  constructor(describeError: DescribeTurnError) {
    this.describeError = describeError;
  }

  encode(event: JsonObject): Chunk[] {
    switch (event.type) {
      case 'turn-start':
        return this.beginTurn(event);
      case 'user-message':
        return [...this.write('text', String(event.text)), ...this.endPart()];
      case 'run-start':
        return this.step?.isOpen && !this.#hasCalls() ? this.dropStep() : [];
      case 'step-start': {
        // A repeated request starts its step again: everything shown of the step is removed, even a complete reply.
        const { iteration } = event;
        const { step } = this;
        if (step !== undefined && step.iteration === iteration && (step.isOpen || !this.#hasCalls())) {
          const begun = step.isOpen ? [] : this.reopenStep();
          step.isOpen = true;
          return [...begun, ...this.dropStep()];
        }
        const ended = this.endStep();
        this.calls.clear();
        this.place = { ...this.place, iteration };
        this.step = { iteration, isOpen: true };
        return [...ended, ...this.beginStep()];
      }
      case 'request-retry':
        return this.dropStep();
      case 'text-delta':
        return this.write('text', String(event.text));
      case 'reasoning-delta':
        return this.write('reasoning', String(event.text));
      case 'attachment':
        return this.attach((event.attachment ?? {}) as JsonObject);
      case 'reply-end':
        return this.endPart();
      case 'step-end':
        return this.endStep();
      case 'turn-suspended':
      case 'turn-end':
        return this.endTurn(event);
      default:
        return this.#encodeCall(event, String(event.callId));
    }
  }

  #encodeCall(event: JsonObject, callId: string): Chunk[] {
    const call = this.calls.get(callId);
    switch (event.type) {
      case 'call-input-start':
        return call === undefined ? [...this.endPart(), ...this.beginInput(callId, String(event.tool))] : [];
      case 'call-input-delta':
        return call?.phase === 'input' ? this.writeInput(call, String(event.text)) : [];
      case 'call-start':
        return this.beginCall(callId, event, event.arguments);
      case 'call-progress':
        return this.progress(callId, event);
      case 'call-event':
        return this.agentEvent(callId, event);
      case 'call-suspended':
        return this.suspendCall(callId, event);
      case 'call-end':
        return this.endCall(callId, event);
      default:
        return [];
    }
  }

  protected beginTurn({ turn }: JsonObject): Chunk[] {
    this.place = placeOfTurn(isRecord(turn) ? turn.number : undefined);
    return [];
  }

  protected endStep(): Chunk[] {
    const ended = this.endPart();
    if (!this.step?.isOpen) return ended;
    this.step.isOpen = false;
    return [...ended, ...this.closeCalls(({ phase }) => phase === 'input'), this.stepEnd()];
  }

  /** Ends calls that will get no result. */
  protected closeCalls(isLeft: (call: Call) => boolean): Chunk[] {
    const left = [...this.calls].filter(([, call]) => isLeft(call));
    for (const [id, call] of left) this.calls.set(id, { ...call, phase: 'ended' });
    return left.flatMap(([, call]) => this.closeCall(call));
  }

  protected shownId(callId: string): string {
    return this.calls.get(callId)?.toolCallId ?? shownCallId(this.place, callId);
  }

  #hasCalls(): boolean {
    return [...this.calls.values()].some(({ phase }) => phase !== 'input');
  }

  protected abstract beginStep(): Chunk[];
  protected abstract reopenStep(): Chunk[];
  /** Removes what was shown of the step. */
  protected abstract dropStep(): Chunk[];
  protected abstract stepEnd(): Chunk;
  protected abstract write(kind: 'text' | 'reasoning', delta: string): Chunk[];
  /** Ends the text or reasoning that is being streamed. */
  protected abstract endPart(): Chunk[];
  protected abstract attach(attachment: JsonObject): Chunk[];
  protected abstract beginInput(callId: string, tool: string): Chunk[];
  protected abstract writeInput(call: Call, delta: string): Chunk[];
  /** Also called for a call that continues after its answer and was shown before. */
  protected abstract beginCall(callId: string, event: JsonObject, input: unknown): Chunk[];
  protected abstract progress(callId: string, event: JsonObject): Chunk[];
  /** An event of the agent within a call. The agent's result is the output of the call. */
  protected abstract agentEvent(callId: string, event: JsonObject): Chunk[];
  protected abstract suspendCall(callId: string, event: JsonObject): Chunk[];
  protected abstract endCall(callId: string, event: JsonObject): Chunk[];
  protected abstract closeCall(call: Call): Chunk[];
  protected abstract endTurn(event: JsonObject): Chunk[];
}
