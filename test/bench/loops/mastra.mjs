/* Mastra: `agent.generate`. */
import { Agent } from '@mastra/core/agent';
import { mastraTool } from '../peers/mastra.mjs';
import { languageModel } from './language-model.mjs';

const tools = { add: mastraTool('add') };

export async function mastraLoop(script) {
  const agent = new Agent({
    id: 'bench',
    name: 'bench',
    instructions: 'Add.',
    model: languageModel(script),
    tools,
  });
  const { text } = await agent.generate([{ role: 'user', content: 'Add.' }], { maxSteps: script.length + 1 });
  return text;
}
