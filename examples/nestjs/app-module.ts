import { join } from 'node:path';
import { type DynamicModule, Module, ValidationPipe } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import type { LLMProvider } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';
import { SqliteRunStore } from 'toolwright/stores';
import { AuthGuard } from './auth/auth-guard.js';
import { AuthModule } from './auth/auth-module.js';
import { runRights } from './auth/run-rights.js';
import type { AuthedRequest } from './auth/user.js';
import { Users } from './auth/users.js';
import { ChatController } from './chat/chat-controller.js';
import { Conversations } from './chat/conversations.js';
import { DatabaseModule } from './database/database-module.js';
import { McpController } from './mcp/mcp-controller.js';
import { Measurements } from './measure/measurements.js';
import { MeasurementsController } from './measure/measurements-controller.js';
import { MeasuringInterceptor } from './measure/measuring-interceptor.js';
import { AuditTrail } from './orders/audit-trail.js';
import { OrderBook } from './orders/order-book.js';
import { OrderTools } from './orders/order-tools.js';
import './toolwright.gen.js';

/** The options of the application. */
export interface AppOptions {
  /** Folder of the database; without it, everything is stored in memory. */
  readonly dataFolder?: string;
  readonly provider: LLMProvider;
  readonly model: string;
}

/** The shop; its tools are discovered among the providers. */
@Module({})
export class AppModule {
  static with({ dataFolder, provider, model }: AppOptions): DynamicModule {
    const path = (file: string) => (dataFolder === undefined ? ':memory:' : join(dataFolder, file));
    return {
      module: AppModule,
      imports: [
        DatabaseModule.at(path('shop.sqlite')),
        AuthModule,
        ToolwrightModule.forRootAsync({
          imports: [AuthModule],
          inject: [Users],
          useFactory: (users: Users) => ({
            ...runRights(users),
            provider,
            model,
            store: new SqliteRunStore({ path: path('runs.sqlite') }),
            data: ({ user }: AuthedRequest) => ({ userId: user?.id }),
          }),
        }),
      ],
      controllers: [ChatController, McpController, MeasurementsController],
      providers: [
        ...[OrderBook, AuditTrail, OrderTools, Conversations, Measurements],
        { provide: APP_GUARD, useClass: AuthGuard },
        { provide: APP_INTERCEPTOR, useClass: MeasuringInterceptor },
        { provide: APP_PIPE, useValue: new ValidationPipe({ whitelist: true, transform: true }) },
      ],
    };
  }
}
