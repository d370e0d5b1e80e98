import { discoverTools, ToolRegistry } from 'toolwright';
import { LibraryTools } from './library-tools.js';
import './toolwright.gen.js';

export const tools = new ToolRegistry();

tools.register(...discoverTools({ toolsets: [LibraryTools] }));
