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
