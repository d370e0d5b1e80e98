/* Ours: `runToolLoop` with a decorated method, plain and with what production adds to it. */
import { keepRecent, runToolLoop } from '#toolwright';
import { fromAiSdk } from '#toolwright/ai-sdk';
import { MemoryRunStore } from '#toolwright/stores';
import { PlainTools } from '../.build/classes/toolsets.js';
import { registryOf } from '../peers/toolwright.mjs';
import { chatProvider } from './chat-provider.mjs';
import { languageModel } from './language-model.mjs';

const tools = registryOf([PlainTools]).view({ allow: ['add'] });

/** One run. */
export const toolwrightLoop = loopWith(() => ({}));

const quiet = { debug() {}, info() {}, warn() {}, error() {}, isLevelEnabled: (level) => level !== 'debug' };
const budget = { tokens: 1e9, cost: 1e6, prices: { scripted: { input: 1, output: 1 } } };
const store = () => new MemoryRunStore();

/** Runs with one thing more each, and with all of them: `[name, loop]`. */
export const LOOP_ADDITIONS = [
  ['nothing added', toolwrightLoop],
  ['a logger, info level', loopWith(() => ({ logger: quiet }))],
  ['a policy', loopWith(() => ({ policy: () => ({ allow: true }) }))],
  ['a budget of tokens and cost', loopWith(() => ({ budget }))],
  ['`keepRecent`, which cuts nothing', loopWith(() => ({ compactHistory: keepRecent({ tokens: 1e6 }) }))],
  ["`checkpoint: 'step'` in memory", loopWith(() => ({ store: store(), checkpoint: 'step' }))],
  [
    'logger, policy, budget and checkpoint',
    loopWith(() => ({
      ...{ logger: quiet, policy: () => ({ allow: true }), budget, store: store(), checkpoint: 'step' },
    })),
  ],
  ['`fromAiSdk` as the provider', loopWith((script) => ({ provider: fromAiSdk(languageModel(script)) }))],
];

/** A loop whose configuration has what is made for its script. */
function loopWith(additionsFor) {
  return async (script) => {
    const config = {
      provider: chatProvider(script),
      model: 'scripted',
      tools,
      maxIterations: script.length + 1,
      ...additionsFor(script),
    };
    const { content } = await runToolLoop(config, [{ role: 'user', content: 'Add.' }]);
    return content;
  };
}
