import type { DatabaseSync } from 'node:sqlite';
import { type DynamicModule, Inject, Module, type OnModuleDestroy } from '@nestjs/common';
import { DATABASE, openDatabase } from './open-database.js';

/** The database, open until the application closes. Running tool calls end before that. */
@Module({})
export class DatabaseModule implements OnModuleDestroy {
  constructor(@Inject(DATABASE) private readonly database: DatabaseSync) {}

  static at(path: string): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [{ provide: DATABASE, useFactory: () => openDatabase(path) }],
      exports: [DATABASE],
    };
  }

  onModuleDestroy(): void {
    this.database.close();
  }
}
