/* Strands: `agent.invoke` without output on the console. */
import { Agent, Model, NullConversationManager } from '@strands-agents/sdk';
import { strandsTool } from '../peers/strands.mjs';
import { ANSWER } from './script.mjs';

const tools = [strandsTool('add')];

export async function strandsLoop(script) {
  const model = new ScriptedModel(script);
  // The default conversation manager keeps only 40 messages, which would change the workload.
  const agent = new Agent({
    model,
    tools,
    printer: false,
    conversationManager: new NullConversationManager(),
  });
  const { lastMessage } = await agent.invoke('Add.');
  return lastMessage.content[0].text;
}

class ScriptedModel extends Model {
  #script;

  constructor(script) {
    super();
    this.#script = script;
  }

  updateConfig() {}

  getConfig() {
    return { modelId: 'scripted' };
  }

  async *stream(messages) {
    const calls = this.#script.next(messages);
    yield { type: 'modelMessageStartEvent', role: 'assistant' };
    if (calls.length === 0) yield* block({ delta: { type: 'textDelta', text: ANSWER } });
    for (const { id, name, arguments: input } of calls) {
      const start = { type: 'toolUseStart', name, toolUseId: id };
      yield* block({ start, delta: { type: 'toolUseInputDelta', input } });
    }
    yield { type: 'modelMessageStopEvent', stopReason: calls.length > 0 ? 'toolUse' : 'endTurn' };
  }
}

function* block({ start, delta }) {
  yield { type: 'modelContentBlockStartEvent', ...(start ? { start } : {}) };
  yield { type: 'modelContentBlockDeltaEvent', delta };
  yield { type: 'modelContentBlockStopEvent' };
}
