import {
  type CreateMessageRequest,
  type CreateMessageResult,
  type CreateMessageResultWithTools,
  type ElicitRequestFormParams,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  MissingRequiredClientCapabilityError,
  type Root,
} from '@modelcontextprotocol/server';
import type { CallJournal, CallScope, PendingCall, Suspension, Wait } from '../../../core/contract/call.js';
import type { JsonObject, JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { checkArguments } from '../../../core/errors/author-fault.js';
import { type Fields, isObject } from '../../../core/kernel/json.js';
import { RECORD, withMethods } from '../../../core/kernel/options.js';
import { visibleText } from '../../../core/kernel/visible-text.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { answerWait, approverOf, mayApprove, type WaitAnswer } from '../../../run/call/waits.js';
import type { McpCaller } from './options.js';

/** Input from a client itself, not from its user. */
type ClientInput =
  | { readonly method: 'sampling/createMessage'; readonly params: CreateMessageRequest['params'] }
  | { readonly method: 'roots/list' };

const CONTEXT = withMethods(['ask'], 'the ToolContext of the call');
const PARAMS = { ...RECORD, fix: '{ messages: […], maxTokens: 200 }' };

/** Marks questions for the client; outside MCP they are normal questions. */
const MARK = 'x-mcp-input';

/**
 * Asks the model of the MCP client that made the call. Like `context.ask`, it suspends the call, and the method runs
 * again with the answer. Outside MCP, the person who answers the run's questions provides the message.
 *
 * @deprecated MCP 2026-07-28 deprecates sampling: ask a provider of your own. It works until MCP removes it.
 *
 * @example
 * ```ts
 * @Tool('Sum up a text')
 * async sumUp(text: string, context: ToolContext) {
 *   const message = { role: 'user' as const, content: { type: 'text' as const, text: `Sum up: ${text}` } };
 *   const { content } = await sampleMessage(context, { messages: [message], maxTokens: 200 });
 *   return JSON.stringify(content);
 * }
 * ```
 */
export async function sampleMessage(
  context: ToolContext,
  params: CreateMessageRequest['params'],
): Promise<CreateMessageResult | CreateMessageResultWithTools> {
  checkArguments({
    of: 'sampleMessage',
    given: { context, params },
    rules: { context: CONTEXT, params: PARAMS },
  });
  const answer = await context.ask({
    message: 'The answer of the client’s model',
    schema: {
      type: 'object',
      required: ['role', 'content'],
      [MARK]: { method: 'sampling/createMessage', params },
    },
  });
  return answer as CreateMessageResult;
}

/**
 * Asks the MCP client that made the call for its working folders, in the same way as {@link sampleMessage}.
 *
 * @deprecated MCP 2026-07-28 deprecates roots: take folders as arguments or settings. It works until MCP removes it.
 *
 * @example
 * ```ts
 * @Tool('Count the folders')
 * async countFolders(context: ToolContext) {
 *   return (await listRoots(context)).length;
 * }
 * ```
 */
export async function listRoots(context: ToolContext): Promise<readonly Root[]> {
  checkArguments({ of: 'listRoots', given: { context }, rules: { context: CONTEXT } });
  const answer = await context.ask({
    message: 'The open folders of the client',
    schema: { type: 'object', required: ['roots'], [MARK]: { method: 'roots/list' } },
  });
  return (answer as { readonly roots: readonly Root[] }).roots;
}

/** The request to the client in a question's schema; `undefined` if the question is for the user. */
function clientInputOf(schema: JsonSchema | undefined): ClientInput | undefined {
  return schema?.[MARK] as ClientInput | undefined;
}

/** What to ask, and why it is asked again. */
export interface Asked extends Suspension {
  readonly problem?: string;
}

interface Asking {
  readonly tool: ToolDefinition;
  readonly caller: McpCaller;
  /** State that the client must send back. */
  readonly requestState: () => string;
}

/** The parts of a wait that a client's user is asked about. */
type QuestionWait = Omit<Wait, 'index' | 'inner'>;

/** A suspended call after the client's response: answered, or still open. */
type Answered =
  | { readonly ok: true; readonly journal: CallJournal }
  | { readonly ok: false; readonly asked: Asked };

/** What each client capability provides. */
const NEEDS = {
  elicitation: 'an answer of its user in a form',
  sampling: 'an answer of the client’s model',
  roots: 'the folders that the client works in',
} as const;

export const STATELESS = '2026-07-28';

/** A request for input from the client's user; or a text that ends the call, because nobody can be asked. */
export type AskedClient =
  | { readonly type: 'interim'; readonly result: InputRequiredResult }
  | { readonly type: 'refused'; readonly text: string };

/**
 * The request for input of a suspended call: forms for the client's user, and requests for what the client itself
 * provides. For a 2025-11-25 client, the SDK sends each as a request. The call is refused if the client lacks a needed
 * capability, or if its arguments are too long to approve. `undefined` if a wait fits no form.
 *
 * @throws MissingRequiredClientCapabilityError if a 2026-07-28 client has no model or folders to provide.
 */
export function askClient(asked: Asked, asking: Asking): AskedClient | undefined {
  const { tool, caller } = asking;
  const missing = asked.waits.map((wait) => missingFor(wait, caller)).find((found) => found !== undefined);
  if (missing !== undefined) {
    const text = `The call of '${tool.name}' needs ${NEEDS[missing]}, which this client does not support (capability '${missing}').`;
    // Such a client needs a protocol error. A missing user is reported to the model, as everywhere.
    if (caller.protocolVersion === STATELESS && missing !== 'elicitation')
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { [missing]: {} } }, text);
    return { type: 'refused', text };
  }
  const approval = approvalText(tool, asked.journal.arguments);
  if (approval === undefined && asked.waits.some(({ kind }) => kind === 'approval')) {
    const text = `The call of '${tool.name}' needs the approval of its user, but its arguments are too long to be shown to a user. It was not run. Send fewer or shorter arguments.`;
    return { type: 'refused', text };
  }
  const requests = asked.waits.map((wait, position) => {
    const request = clientRequestOf(wait) ?? formRequestOf(wait, approval, asked.problem);
    return request && ([keyOf(asked.waits, position), request] as const);
  });
  const known = requests.filter((request) => request !== undefined);
  if (known.length < asked.waits.length) return undefined;
  const inputRequests = Object.fromEntries(known);
  return { type: 'interim', result: inputRequired({ inputRequests, requestState: asking.requestState() }) };
}

