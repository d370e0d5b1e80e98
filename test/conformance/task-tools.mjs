// The tools for the task scenarios of the suite. A call of a tool with `background` is a task from its start; other
// calls become tasks when they wait for an approval or start background work.
import { setTimeout as wait } from 'node:timers/promises';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { defineTool } from '../../dist/src/index.js';

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });

export const TASK_TOOLS = [
  {
    name: 'greet',
    description: 'Greets a person',
    parameters: object({ name: { type: 'string' } }),
    execute: ({ name }) => `Hello, ${name}!`,
  },
  {
    name: 'slow_compute',
    description: 'Computes for some seconds',
    background: true,
    parameters: object({ seconds: { type: 'number' }, label: { type: 'string' } }),
    execute: async ({ seconds, label }, { signal }) => {
      await wait(seconds * 1_000, undefined, { signal });
      return `Computed ${label}`;
    },
  },
  {
    name: 'failing_job',
    description: 'Fails after a second',
    background: true,
    parameters: object({}),
    execute: async () => {
      await wait(1_000);
      throw new Error('The job failed');
    },
  },
  {
    name: 'protocol_error_job',
    description: 'Fails with a protocol error',
    background: true,
    parameters: object({}),
    execute: async () => {
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'The upstream server broke the protocol');
    },
  },
  {
    name: 'confirm_delete',
    description: 'Deletes a file once it is approved',
    approval: true,
    parameters: object({ filename: { type: 'string' } }),
    execute: ({ filename }) => `Deleted ${filename}`,
  },
  {
    name: 'multi_input',
    description: 'Asks two questions at once',
    background: true,
    parameters: object({}),
    execute: async (_args, context) => {
      const schema = object({ name: { type: 'string' } });
      const questions = ['What is your name?', 'What is the name of your city?'];
      const answers = await Promise.all(questions.map((message) => context.ask({ message, schema })));
      return JSON.stringify(answers);
    },
  },
  {
    name: 'test_tool_with_task',
    description: 'Asks the user, then continues in the background',
    parameters: object({}),
    execute: async (_args, context) => {
      const schema = { ...object({ name: { type: 'string' } }), title: 'user_name' };
      const { name } = await context.ask({ message: 'What is your name?', schema });
      return context.background(async () => {
        await wait(500);
        return `Done for ${name}`;
      });
    },
  },
].map(defineTool);
