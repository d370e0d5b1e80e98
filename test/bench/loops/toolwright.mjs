/* Ours: `runToolLoop` with a decorated method. */
import { runToolLoop } from '#toolwright';
import { PlainTools } from '../.build/classes/toolsets.js';
import { registryOf } from '../peers/toolwright.mjs';
import { chatProvider } from './chat-provider.mjs';

const tools = registryOf([PlainTools]).view({ allow: ['add'] });

/** One run. */
export async function toolwrightLoop(script) {
  const config = {
    provider: chatProvider(script),
    model: 'scripted',
    tools,
    maxIterations: script.length + 1,
  };
  const { content } = await runToolLoop(config, [{ role: 'user', content: 'Add.' }]);
  return content;
}
