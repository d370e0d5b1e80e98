import { createAgent } from 'toolwright/agent';
import { type ChosenModel, chooseModel } from './model.js';
import { postToday } from './post-today.js';

/** An agent that works in `folder`: it reads freely and asks before it changes anything. */
export async function createAssistant(folder: string, model?: ChosenModel) {
  return createAgent({
    ...(model ?? (await chooseModel())),
    systemPrompt: 'You look after a folder of notes. Answer briefly.',
    folder,
    toolboxes: ['files', 'tasks', postToday],
    permissions: { mode: 'ask' },
    maxIterations: 20,
  });
}
