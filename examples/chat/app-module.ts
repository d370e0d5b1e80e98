import { join } from 'node:path';
import { type DynamicModule, Module } from '@nestjs/common';
import type { LLMProvider } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';
import { SqliteRunStore } from 'toolwright/stores';
import { AgentController } from './agent-controller.js';
import { type AuthedRequest, AuthGuard, type User } from './auth-guard.js';
import { OrderBook } from './order-book.js';
import { OrderTools } from './order-tools.js';
import { PagesController } from './pages-controller.js';
import './toolwright.gen.js';

/** The options of the application. */
export interface AppOptions {
  /** Folder of the chats; without it, they are stored in memory. */
  readonly dataFolder?: string;
  readonly provider: LLMProvider;
  readonly model: string;
}

/** A shop with a chat: the built-in route for `useChat`, a custom route for AG-UI, and a page for each. */
@Module({})
export class AppModule {
  static with({ dataFolder, provider, model }: AppOptions): DynamicModule {
    const path = dataFolder === undefined ? ':memory:' : join(dataFolder, 'chats.sqlite');
    return {
      module: AppModule,
      imports: [
        ToolwrightModule.forRoot({
          provider,
          model,
          store: new SqliteRunStore({ path }),
          conversations: { systemPrompt: 'You sell lamps. Be brief.' },
          owner: ({ user }: AuthedRequest) => user && { user: user.id },
          // Turns run outside of requests: only the owner of the chat determines their user.
          scopeOf: (owner: { readonly user: string }) => ({
            request: { user: { id: owner.user } satisfies User },
            data: { userId: owner.user },
          }),
        }),
        ToolwrightModule.forChat({ path: 'api/chat', guards: [AuthGuard] }),
      ],
      controllers: [AgentController, PagesController],
      providers: [OrderTools, OrderBook],
    };
  }
}
