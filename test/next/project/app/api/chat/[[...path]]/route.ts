import { discoverTools, ToolRegistry } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { DeliveryTools } from '@/lib/delivery-tools';
import { model } from '@/lib/model';
import '@/toolwright.gen';

const tools = new ToolRegistry();
tools.register(...discoverTools({ toolsets: [DeliveryTools] }));

const chat = createChatHandler({
  provider: model,
  model: 'delivery',
  tools,
  store: new MemoryRunStore(),
  authenticate: () => 'ada',
});

export const POST = chat.fetch;
export const GET = chat.fetch;
export const DELETE = chat.fetch;