/**
 * The requests for input of a task, by the ids of its pending calls. Left out are those that this client cannot
 * answer, because it lacks a capability or because somebody else must approve the call.
 */
export function pendingRequests(
  pending: readonly PendingCall[],
  {
    tools,
    scope,
    caller,
  }: { readonly tools: ToolRegistry; readonly scope: CallScope; readonly caller: McpCaller },
): Readonly<Record<string, InputRequest>> {
  const { owner } = scope;
  const requests = pending.map((wait) => {
    const { tool: name, arguments: args } = wait;
    const tool = tools.offered(name);
    const call = { tool: name, arguments: args };
    const isApprovable =
      wait.kind !== 'approval' ||
      (tool !== undefined &&
        mayApprove(approverOf(tool.approval), { answeredBy: owner, owner, call }, () => {}));
    const approval = tool && approvalText(tool, args);
    if (!isApprovable || missingFor(wait, caller) !== undefined) return undefined;
    if (wait.kind === 'approval' && approval === undefined) return undefined;
    const request = clientRequestOf(wait) ?? formRequestOf(wait, approval);
    return request && ([wait.id, request] as const);
  });
  return Object.fromEntries(requests.filter((request) => request !== undefined));
}

/** The arguments of a call with hidden characters made visible; `undefined` if they are too long for a user to read. */
function approvalText({ name, annotations }: ToolDefinition, args: JsonObject): string | undefined {
  const title = annotations?.title;
  const called = title === undefined ? `'${name}'` : `'${visibleText(title)}' (${name})`;
  const shown = new ShownValue().write(args, '');
  return shown && `Run ${called} with these arguments?\n${shown}`;
}

/** Adds a client's answers to the journal. A user who declines one of them refuses the call. */
export function readAnswers({ waits, journal }: Suspension, responses?: Record<string, unknown>): Answered {
  let known = journal;
  for (const [position, wait] of waits.entries()) {
    const answer = readResponse(wait, keyOf(waits, position), responses);
    if (answer === undefined) return { ok: false, asked: { waits, journal } };
    const answered = answerWait({ wait, journal: known }, answer);
    if (!answered.ok) return { ok: false, asked: { waits, journal, problem: answered.problem } };
    known = answered.journal;
  }
  return { ok: true, journal: known };
}

