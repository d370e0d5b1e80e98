import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ProviderTool,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { LLMRequest, ToolChoice, ToolSchema } from '../contract/llm-provider.js';
import { checkOptions } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import { HEADERS, LIST, NUMBER, oneOf, optionTable, RECORD } from '../kernel/options.js';
import { isStrictForm } from '../schema/strict/strict-schema.js';
import type { AiSdkProviderTool } from './to-ai-sdk-tools.js';
import { toPrompt } from './to-prompt.js';

/** What a request is made with, beside itself. */
interface CallSettings {
  readonly model: LanguageModelV4;
  readonly key: string;
  readonly providerTools: Readonly<Record<string, AiSdkProviderTool>>;
  /** Hears of what the model cannot be told. */
  readonly onUnsupported: (feature: string, fix: string) => void;
}

/** What `llmOptions` may have: the settings of an AI SDK call that a request does not say itself. */
type ModelOptions = Pick<
  LanguageModelV4CallOptions,
  | 'maxOutputTokens'
  | 'temperature'
  | 'stopSequences'
  | 'topP'
  | 'topK'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'seed'
  | 'reasoning'
  | 'headers'
  | 'providerOptions'
>;

const MODEL_OPTIONS = optionTable<ModelOptions>(
  'the llmOptions of an AI SDK model',
  {
    maxOutputTokens: NUMBER,
    temperature: NUMBER,
    stopSequences: LIST,
    topP: NUMBER,
    topK: NUMBER,
    presencePenalty: NUMBER,
    frequencyPenalty: NUMBER,
    seed: NUMBER,
    reasoning: oneOf('provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    headers: HEADERS,
    providerOptions: { ...RECORD, fix: '{ anthropic: { … } }' },
  },
  {
    max_tokens: 'maxOutputTokens: …',
    max_completion_tokens: 'maxOutputTokens: …',
    top_p: 'topP: …',
    stop: "stopSequences: ['…']",
    reasoning_effort: "reasoning: 'low'",
    response_format: 'responseFormat of the request',
    tool_choice: 'toolChoice of the request',
    parallel_tool_calls: 'parallelToolCalls of the request',
  },
);

/**
 * A request as an AI SDK model takes it.
 *
 * @throws InvalidOptionsError (521) for an option that AI SDK models do not have; TypeError for a message that the
 * model cannot be sent.
 */
export async function toCallOptions(
  request: LLMRequest,
  settings: CallSettings,
): Promise<LanguageModelV4CallOptions> {
  const { messages, options = {}, responseFormat, maxOutputTokens, signal } = request;
  checkOptions(options, MODEL_OPTIONS);
  const tools = toTools(request, settings);
  const providerOptions = toProviderOptions(request, settings);
  return {
    ...(options as ModelOptions),
    ...(maxOutputTokens !== undefined && {
      maxOutputTokens: Math.min(
        maxOutputTokens,
        (options as ModelOptions).maxOutputTokens ?? maxOutputTokens,
      ),
    }),
    prompt: await toPrompt(messages, { ...settings, found: foundTools(request) }),
    // An empty list of tools is refused by some APIs.
    ...(tools.length > 0 && { tools }),
    ...(tools.length > 0 && request.toolChoice !== undefined && { toolChoice: toChoice(request.toolChoice) }),
    ...(responseFormat && { responseFormat: responseFormat as LanguageModelV4CallOptions['responseFormat'] }),
    ...(providerOptions && { providerOptions }),
    ...(signal && { abortSignal: signal }),
  };
}

/** A tool of the provider takes the place of one of ours with its name: then a call of it is made here. */
function toTools(
  { tools = [], toolChoice }: LLMRequest,
  { providerTools }: CallSettings,
): (LanguageModelV4FunctionTool | LanguageModelV4ProviderTool)[] {
  const own = tools
    .filter(({ function: { name } }) => !Object.hasOwn(providerTools, name))
    .map(toFunctionTool);
  const theirs = Object.entries(providerTools).map(([name, { id, args }]) => ({
    type: 'provider' as const,
    id,
    name,
    args,
  }));
  const allowed = isRecord(toolChoice) && 'tools' in toolChoice ? new Set(toolChoice.tools) : undefined;
  return [...own, ...theirs].filter(({ name }) => allowed?.has(name) ?? true);
}

/** Names of the tools that a reference may name. */
function foundTools({ tools = [] }: LLMRequest): ReadonlySet<string> {
  return new Set(tools.filter(({ defer }) => defer).map((tool) => tool.function.name));
}

function toFunctionTool({
  defer,
  function: { name, description, parameters, strict },
}: ToolSchema): LanguageModelV4FunctionTool {
  // Anthropic refuses a schema that does not say so.
  const inputSchema = { type: 'object', ...parameters } as LanguageModelV4FunctionTool['inputSchema'];
  return {
    type: 'function',
    name,
    ...(description && { description }),
    inputSchema,
    ...(strict !== undefined && { strict }),
    // No part of the prompt until a reference names it.
    ...(defer && { providerOptions: { anthropic: { deferLoading: true } } }),
  };
}

/** Models are not told that they may call some of their tools: what they may not is left out. */
function toChoice(choice: ToolChoice): LanguageModelV4ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if ('tool' in choice) return { type: 'tool', toolName: choice.tool };
  return { type: choice.mode ?? 'auto' };
}

/** How the options of a provider say whether a reply may have several calls. */
const PARALLEL: Readonly<Record<string, (isParallel: boolean) => JSONObject>> = {
  openai: (parallelToolCalls) => ({ parallelToolCalls }),
  mistral: (parallelToolCalls) => ({ parallelToolCalls }),
  groq: (parallelToolCalls) => ({ parallelToolCalls }),
  anthropic: (isParallel) => ({ disableParallelToolUse: !isParallel }),
};

function toProviderOptions(request: LLMRequest, settings: CallSettings): SharedV4ProviderOptions | undefined {
  const given = request.options?.providerOptions as SharedV4ProviderOptions | undefined;
  const family = familyOf(settings.model);
  const said = { ...parallelOptions(request, family, settings), ...formatOptions(request, family) };
  return Object.keys(said).length === 0 ? given : { ...given, [family]: { ...said, ...given?.[family] } };
}

/** The options of `openai.responses` are those of `openai`, and Claude on Bedrock takes those of Anthropic. */
function familyOf({ provider, modelId }: LanguageModelV4): string {
  const [family = ''] = provider.split('.');
  return family === 'amazon-bedrock' && modelId.includes('anthropic.') ? 'anthropic' : family;
}

function parallelOptions(
  { parallelToolCalls }: LLMRequest,
  family: string,
  { onUnsupported }: CallSettings,
): JSONObject | undefined {
  if (parallelToolCalls === undefined) return undefined;
  const said = Object.hasOwn(PARALLEL, family) ? PARALLEL[family]?.(parallelToolCalls) : undefined;
  if (said === undefined)
    onUnsupported('parallelToolCalls is not carried to this provider', 'say it in providerOptions');
  return said;
}

/** Its package says of every schema that it is strict, and OpenAI refuses a request where that is not so. */
function formatOptions({ responseFormat }: LLMRequest, family: string): JSONObject | undefined {
  const schema = responseFormat?.type === 'json' ? responseFormat.schema : undefined;
  const isLoose = family === 'openai' && schema !== undefined && !isStrictForm(schema);
  return isLoose ? { strictJsonSchema: false } : undefined;
}
