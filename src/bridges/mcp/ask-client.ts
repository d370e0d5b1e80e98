import {
  type CallToolResult,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  MissingRequiredClientCapabilityError,
} from '@modelcontextprotocol/server';
import type { CallJournal, Suspension, Wait } from '../../contract/suspension.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { answerWait, type WaitAnswer } from '../../invocation/answer-wait.js';
import { visibleText } from '../../kernel/visible-text.js';
import { approvalText } from './approval-text.js';
import { clientInputOf } from './client-input.js';
import type { McpCaller } from './mcp-caller.js';
import { questionForm } from './question-form.js';

/** What is asked, and why it has to be asked again. */
export interface Asked extends Suspension {
  readonly problem?: string;
}

/** Who is asked, about what. */
export interface Asking {
  readonly tool: ToolDefinition;
  readonly caller: McpCaller;
  /** What the client has to bring along when it comes back. */
  readonly requestState: () => string;
}

/**
 * What is known of a suspended call after its client answered: enough to make it again, or what is still
 * open.
 */
export type Answered =
  | { readonly ok: true; readonly journal: CallJournal }
  | { readonly ok: false; readonly asked: Asked };

/** What a client may have to offer, and what for. */
const NEEDS = {
  elicitation: 'an answer of its user by a form',
  sampling: 'an answer of the client’s model',
  roots: 'the folders that the client works in',
} as const;

type Capability = keyof typeof NEEDS;

const STATELESS = '2026-07-28';

/**
 * The request for input that a suspended call becomes: forms for the client's user, and what the client gives
 * itself. For a 2025-11-25 client the SDK makes a request of each. An error result where the client does not
 * offer what it was to give or nobody could read what is to be approved, and nothing where one of the waits fits
 * no form.
 *
 * @throws MissingRequiredClientCapabilityError where a 2026-07-28 client has no model or folders to give.
 */
export function askClient(asked: Asked, asking: Asking): InputRequiredResult | CallToolResult | undefined {
  const missing = asked.waits.map((wait) => missingFor(wait, asking.caller)).find((one) => one !== undefined);
  if (missing !== undefined) return lacking(missing, asking);
  if (isBeyondReading(asked, asking)) return beyondReading(asking);
  const requests = asked.waits.map((wait, position) => {
    const request = clientRequestOf(wait) ?? formRequestOf(wait, asked, asking);
    return request && ([keyOf(asked.waits, position), request] as const);
  });
  const known = requests.filter((request) => request !== undefined);
  if (known.length < asked.waits.length) return undefined;
  return inputRequired({ inputRequests: Object.fromEntries(known), requestState: asking.requestState() });
}

/** Writes a client's answers into the journal. A user who declines any of them refuses the call. */
export function readAnswers({ waits, journal }: Suspension, responses?: Record<string, unknown>): Answered {
  let known = journal;
  for (const [position, wait] of waits.entries()) {
    const answer = answerOf(wait, keyOf(waits, position), responses);
    if (answer === undefined) return { ok: false, asked: { waits, journal } };
    const answered = answerWait({ wait, journal: known }, answer);
    if (!answered.ok) return { ok: false, asked: { waits, journal, problem: answered.problem } };
    known = answered.journal;
  }
  return { ok: true, journal: known };
}

/** The capability that a wait needs and the client lacks. */
function missingFor(wait: Wait, { capabilities }: McpCaller): Capability | undefined {
  const input = clientInputOf(wait.schema);
  if (input !== undefined) {
    const needed = input.method === 'roots/list' ? 'roots' : 'sampling';
    return capabilities[needed] === undefined ? needed : undefined;
  }
  const { elicitation } = capabilities;
  // An empty capability means forms (MCP, elicitation).
  const hasForms =
    elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  return hasForms || wait.kind === 'client' ? undefined : 'elicitation';
}

/**
 * A 2026-07-28 client has to learn by an error of the protocol what it should have offered; that nobody was
 * there to be asked is, as everywhere, the model's matter.
 */
function lacking(missing: Capability, { tool, caller }: Asking): CallToolResult {
  const text = `The call of '${tool.name}' waits for ${NEEDS[missing]}, which is not offered on this connection (the capability '${missing}').`;
  if (caller.protocolVersion === STATELESS && missing !== 'elicitation')
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { [missing]: {} } }, text);
  return { content: [{ type: 'text', text }], isError: true };
}

function clientRequestOf({ schema }: Wait): InputRequest | undefined {
  const input = clientInputOf(schema);
  if (input === undefined) return undefined;
  return input.method === 'roots/list'
    ? inputRequired.listRoots()
    : inputRequired.createMessage(input.params);
}

function formRequestOf(wait: Wait, { journal, problem }: Asked, { tool }: Asking): InputRequest | undefined {
  const form = questionForm(wait);
  if (form === undefined) return undefined;
  const question = wait.kind === 'approval' ? approvalText(tool, journal.arguments) : wait.message;
  const message = visibleText(question ?? '');
  const told = problem === undefined ? message : `${message}\n(${problem})`;
  return inputRequired.elicit({ message: told, requestedSchema: form.requestedSchema });
}

function answerOf(wait: Wait, key: string, responses?: Record<string, unknown>): WaitAnswer | undefined {
  const response = inputResponse(responses, key);
  switch (response.kind) {
    case 'missing':
      return undefined;
    case 'sampling':
      return { value: response.result };
    case 'roots':
      return { value: { roots: response.roots } };
    case 'elicit':
      if (response.action === 'decline') return { approved: false, reason: 'the user declined' };
      if (response.action === 'cancel') return { approved: false, reason: 'the user did not decide' };
      if (wait.kind === 'approval') return { approved: true };
      return { value: questionForm(wait)?.valueOf(response.content ?? {}) };
  }
}

function isBeyondReading({ waits, journal }: Asked, { tool }: Asking): boolean {
  return waits.some(({ kind }) => kind === 'approval') && approvalText(tool, journal.arguments) === undefined;
}

function beyondReading({ tool }: Asking): CallToolResult {
  const text = `The call of '${tool.name}' needs its user’s approval, and its arguments are more than a user can be shown. It was not run. Send fewer or shorter arguments.`;
  return { content: [{ type: 'text', text }], isError: true };
}

/** A schema's title of one word names its input for those who watch; other inputs are numbered. */
function keyOf(waits: readonly Wait[], position: number): string {
  const title = waits[position]?.schema?.title;
  const isKey = typeof title === 'string' && /^[a-z][a-z0-9_]*$/.test(title);
  const isOwn = waits.filter(({ schema }) => schema?.title === title).length === 1;
  return isKey && isOwn ? title : `input_${position + 1}`;
}
