import type { ProviderIdentity } from '../../contract/llm-provider.js';

/**
 * Who answers at which host, as the OpenTelemetry conventions call them (`gen_ai.provider.name`). Elsewhere it is a
 * server that speaks as OpenAI does, and that is what the name tells.
 */
const HOSTS: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(^|\.)services\.ai\.azure\.com$/, 'azure.ai.inference'],
  [/(^|\.)anthropic\.com$/, 'anthropic'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(^|\.)moonshot\.(ai|cn)$/, 'moonshot_ai'],
  [/(^|\.)perplexity\.ai$/, 'perplexity'],
  [/(^|\.)x\.ai$/, 'x_ai'],
  [/(^|\.)cohere\.(ai|com)$/, 'cohere'],
  [/^generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/aiplatform\.googleapis\.com$/, 'gcp.vertex_ai'],
  [/^bedrock-[\w-]+\.[\w-]+\.amazonaws\.com$/, 'aws.bedrock'],
];

const PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };

/** Who answers at an address. */
export function serverIdentity(baseURL: string): ProviderIdentity {
  if (!URL.canParse(baseURL)) return { name: 'openai' };
  const { hostname: address, port, protocol } = new URL(baseURL);
  const [, name] = HOSTS.find(([host]) => host.test(address)) ?? [undefined, 'openai'];
  const known = port === '' ? PORTS[protocol] : Number(port);
  return { name, address, ...(known === undefined ? {} : { port: known }) };
}

/** Names that differ in nothing but who serves a model, and for whom it was tuned. */
const PREFIX = /^(?:.*\/|ft:)+/;
/** `:free`, `:8b`, `@20250219`: what a name says of a variant. */
const VARIANT = /[:@].*$/;
/** Words, and the first number of them that is no date. */
const FAMILY = /^[a-z][-_. a-z]*?(?:\d{1,3}(?!\d)|$)/;

/**
 * The family of a model: its name in lower case, without who serves it, as far as its major version.
 * Items such as signatures are understood within a family: `openai/gpt-5.2-mini` and `gpt-5` are both `gpt-5`,
 * `gemini-3-pro-preview` is `gemini-3`, `Qwen/Qwen3-235B` is `qwen3`, `o4-mini` is `o4`, and a name without a
 * version is a family of its own.
 */
function modelFamily(model: string): string {
  const name = model.toLowerCase().replace(PREFIX, '').replace(VARIANT, '');
  return FAMILY.exec(name)?.[0] ?? name.replace(/[-_]\d{4,}.*$/, '');
}

/** Where a reply keeps what its API and its family of models want back: `openai.chat/gpt-5`. */
export function familyKey(api: 'chat' | 'responses', model: string): string {
  return `openai.${api}/${modelFamily(model)}`;
}

/**
 * Whether a model refuses calls of the current turn that have no thought signature: Gemini from version 3 on.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export function wantsThoughtSignature(model: string): boolean {
  const [, version] = /^gemini-?(\d+)$/.exec(modelFamily(model)) ?? [];
  return version !== undefined && Number(version) >= 3;
}

/**
 * Whether a model that thinks refuses messages with calls that have no `reasoning_content`, be it empty: DeepSeek and
 * Kimi at their own APIs, whose names have no vendor before them; elsewhere the field may be unknown.
 * https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
 */
export function wantsReasoningContent(model: string): boolean {
  return !model.includes('/') && /^(deepseek|kimi)/.test(modelFamily(model));
}

/**
 * Whether a model takes definitions of tools from the answer to a search: models of OpenAI from GPT-5.4 on.
 * https://developers.openai.com/api/docs/guides/tools-tool-search
 */
export function takesFoundTools(model: string): boolean {
  const [, major, minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(model.toLowerCase().replace(PREFIX, '')) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 4);
}

/** Models of OpenAI that know no schema of a reply. https://platform.openai.com/docs/guides/structured-outputs */
const WITHOUT_FORMAT = /^(gpt-3|gpt-4($|-)|gpt-4o-2024-05|chatgpt-|o1-(mini|preview)|davinci|babbage)/;

/** Whether a model keeps to a schema that is given as the form of its reply, at OpenAI. */
export function knowsResponseFormat(model: string): boolean {
  return !WITHOUT_FORMAT.test(model.toLowerCase().replace(PREFIX, ''));
}
