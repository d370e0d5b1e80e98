/* A minimal hand-written loop that validates only the arguments. */
import { compileSchema } from '../peers/baseline.mjs';
import { bodyOf } from '../workloads.mjs';
import { chatProvider } from './chat-provider.mjs';

const validate = compileSchema('add');
const add = bodyOf('add');
const tools = { add: { validate, run: async (input) => add(input) } };

export async function handWrittenLoop(script) {
  const provider = chatProvider(script);
  const messages = [{ role: 'user', content: 'Add.' }];
  for (;;) {
    const { content, toolCalls } = await provider.chat({ messages });
    if (toolCalls.length === 0) return content;
    messages.push({ role: 'assistant', content, tool_calls: toolCalls.map(toWire) });
    messages.push(...(await Promise.all(toolCalls.map(executeCall))));
  }
}

function toWire({ id, name, arguments: text }) {
  return { id, type: 'function', function: { name, arguments: text } };
}

async function executeCall(call) {
  const tool = tools[call.name];
  const input = JSON.parse(call.arguments);
  const content = tool.validate(input) ? String(await tool.run(input)) : JSON.stringify(tool.validate.errors);
  return { role: 'tool', tool_call_id: call.id, content };
}
