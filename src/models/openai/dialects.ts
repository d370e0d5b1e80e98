import type {
  AssistantMessage,
  MessageToolCall,
  ProviderIdentity,
} from '../../core/contract/llm-provider.js';
import { jsonList, jsonRecord, jsonText, type WireRecord } from '../wire/wire-json.js';

/** Fields whose texts arrive in pieces in a stream. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning'] as const;
/** Lists whose entries arrive in pieces in a stream: OpenRouter's, and Anthropic's behind LiteLLM. */
const LIST_FIELDS = ['reasoning_details', 'thinking_blocks'] as const;
/** Fields of such entries that arrive in pieces and contain reasoning. */
const ENTRY_TEXTS = ['text', 'summary', 'thinking'] as const;

/** The reasoning of a message, and its other content. */
interface Thought {
  readonly thought: string;
  readonly content: unknown;
}

/**
 * Collects fields that servers add to a message in addition to text and calls, from its deltas or the whole message:
 * the model's reasoning as `reasoning_content` (DeepSeek, Kimi, Qwen, xAI), as `reasoning` (Groq, Ollama, vLLM,
 * Cerebras), as `reasoning_details` (OpenRouter) or within the content (Mistral, Gemini), and signatures in
 * `extra_content` (Gemini).
 */
export class DialectFields {
  readonly #texts: Partial<Record<(typeof TEXT_FIELDS)[number], string>> = {};
  readonly #lists: Partial<Record<(typeof LIST_FIELDS)[number], WireRecord[]>> = {};
  readonly #parts: WireRecord[] = [];
  #extra: WireRecord = {};
  #isThinking = false;

