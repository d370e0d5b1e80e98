import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { createAssistant } from './create-assistant.js';

const question = process.argv.slice(2).join(' ') || 'Show the lines with the text "tea".';

await using agent = await createAssistant(resolve('workspace'));
let run = await agent.run(question);
while (run.status === 'suspended') {
  const answers = [];
  for (const { id, tool, arguments: args } of run.pending ?? [])
    answers.push({ id, approved: await ask(`Allow ${tool} ${JSON.stringify(args)}? (y/n) `) });
  run = await agent.resume(run.state, answers);
}
console.log(run.content);

async function ask(text: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question(text)).trim().toLowerCase() === 'y';
  } finally {
    terminal.close();
  }
}
