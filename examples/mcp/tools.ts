import { discoverTools, ToolRegistry } from 'toolwright';
import { LibraryTools } from './library-tools.js';
import './toolwright.gen.js';

/** Only who is known to the library may change something. */
export const tools = new ToolRegistry({
  policy: ({ tool, context }) =>
    tool.annotations?.readOnly === true || context.data.reader !== undefined
      ? true
      : { allow: false, reason: 'only readers of the library may do that' },
});

tools.register(...discoverTools({ toolsets: [LibraryTools] }));