/** The capability that a wait needs and the client lacks. */
function missingFor(wait: QuestionWait, { capabilities }: McpCaller): keyof typeof NEEDS | undefined {
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

function clientRequestOf({ schema }: QuestionWait): InputRequest | undefined {
  const input = clientInputOf(schema);
  if (input === undefined) return undefined;
  return input.method === 'roots/list'
    ? inputRequired.listRoots()
    : inputRequired.createMessage(input.params);
}

function formRequestOf(wait: QuestionWait, approval = '', problem?: string): InputRequest | undefined {
  const form = questionForm(wait);
  if (form === undefined) return undefined;
  const { title, description, risk } = wait;
  // The author's text comes before the arguments.
  const lines = [title, description, risk && `Risk: ${risk}`, approval];
  const asked = lines.filter((line) => line !== undefined).join('\n');
  const message = visibleText((wait.kind === 'approval' ? asked : wait.message) ?? '');
  return inputRequired.elicit({
    message: problem === undefined ? message : `${message}\n(${problem})`,
    requestedSchema: form.requestedSchema,
  });
}

/** The client's answer to a wait; `undefined` if the client sent no answer. */
export function readResponse(wait: QuestionWait, key: string, responses?: Fields): WaitAnswer | undefined {
  const response = inputResponse(responses, key);
  switch (response.kind) {
    case 'missing':
      return undefined;
    // A response of another form than the requested one is not an answer.
    case 'sampling':
      return clientInputOf(wait.schema)?.method === 'sampling/createMessage'
        ? { value: response.result }
        : undefined;
    case 'roots':
      return clientInputOf(wait.schema)?.method === 'roots/list'
        ? { value: { roots: response.roots } }
        : undefined;
    case 'elicit':
      if (response.action === 'decline') return { approved: false, reason: 'the user declined' };
      if (response.action === 'cancel') return { approved: false, reason: 'the user made no decision' };
      if (wait.kind === 'approval') return { approved: true };
      return { value: questionForm(wait)?.valueOf(response.content ?? {}) };
  }
}

/** The key of an input: its schema's title if that is one word, otherwise a number. */
function keyOf(waits: readonly Wait[], position: number): string {
  const title = waits[position]?.schema?.title;
  const isKey = typeof title === 'string' && /^[a-z][a-z0-9_]*$/.test(title);
  const isOwn = waits.filter(({ schema }) => schema?.title === title).length === 1;
  return isKey && isOwn ? title : `input_${position + 1}`;
}

/** A question as a form, and how to read its answer. */
interface QuestionForm {
  readonly requestedSchema: ElicitRequestFormParams['requestedSchema'];
  readonly valueOf: (content: Fields) => unknown;
}

/** Schema keywords that a form may contain (MCP, elicitation); answers are checked against the whole schema anyway. */
const KEYWORDS = [
  ...['type', 'title', 'description', 'default', 'enum', 'enumNames', 'oneOf', 'items'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
];
const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time']);
const PLAIN_TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean']);
const CONFIRMATION: QuestionForm = {
  requestedSchema: { type: 'object', properties: {} },
  valueOf: () => undefined,
};

/**
 * The form for a wait; `undefined` if a form cannot represent the answer. An object with plain fields is a form of its
 * own; a single plain value becomes the field `answer`.
 */
function questionForm({ kind, schema }: QuestionWait): QuestionForm | undefined {
  if (kind === 'client') return undefined;
  if (kind === 'approval') return CONFIRMATION;
  const isObject = schema?.type === 'object';
  const { properties = {}, required } = isObject
    ? schema
    : { properties: { answer: schema ?? { type: 'string' } }, required: ['answer'] };
  const fields = Object.entries(properties).map(([name, field]) => [name, fieldOf(field)] as const);
  if (fields.some(([, field]) => field === undefined)) return undefined;
  const requestedSchema = {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(required?.length && { required }),
  } as QuestionForm['requestedSchema'];
  if (isObject) return { requestedSchema, valueOf: (content) => content };
  // Without a schema any answer fits, but the form has asked for a text.
  const fits = (answer: unknown): boolean => schema !== undefined || typeof answer === 'string';
  return { requestedSchema, valueOf: ({ answer }) => (fits(answer) ? answer : undefined) };
}

function fieldOf(schema: JsonSchema): JsonSchema | undefined {
  const { items } = schema;
  const hasChoices = typeof items === 'object' && ('enum' in items || 'anyOf' in items);
  const isChoice = schema.type === 'array' && hasChoices;
  if (!isChoice && !PLAIN_TYPES.has(schema.type)) return undefined;
  const known = KEYWORDS.filter((keyword) => schema[keyword] !== undefined);
  const field = Object.fromEntries(known.map((keyword) => [keyword, schema[keyword]]));
  return FORMATS.has(schema.format) ? { ...field, format: schema.format } : field;
}

/** Longer values are shown after the others, so that none pushes another out of sight. */
const SHORT_VALUE = 200;
/** The most characters that a user is asked to read. */
const MOST_CHARACTERS = 8_000;
const MOST_DEPTH = 20;

/** Writes indented JSON up to a limit. */
class ShownValue {
  #left = MOST_CHARACTERS;

  write(value: unknown, indent: string): string | undefined {
    if (!isObject(value)) return this.#take(visibleText(JSON.stringify(value) ?? 'null'));
    if (indent.length > 2 * MOST_DEPTH) return undefined;
    const isList = Array.isArray(value);
    const [open, close] = isList ? ['[', ']'] : ['{', '}'];
    const inner = `${indent}  `;
    const lines: string[] = [];
    const entries = Object.entries(value);
    if (!isList) entries.sort(([, one], [, other]) => Number(isLong(one)) - Number(isLong(other)));
    for (const [key, part] of entries) {
      const label = isList ? '' : `${visibleText(JSON.stringify(key))}: `;
      if (this.#take(inner + label) === undefined) return undefined;
      const text = this.write(part, inner);
      if (text === undefined) return undefined;
      lines.push(inner + label + text);
    }
    return lines.length === 0 ? open + close : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
  }

  #take(text: string): string | undefined {
    this.#left -= text.length;
    return this.#left < 0 ? undefined : text;
  }
}

function isLong(value: unknown): boolean {
  return (JSON.stringify(value)?.length ?? 0) > SHORT_VALUE;
}

/** Time limit for an answer; people need time. */
export const ANSWER_MS = 60 * 60 * 1000;
