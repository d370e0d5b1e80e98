import type { LLMProvider } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';

/** A real model where the environment names a key or a server, and otherwise the offline stand-in. */
export async function chooseModel(
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly provider: LLMProvider; readonly model: string }> {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL } = environment;
  if (!apiKey && !baseURL) return { provider: new OfflineProvider(), model: 'offline' };
  // Loaded only where it is used: the offline stand-in does without the `openai` package.
  const { OpenAIProvider } = await import('toolwright/openai');
  return { provider: new OpenAIProvider(), model: OPENAI_MODEL ?? 'gpt-5-mini' };
}
