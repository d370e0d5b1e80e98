/* The AI SDK: `generateText` until a reply has no calls. */
import { generateText, isStepCount } from 'ai';
import { aiTool } from '../peers/ai-sdk.mjs';
import { languageModel } from './language-model.mjs';

const tools = { add: aiTool('add') };

export async function aiLoop(script) {
  const { text } = await generateText({
    model: languageModel(script),
    tools,
    stopWhen: isStepCount(script.length + 1),
    messages: [{ role: 'user', content: 'Add.' }],
  });
  return text;
}
