/* OpenAI Agents: a runner without tracing. */
import { Agent, Runner, Usage } from '@openai/agents';
import { agentsTool } from '../peers/openai-agents.mjs';
import { ANSWER } from './script.mjs';

const tools = [agentsTool('add')];
const runner = new Runner({ tracingDisabled: true });

export async function agentsLoop(script) {
  const agent = new Agent({ name: 'bench', instructions: 'Add.', model: scriptedModel(script), tools });
  const { finalOutput } = await runner.run(agent, 'Add.', { maxTurns: script.length + 1 });
  return finalOutput;
}

function scriptedModel(script) {
  return {
    async getResponse({ input }) {
      const calls = script.next(input);
      return { usage: new Usage(), output: calls.length > 0 ? calls.map(toItem) : [message()] };
    },
    getStreamedResponse() {
      throw new Error('the benchmark does not stream');
    },
  };
}

function toItem({ id, name, arguments: text }) {
  return { type: 'function_call', callId: id, name, arguments: text, status: 'completed' };
}

function message() {
  return {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: ANSWER }],
  };
}