  /** Adds the fields of a delta or a whole message, and returns its reasoning, and its content without reasoning. */
  add(message: WireRecord, { isWhole }: { readonly isWhole: boolean }): Thought {
    const thoughts: string[] = [];
    for (const field of TEXT_FIELDS) {
      const text = message[field];
      if (typeof text !== 'string') continue;
      // Empty texts are stored too, because DeepSeek requires them back.
      this.#texts[field] = (this.#texts[field] ?? '') + text;
      thoughts.push(text);
    }
    for (const field of LIST_FIELDS) {
      const entries = jsonList(message[field]).map(jsonRecord);
      if (entries.length === 0) continue;
      const list = this.#lists[field] ?? [];
      this.#lists[field] = list;
      for (const entry of entries) {
        if (isWhole) list.push(entry);
        else addEntry(list, entry);
      }
      thoughts.push(entries.flatMap((entry) => ENTRY_TEXTS.map((key) => jsonText(entry[key]))).join(''));
    }
    const { thought, content } = this.#withoutThought(message);
    this.#addExtra(jsonRecord(message.extra_content));
    const parts =
      typeof content === 'string' ? [{ type: 'text', text: content }] : jsonList(content).map(jsonRecord);
    if (isWhole) this.#parts.push(...parts);
    else for (const part of parts) addPart(this.#parts, part);
    thoughts.push(thought, parts.map(innerText).join(''));
    // Servers with several of these fields send the same text in each.
    return { thought: thoughts.find((text) => text !== '') ?? '', content };
  }

  /** The fields to send back with the message; `undefined` if it has only text and calls. */
  items(): WireRecord | undefined {
    const lists = Object.entries(this.#lists);
    const items = {
      // OpenRouter’s details include its text.
      ...(lists.length > 0 ? Object.fromEntries(lists) : this.#texts),
      ...(Object.keys(this.#extra).length > 0 ? { extra_content: this.#extra } : {}),
      ...(this.#parts.some(({ type }) => type === 'thinking') ? { content: this.#parts } : {}),
    };
    return Object.keys(items).length === 0 ? undefined : items;
  }

  /** Gemini writes reasoning into the content, between tags, and marks the deltas that contain it. */
  #withoutThought({ content, extra_content }: WireRecord): Thought {
    if (typeof content !== 'string') return { thought: '', content };
    const isMarked = jsonRecord(jsonRecord(extra_content).google).thought === true;
    if (!isMarked && !this.#isThinking) return { thought: '', content };
    const [thought = '', ...rest] = content.replace('<thought>', '').split('</thought>');
    this.#isThinking = isMarked && rest.length === 0;
    if (rest.length > 0) return { thought, content: rest.join('</thought>') };
    return isMarked ? { thought, content: '' } : { thought: '', content };
  }

  #addExtra(extra: WireRecord): void {
    const { google, ...others } = extra;
    // Gemini's mark for reasoning within the content; it is only for clients.
    const { thought, ...signed } = jsonRecord(google);
    const known = { ...jsonRecord(this.#extra.google), ...signed };
    this.#extra = {
      ...this.#extra,
      ...others,
      ...(Object.keys(known).length > 0 ? { google: known } : {}),
    };
  }
}

/** An entry continues the previous one with the same index and type; encrypted data arrives whole. */
function addEntry(list: WireRecord[], entry: WireRecord): void {
  const at = list.findLastIndex((open) => open.index === entry.index && open.type === entry.type);
  const open = list[at];
  const isApart = entry.index === undefined && (at < list.length - 1 || Boolean(open?.signature));
  if (open === undefined || 'data' in entry || isApart) {
    list.push(entry);
    return;
  }
  const texts = ENTRY_TEXTS.filter((key) => typeof entry[key] === 'string');
  const filled = Object.entries(entry).filter(
    ([, value]) => value !== null && value !== '' && value !== undefined,
  );
  const joined = texts.map((key) => [key, jsonText(open[key]) + jsonText(entry[key])]);
  list[at] = { ...open, ...Object.fromEntries(filled), ...Object.fromEntries(joined) };
}

function addPart(parts: WireRecord[], part: WireRecord): void {
  const last = parts.at(-1);
  if (part.type === 'text' && part.text === '') return;
  const goesOn = last?.type === part.type && (part.type === 'text' || part.type === 'thinking');
  if (last === undefined || !goesOn) parts.push(part);
  else if (part.type === 'text')
    parts[parts.length - 1] = { ...last, ...part, text: jsonText(last.text) + jsonText(part.text) };
  else {
    const thinking = [{ type: 'text', text: innerText(last) + innerText(part) }];
    parts[parts.length - 1] = { ...last, ...part, thinking };
  }
}

function innerText({ thinking }: WireRecord): string {
  if (typeof thinking === 'string') return thinking;
  return jsonList(thinking)
    .map((part) => jsonText(jsonRecord(part).text))
    .join('');
}

/** The value that Gemini’s documentation requires for calls that Gemini did not make. */
const FOREIGN_SIGNATURE = { google: { thought_signature: 'skip_thought_signature_validator' } };

/** The model that messages are written for, and the key of its items. */
export interface DialectTarget {
  readonly model: string;
  readonly itemKey: string;
}

/** An assistant message for its server: with the fields that it sent, and without ours. */
export function withDialectFields(
  message: AssistantMessage,
  target: DialectTarget,
): AssistantMessage | WireRecord {
  const { providerItems, reasoning, tool_calls, ...plain } = message;
  const { content, ...fields } = jsonRecord(providerItems?.[target.itemKey]);
  const calls = tool_calls?.map((call) => toWireCall(call, target.itemKey));
  const isUnsigned = calls !== undefined && wantsThoughtSignature(target.model) && !calls.some(isSigned);
  const isUnthought =
    calls?.length && fields.reasoning_content === undefined && wantsReasoningContent(target.model);
  return {
    ...plain,
    ...(Array.isArray(content) ? { content: contentOf(message, content) } : {}),
    ...(calls ? { tool_calls: isUnsigned ? calls.map(signedFirst) : calls } : {}),
    ...(isUnthought ? { reasoning_content: '' } : {}),
    ...fields,
  };
}

/** The original parts, or the parts without text and the current text. */
function contentOf({ content }: AssistantMessage, parts: readonly unknown[]): readonly unknown[] {
  const texts = parts.map(jsonRecord).filter(({ type }) => type === 'text');
  if (texts.map(({ text }) => jsonText(text)).join('') === (content ?? '')) return parts;
  const others = parts.filter((part) => jsonRecord(part).type !== 'text');
  return content ? [...others, { type: 'text', text: content }] : others;
}

function toWireCall({ providerItems, ...call }: MessageToolCall, itemKey: string): WireRecord {
  const { custom, thought_signature, ...fields } = jsonRecord(providerItems?.[itemKey]);
  // Some gateways send Gemini's signature beside the name and the arguments.
  const signed = thought_signature === undefined ? {} : { function: { ...call.function, thought_signature } };
  if (custom !== true) return { ...call, ...signed, ...fields };
  return {
    id: call.id,
    type: 'custom',
    custom: { name: call.function.name, input: call.function.arguments },
    ...fields,
  };
}

function isSigned(call: WireRecord): boolean {
  const { thought_signature } = jsonRecord(call.function);
  return (
    (thought_signature ?? jsonRecord(jsonRecord(call.extra_content).google).thought_signature) !== undefined
  );
}

/** Gemini signs the first of several calls. */
function signedFirst(call: WireRecord, at: number): WireRecord {
  return at === 0 ? { ...call, extra_content: FOREIGN_SIGNATURE } : call;
}

/**
 * Provider names of hosts in the OpenTelemetry conventions (`gen_ai.provider.name`). Other hosts are
 * OpenAI-compatible servers, and are named accordingly.
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

/** The service at an address. */
export function serverIdentity(baseURL: string): ProviderIdentity {
  if (!URL.canParse(baseURL)) return { name: 'openai' };
  const { hostname: address, port, protocol } = new URL(baseURL);
  const [, name] = HOSTS.find(([host]) => host.test(address)) ?? [undefined, 'openai'];
  const known = port === '' ? PORTS[protocol] : Number(port);
  return { name, address, ...(known !== undefined && { port: known }) };
}

/** Prefixes of model names for the hosting service or the owner of a fine-tuned model. */
const PREFIX = /^(?:.*\/|ft:)+/;
/** Variants in a name: `:free`, `:8b`, `@20250219`. */
const VARIANT = /[:@].*$/;
/** The words and the first number that is not a date. */
const FAMILY = /^[a-z][-_. a-z]*?(?:\d{1,3}(?!\d)|$)/;

/**
 * The family of a model: its name in lower case, without the hosting service, up to its major version. Items such as
 * signatures are understood within a family: `openai/gpt-5.2-mini` and `gpt-5` are both `gpt-5`,
 * `gemini-3-pro-preview` is `gemini-3`, `Qwen/Qwen3-235B` is `qwen3`, `o4-mini` is `o4`, and a name without a version
 * is its own family.
 */
function modelFamily(model: string): string {
  const name = model.toLowerCase().replace(PREFIX, '').replace(VARIANT, '');
  return FAMILY.exec(name)?.[0] ?? name.replace(/[-_]\d{4,}.*$/, '');
}

/** The key for data of a reply that its API and model family require back: `openai.chat/gpt-5`. */
export function familyKey(api: 'chat' | 'responses', model: string): string {
  return `openai.${api}/${modelFamily(model)}`;
}

/**
 * Whether a model refuses calls of the current turn without a thought signature: Gemini from version 3 on.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
function wantsThoughtSignature(model: string): boolean {
  const [, version] = /^gemini-?(\d+)$/.exec(modelFamily(model)) ?? [];
  return version !== undefined && Number(version) >= 3;
}

/**
 * Whether a reasoning model refuses messages with calls but without a (possibly empty) `reasoning_content`: DeepSeek
 * and Kimi at their own APIs, where names have no vendor prefix. Other servers may not support the field.
 * https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
 */
function wantsReasoningContent(model: string): boolean {
  return !model.includes('/') && /^(deepseek|kimi)/.test(modelFamily(model));
}

/**
 * Whether a model accepts tool definitions in the answer to a search: models of OpenAI from GPT-5.4 on.
 * https://developers.openai.com/api/docs/guides/tools-tool-search
 */
export function takesFoundTools(model: string): boolean {
  const [, major, minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(model.toLowerCase().replace(PREFIX, '')) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 4);
}

/** Models of OpenAI without response schemas. https://platform.openai.com/docs/guides/structured-outputs */
const WITHOUT_FORMAT = /^(gpt-3|gpt-4($|-)|gpt-4o-2024-05|chatgpt-|o1-(mini|preview)|davinci|babbage)/;

/** Whether a model at OpenAI supports a response schema. */
export function knowsResponseFormat(model: string): boolean {
  return !WITHOUT_FORMAT.test(model.toLowerCase().replace(PREFIX, ''));
}
