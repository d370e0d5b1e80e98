import {
  type AsyncCallback,
  type AsyncTool,
  type ContextualTool,
  type Tool,
  ToolResult,
  toolResult,
} from 'toolwright';

export const readFileParameters = {
  type: 'object',
  properties: { path: { type: 'string', description: 'Path to the file to read' } },
  required: ['path'],
};

/** A `read_file` that answers with its path. */
export function readFile(): Tool {
  return {
    name: 'read_file',
    description: 'Read the contents of a file at the given path.',
    parameters: readFileParameters,
    execute: ({ path }: { path: string }) => toolResult(`Hello from ${path}\n`),
  };
}

/** A tool without arguments that answers with its name. */
export function toolNamed(name: string, execute: Tool['execute'] = () => toolResult(name)): Tool {
  return { name, description: `Does ${name}`, parameters: { type: 'object', properties: {} }, execute };
}

/** Records its calls in order. */
export class Sender implements ContextualTool, AsyncTool {
  readonly name = 'send';
  readonly description = 'Sends a message';
  readonly parameters = { type: 'object', properties: {} };
  readonly told: unknown[] = [];
  callback: AsyncCallback | undefined;

  setContext(channel: string, chatId: string): void {
    this.told.push(['setContext', channel, chatId]);
  }

  setCallback(callback: AsyncCallback): void {
    this.callback = callback;
    this.told.push(['setCallback']);
  }

  execute(args: unknown): ToolResult {
    this.told.push(['execute', args]);
    return toolResult('sent');
  }
}
