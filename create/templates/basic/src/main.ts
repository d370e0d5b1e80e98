import { createInterface } from 'node:readline/promises';
import { resumeToolLoop, runToolLoop } from 'toolwright';
import { chooseModel } from './model.js';
import { tools } from './tools.js';

const question = process.argv.slice(2).join(' ') || 'Find the customer named "Ada".';
const config = { ...(await chooseModel()), tools };

let run = await runToolLoop(config, [{ role: 'user', content: question }]);
while (run.status === 'suspended') {
  const answers = [];
  for (const { id, tool, arguments: args } of run.pending ?? [])
    answers.push({ id, approved: await ask(`Allow ${tool} ${JSON.stringify(args)}? (y/n) `) });
  run = await resumeToolLoop(config, run.state, answers);
}
for (const call of run.toolCalls) console.log(`${call.name}(${JSON.stringify(call.arguments)})`);
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
