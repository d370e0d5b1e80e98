import {
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  MissingRequiredClientCapabilityError,
} from '@modelcontextprotocol/server';
import type { CallJournal, Suspension, Wait } from '../../contract/suspension.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { answerWait, type WaitAnswer } from '../../invocation/answer-wait.js';
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

const MOST_CHARACTERS = 2_000;
const STATELESS = '2026-07-28';

/**
 * The request for input that a suspended call becomes: forms for the client's user, and what the client gives
 * itself. For a 2025-11-25 client the SDK makes a request of each. Nothing where the client has no forms, or one
 * of the waits fits none.
 *
 * @throws MissingRequiredClientCapabilityError where a 2026-07-28 client does not offer what it was to give.
 */
export function askClient(asked: Asked, asking: Asking): InputRequiredResult | undefined {
  const requests = asked.waits.map((wait, position) => {
    const request = clientRequestOf(wait, asking.caller) ?? formRequestOf(wait, asked, asking);
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

function clientRequestOf(
  { schema }: Wait,
  { capabilities, protocolVersion }: McpCaller,
): InputRequest | undefined {
  const input = clientInputOf(schema);
  if (input === undefined) return undefined;
  const needed = input.method === 'roots/list' ? 'roots' : 'sampling';
  // Of an older client the SDK finds that out, and answers with an error result.
  if (protocolVersion === STATELESS && capabilities[needed] === undefined)
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { [needed]: {} } });
  return input.method === 'roots/list'
    ? inputRequired.listRoots()
    : inputRequired.createMessage(input.params);
}

function formRequestOf(
  wait: Wait,
  { journal, problem }: Asked,
  { tool, caller }: Asking,
): InputRequest | undefined {
  const { elicitation } = caller.capabilities;
  // An empty capability means forms (MCP, elicitation).
  const hasForms =
    elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  const form = hasForms ? questionForm(wait) : undefined;
  if (form === undefined) return undefined;
  const message = wait.kind === 'approval' ? approvalText(tool, journal) : (wait.message ?? '');
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

function approvalText({ name, annotations }: ToolDefinition, { arguments: args }: CallJournal): string {
  const title = annotations?.title;
  const called = title === undefined ? `'${name}'` : `'${title}' (${name})`;
  const text = JSON.stringify(args, undefined, 2);
  const shown = text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS)}…`;
  return `Run ${called} with these arguments?\n${shown}`;
}

/** A schema's title of one word names its input for those who watch; other inputs are numbered. */
function keyOf(waits: readonly Wait[], position: number): string {
  const title = waits[position]?.schema?.title;
  const isKey = typeof title === 'string' && /^[a-z][a-z0-9_]*$/.test(title);
  const isOwn = waits.filter(({ schema }) => schema?.title === title).length === 1;
  return isKey && isOwn ? title : `input_${position + 1}`;
}
