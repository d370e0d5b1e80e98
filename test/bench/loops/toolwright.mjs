/* toolwright: `runToolLoop` with a decorated method, without options and with options that production uses. */
import { keepRecent, runToolLoop } from '#toolwright';
import { fromAiSdk } from '#toolwright/ai-sdk';
import { MemoryRunStore } from '#toolwright/stores';
import { PlainTools } from '../.build/classes/toolsets.js';
import { registryOf } from '../peers/toolwright.mjs';
import { chatProvider } from './chat-provider.mjs';
import { languageModel } from './language-model.mjs';

const tools = registryOf([PlainTools]).view({ allow: ['add'] });

export const toolwrightLoop = loopWith(() => ({}));

const silentLogger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: (level) => level !== 'debug',
};
const budget = { tokens: 1e9, cost: 1e6, prices: { scripted: { input: 1, output: 1 } } };
const store = () => new MemoryRunStore();

/** Loops with one option each, and with several options: `[name, loop]`. */
export const LOOP_OPTIONS = [
  ['no options', toolwrightLoop],
  ['logger, info level', loopWith(() => ({ logger: silentLogger }))],
  ['policy', loopWith(() => ({ policy: () => ({ allow: true }) }))],
  ['budget of tokens and cost', loopWith(() => ({ budget }))],
  ['`keepRecent` that removes nothing', loopWith(() => ({ compactHistory: keepRecent({ tokens: 1e6 }) }))],
  ["`checkpoint: 'step'` in memory", loopWith(() => ({ store: store(), checkpoint: 'step' }))],
  [
    'logger, policy, budget and checkpoint',
    loopWith(() => ({
      ...{
        logger: silentLogger,
        policy: () => ({ allow: true }),
        budget,
        store: store(),
        checkpoint: 'step',
      },
    })),
  ],
  ['`fromAiSdk` as the provider', loopWith((script) => ({ provider: fromAiSdk(languageModel(script)) }))],
];

/** Returns a loop with options that are created for its script. */
function loopWith(optionsFor) {
  return async (script) => {
    const config = {
      provider: chatProvider(script),
      model: 'scripted',
      tools,
      maxIterations: script.length + 1,
      ...optionsFor(script),
    };
    const { content } = await runToolLoop(config, [{ role: 'user', content: 'Add.' }]);
    return content;
  };
}
