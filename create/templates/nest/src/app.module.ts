import './toolwright.gen.js';
import { type DynamicModule, Module } from '@nestjs/common';
import { ToolwrightModule } from 'toolwright/nestjs';
import { SqliteRunStore } from 'toolwright/stores';
import { AuthGuard, type SignedInRequest, type User } from './auth/auth.guard.js';
import { CustomersModule } from './customers/customers.module.js';
import type { ChosenModel } from './model.js';
import { OrdersModule } from './orders/orders.module.js';
import { RunsController } from './runs/runs.controller.js';

export interface AppOptions extends ChosenModel {
  /** The SQLite file of runs and chats. For several processes, use PostgresRunStore. */
  readonly path: string;
}

@Module({})
export class AppModule {
  static with({ path, provider, model }: AppOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ToolwrightModule.forRoot({
          provider,
          model,
          store: new SqliteRunStore({ path }),
          // Runs that a crash interrupted are continued; a call that may have happened is not repeated, but its user is asked.
          checkpoint: 'step',
          worker: true,
          conversations: { systemPrompt: 'You help the staff of a tea shop. Answer briefly.' },
          // Runs and chats belong to the user who started them; no other user can answer them.
          owner: ({ user }: SignedInRequest) => user && { userId: user.id },
          data: ({ user }: SignedInRequest) => ({ userId: user?.id }),
          // Chats continue outside of requests: what their tools receive depends on the owner alone.
          scopeOf: ({ userId }: { readonly userId: string }) => ({
            request: { user: { id: userId } satisfies User },
            data: { userId },
          }),
        }),
        ToolwrightModule.forChat({ path: 'api/chat', guards: [AuthGuard] }),
        OrdersModule,
        CustomersModule,
      ],
      controllers: [RunsController],
    };
  }
}
