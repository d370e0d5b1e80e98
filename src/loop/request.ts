import type {
  LLMRequest,
  Message,
  RequestMetadata,
  ToolChoice,
  ToolSchema,
} from '../contract/llm-provider.js';
import { compactedHistory } from './compact-history.js';
import type { FinalAnswer } from './final-answer.js';
import { type LoopRun, targetOf } from './loop-run.js';
import { offeredDefinitions } from './offered-tools.js';
import type { ProviderTarget } from './options.js';
import { type StepSettings, settingsOf } from './step-settings.js';

/** What the run's `prepareStep` and `compactHistory` say of its next request. */
export async function prepareRequest(run: LoopRun): Promise<StepSettings | undefined> {
  const { config, iterations, messages, usage, signal } = run;
  const { prepareStep, compactHistory, model } = config;
  if (prepareStep === undefined && compactHistory === undefined) return undefined;
  const known = { step: iterations + 1, usage, signal };
  try {
    const settings =
      prepareStep && (await settingsOf(prepareStep, { ...known, messages: [...messages], model }));
    if (compactHistory === undefined || settings?.messages !== undefined || signal?.aborted) return settings;
    const asked = settings?.model ?? model;
    const compacted = await compactHistory([...messages], { ...known, model: asked });
    const { messages: carried, mends } = compactedHistory(compacted, messages);
    run.sent.tellMends(mends);
    return { ...settings, messages: carried };
  } catch (error) {
    // What was to be prepared was interrupted with the run.
    if (signal?.aborted) return undefined;
    throw error;
  }
}

/** Whether the model is offered the tools, and what else its request is made with. */
export interface Offer {
  readonly withTools: boolean;
  readonly settings?: StepSettings;
}

/** The next request of a run. */
export function buildRequest(run: LoopRun, { withTools, settings = NO_SETTINGS }: Offer): LLMRequest {
  const { config, signal, sent } = run;
  const { provider, model: own = config.model } = targetOf(run);
  // The model of one step is the provider's that it was chosen for.
  const model = run.failedOver > 0 ? own : (settings.model ?? own);
  const options = settings.llmOptions ?? config.llmOptions ?? {};
  const answer = withTools ? run.output?.offer(provider, model) : undefined;
  const target = { provider, model };
  const definitions = withTools ? offeredTools(run, settings, { answer, target }) : [];
  const hasTools = definitions.length > 0;
  const key = provider.itemKey?.(model);
  const history = settings.messages === undefined ? sent.for(key) : sent.others(settings.messages, key);
  const isLong = history.length >= LONG_HISTORY;
  // A copy: providers and tests keep what they were given, and the history goes on growing.
  const messages = isLong ? [] : history.slice();
  const { scope, runId, iterations: step } = run;
  const { conversationId } = scope;
  const metadata: RequestMetadata =
    conversationId === undefined ? { runId, step } : { conversationId, runId, step };
  // Most requests are of one of these forms. A request that gets its keys one by one costs twice as much.
  const request: Writable<LLMRequest> = hasTools
    ? { model, messages, options, tools: definitions, metadata }
    : { model, messages, options: withoutToolOptions(options), metadata };
  if (isLong) Object.defineProperty(request, 'messages', copiedWhenRead(history));
  if (hasTools) {
    const isChosen = run.isAnswerAsked || (settings.toolChoice ?? config.toolChoice) !== undefined;
    const toolChoice = isChosen ? choiceFor(run, settings, answer) : undefined;
    if (toolChoice !== undefined) request.toolChoice = toolChoice;
    if (config.parallelToolCalls !== undefined) request.parallelToolCalls = config.parallelToolCalls;
  }
  const responseFormat =
    settings.responseFormat ?? (answer && 'format' in answer ? answer.format : undefined);
  if (responseFormat !== undefined) request.responseFormat = responseFormat;
  if (signal !== undefined) request.signal = signal;
  return request;
}

const NO_SETTINGS: StepSettings = {};

type Writable<Data> = { -readonly [Key in keyof Data]: Data[Key] };

type AnswerOffer = ReturnType<FinalAnswer['offer']> | undefined;

function offeredTools(
  run: LoopRun,
  { tools: names }: StepSettings,
  { answer, target }: { readonly answer: AnswerOffer; readonly target: ProviderTarget },
): readonly ToolSchema[] {
  const { tools } = run;
  const offered = offeredDefinitions(
    run,
    names === undefined ? tools : tools.view({ allow: [...names] }),
    target,
  );
  return answer !== undefined && 'tool' in answer ? [...offered, answer.tool] : offered;
}

function choiceFor(run: LoopRun, { toolChoice }: StepSettings, answer: AnswerOffer): ToolChoice | undefined {
  if (run.isAnswerAsked && answer !== undefined && 'tool' in answer)
    return { tool: answer.tool.function.name };
  return toolChoice ?? nextChoice(run);
}

/** A choice that forces a call is fulfilled by the first one: forced again and again, a run would never end. */
function nextChoice({ config: { toolChoice }, toolCalls }: LoopRun): ToolChoice | undefined {
  if (toolChoice === undefined || toolCalls.length === 0) return toolChoice;
  if (toolChoice === 'required') return 'auto';
  if (typeof toolChoice === 'string') return toolChoice;
  return 'tool' in toolChoice ? 'auto' : { ...toolChoice, mode: 'auto' };
}

/** Copying so many messages for each request costs more than the rest of the turn. */
const LONG_HISTORY = 1_000;

/** `history` only grows, so that its length says what it was. */
function copiedWhenRead(history: readonly Message[]): PropertyDescriptor {
  const { length } = history;
  let messages: readonly Message[] | undefined;
  return {
    enumerable: true,
    configurable: true,
    get: () => {
      messages ??= history.slice(0, length);
      return messages;
    },
    set: (replaced: readonly Message[]) => {
      messages = replaced;
    },
  };
}

/** Servers refuse options about tools in a request that offers none. */
function withoutToolOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!('tool_choice' in options) && !('parallel_tool_calls' in options)) return options;
  const { tool_choice: _, parallel_tool_calls: __, ...others } = options;
  return others;
}
