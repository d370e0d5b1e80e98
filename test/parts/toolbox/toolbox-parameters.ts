import { discoverTools } from 'toolwright';
import * as builtin from 'toolwright/builtin';
import * as agents from 'toolwright/toolbox/agents';
import * as files from 'toolwright/toolbox/files';
import * as schedule from 'toolwright/toolbox/schedule';
import * as shell from 'toolwright/toolbox/shell';
import * as tasks from 'toolwright/toolbox/tasks';
import * as web from 'toolwright/toolbox/web';

/** The parameters of the tools of all toolsets that the package exports, by the name of the tool. */
export function toolboxParameters(): Readonly<Record<string, unknown>> {
  const exported = [builtin, agents, files, schedule, shell, tasks, web].flatMap((entryPoint) =>
    Object.entries<unknown>(entryPoint),
  );
  const toolsets = exported.flatMap(([name, value]) => (/^[A-Z]\w*Tools$/.test(name) ? [value] : []));
  // The instances are not called.
  const container = {
    resolve: (toolset: { readonly prototype: object }) => Object.create(toolset.prototype),
  };
  const tools = discoverTools({ toolsets: toolsets as never, container: container as never });
  return Object.fromEntries(tools.map(({ name, parameters }) => [name, parameters]));
}
