/* The AI SDK: `generateText` until there are no calls left. */
import { generateText, isStepCount } from 'ai';
import { aiTool } from '../peers/ai-sdk.mjs';
import { languageModel } from './language-model.mjs';

const tools = { add: aiTool('add') };

/** One run. */
export async function aiLoop(script) {
  const { text } = await generateText({
    model: languageModel(script),
    tools,
    stopWhen: isStepCount(script.length + 1),
    messages: [{ role: 'user', content: 'Add.' }],
  });
  return text;
}
