/* LangChain: `createAgent`, which runs on LangGraph. */
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { createAgent } from 'langchain';
import { langchainTool } from '../peers/langchain.mjs';
import { ANSWER } from './script.mjs';

const tools = [langchainTool('add')];

export async function langchainLoop(script) {
  const agent = createAgent({ model: new ScriptedModel(script), tools });
  const { messages } = await agent.invoke(
    { messages: [{ role: 'user', content: 'Add.' }] },
    { recursionLimit: script.length * 4 + 10 },
  );
  return messages.at(-1).text;
}

class ScriptedModel extends BaseChatModel {
  #script;

  constructor(script) {
    super({});
    this.#script = script;
  }

  _llmType() {
    return 'scripted';
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const calls = this.#script.next(messages);
    const message =
      calls.length > 0
        ? new AIMessage({ content: '', tool_calls: calls.map(toCall) })
        : new AIMessage(ANSWER);
    return { generations: [{ text: message.text, message }], llmOutput: {} };
  }
}

function toCall({ id, name, arguments: text }) {
  return { type: 'tool_call', id, name, args: JSON.parse(text) };
}
