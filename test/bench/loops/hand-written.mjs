/* The loop that somebody writes by hand who trusts everything but the arguments. */
import { createCheck } from '../peers/floor.mjs';
import { bodyOf } from '../workloads.mjs';
import { chatProvider } from './chat-provider.mjs';

const check = createCheck('add');
const add = bodyOf('add');
const tools = { add: { check, run: async (input) => add(input) } };

/** Ask, check, run, answer, ask again. */
export async function handWrittenLoop(script) {
  const provider = chatProvider(script);
  const messages = [{ role: 'user', content: 'Add.' }];
  for (;;) {
    const { content, toolCalls } = await provider.chat({ messages });
    if (toolCalls.length === 0) return content;
    messages.push({ role: 'assistant', content, tool_calls: toolCalls.map(toWire) });
    messages.push(...(await Promise.all(toolCalls.map(answer))));
  }
}

function toWire({ id, name, arguments: text }) {
  return { id, type: 'function', function: { name, arguments: text } };
}

async function answer(call) {
  const tool = tools[call.name];
  const input = JSON.parse(call.arguments);
  const content = tool.check(input) ? String(await tool.run(input)) : JSON.stringify(tool.check.errors);
  return { role: 'tool', tool_call_id: call.id, content };
}
